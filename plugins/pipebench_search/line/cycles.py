"""Cycles of annealing in a search: where they begin, how long they are, and the plans that come of them."""

import random
import time
from collections.abc import Iterable
from itertools import zip_longest

import numpy as np

from pipebench.algorithms.orders.tables import ANY
from pipebench.costs.quantise import IntArray
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.estimates.clock import Clock
from pipebench_search.estimates.guess import Guesses
from pipebench_search.incumbent import ROWS, Candidate, Incumbent
from pipebench_search.line.annealing import ANYWHERE, COLD, HOT, Annealing, Row
from pipebench_search.line.kernel import annealed, look
from pipebench_search.line.loops import FEW, cheapest_cuts, rows_in_loops
from pipebench_search.line.tables import CAP, Costs, Line, line_of
from pipebench_search.score import Scorer

CYCLE, MOST_IN_CYCLE, DOUBLED = 300, 100_000, 4
"""Rows of stages that the first cycles look at: so many for each operator, and at most. Later ones look at twice
as many, so many times."""
REORDERED_LINES = 0.5
"""The share of cycles with operators in another order than that of the plan that they begin with."""
LOOPS = 4
"""Rows of stages in loops that cycles begin with."""
LINES = 3
"""Lines of which these are: those of which a few rows in loops are fastest."""
NEAR = 1.25
"""Rows that take longer than the fastest one by this factor tell nothing of their line."""
LOOPING, SAMPLING = 0.15, 0.5
"""The share of the time that is left in which these are looked for, at most; and of that, in which lines are."""
FEWEST, SHORTEST = 4, 0.25
"""More starts than these get cycles as long as this share of a first one, or there are fewer of them."""
LOOK_S = 30e-6
"""What a look at a row of stages may take, before one is known."""
NEIGHBOUR = 0.5
"""A look at a neighbour takes such a share of one at rows that fit, about: many are left early."""


class Cycles:
    """Those of one search, whose random numbers they draw.

    only_rows: whether rows of stages are all that may change: one device a stage, and one micro-batch, are pinned.
    """

    def __init__(
        self,
        known: Incumbent,
        scorer: Scorer,
        drafting: Drafting,
        guesses: Guesses,
        clock: Clock,
        draw: random.Random,
    ) -> None:
        self._known, self._scorer, self._drafting = known, scorer, drafting
        self._guesses, self._clock, self._draw = guesses, clock, draw
        self._first = min(CYCLE * len(scorer.model.graph.operators), MOST_IN_CYCLE)
        self._look_s = LOOK_S
        pins = scorer.problem.pins
        self.only_rows = pins.data_parallel == 1 and pins.micro_batch is not None

    def may_begin(self, here: Candidate) -> bool:
        """Whether a cycle may begin with this plan: any order of its tasks will do."""
        free = self._scorer.orders_freely and not self._scorer.problem.overlap
        return here.draft is not None and free and here.draft.alike

    def in_turn(self, starts: list[Candidate]) -> list[Candidate]:
        """What cycles find, the best first: a cycle from each start, twice as long ones from the better half of
        what they found, and so on. They get a third of what is left, or all where there is nothing else to do. Of
        many starts only the first ones count where cycles would become too short.
        """
        rounds = _halved(len(starts))
        while len(starts) > FEWEST and self._unit(rounds) < self._first * SHORTEST:
            starts = starts[:-1]
            rounds = _halved(len(starts))
        left = total = _units(rounds)
        others = 0 if self.only_rows else 2 * total
        found, here = [], starts
        for at, number in enumerate(rounds):
            made: list[Candidate] = []
            for start in here[:number]:
                if not self._known.over():
                    made += self.one(start, at, (1 << at) / (left + others))
                left -= 1 << at
            here = sorted(made, key=lambda each: each.scored.rank)
            found += here
        return sorted(found, key=lambda each: each.scored.rank)

    def _unit(self, rounds: list[int]) -> int:
        """Looks that a first cycle gets."""
        shares = _units(rounds) * (1 if self.only_rows else 3)
        return self._known.left(self._first, self._look_s, 1 / shares)

    def one(self, base: Candidate, doubled: int, share: float = 1.0) -> list[Candidate]:
        """The plan that a cycle finds from another one; none where that is no row of stages.

        doubled: its looks, or fewer where less is left: those of a first cycle, doubled so many times. share: of
        what is left, at most.
        """
        row = self._row(base, self._first << min(doubled, DOUBLED), share)
        if row is None:
            return []
        return self._scored(*row, base.source, (*base.moves, "annealing"))

    def in_loops(self, base: Candidate, others: Iterable[Draft]) -> list[Candidate]:
        """Plans whose stages come by every lane several times: of a plan, and of the rows among others that are
        fastest so. The fastest of each shape.
        """
        assert base.draft is not None
        late, reserve = self._known.late_after(LOOPING), not base.scored.tight
        sampled_late = self._known.late_after(LOOPING * SAMPLING)
        found: list[tuple[int, Line]] = []
        for draft in (base.draft, *others):
            if sampled_late() and found:
                break
            line = line_of(self._scorer.model, self._drafting, self._guesses, draft, None, reserve)
            if line is not None:
                most_ns = int(found[0][0] * NEAR) if found else ANY - 1
                rows, timed = rows_in_loops(line, Annealing(line, 0), sampled_late, FEW, most_ns)
                self._looked(timed)
                found += [(row.ns, line) for row in rows[:1]]
                found.sort(key=lambda each: each[0])
        of_lines: list[list[tuple[Row, Line]]] = []
        for _, line in found[:LINES]:
            rows, timed = rows_in_loops(line, Annealing(line, 0), late)
            self._looked(timed)
            of_lines.append([(row, line) for row in rows])
        made: list[Candidate] = []
        for row, line in [each for rank in zip_longest(*of_lines) for each in rank if each is not None][:LOOPS]:
            if self._known.over():
                break
            made += self._scored(line.draft_of(row.stages), row.stages, "stages in loops", ())
        return made

    def _scored(self, draft: Draft, stages: IntArray, source: str, moves: tuple[str, ...]) -> list[Candidate]:
        """The plan of rows of stages; none where it is not valid."""
        plan = self._drafting.plan_of(draft)
        if plan is None:
            return []
        if self._clock.shows(draft):
            micro_batch = draft.parts[0].micro_batch
            plan = plan.with_in_flight([cap * micro_batch for cap in stages[:, CAP].tolist()])
        scored = self._known.as_annealed(plan) if self._scorer.permitted(plan) else None
        if scored is None:
            return []
        made = Candidate(scored, draft, source, moves)
        self._known.note(made)
        return [made]

    def _row(self, base: Candidate, looks: int, share: float) -> tuple[Draft, IntArray] | None:
        """The draft that a cycle finds, and its rows of stages."""
        assert base.draft is not None
        draw = self._draw if self._draw.random() < REORDERED_LINES else None
        reserve = not base.scored.tight
        line = line_of(self._scorer.model, self._drafting, self._guesses, base.draft, draw, reserve)
        if line is None:
            return None
        annealing = Annealing(line, self._draw.randrange(2**30))
        starts = [line.stages(caps) for caps in self._numbers_in_flight(base)]
        timed: list[tuple[int, int]] = []
        longest_s = 0.0
        for at, start in enumerate(starts):
            began_s = time.monotonic()
            ns = annealing.ns(start)
            longest_s = max(longest_s, time.monotonic() - began_s)
            if ns is not None:
                timed.append((ns, at))
        if not timed:
            return None
        looks = self._known.left(looks, NEIGHBOUR * longest_s, share)
        began_s = time.monotonic()
        row = annealing.cycle(starts[min(timed)[1]], looks, self._known.late, self._looked)
        self._look_s = (time.monotonic() - began_s) / looks
        return line.draft_of(row.stages), row.stages

    def _looked(self, count: int) -> None:
        self._known.look(count, ROWS)

    def _numbers_in_flight(self, base: Candidate) -> list[list[int]]:
        """Micro-batches that the stages may keep in flight: those that the plan declares, else the clock's."""
        assert base.draft is not None
        stages = base.scored.plan.stages
        if not self._clock.shows(base.draft):
            return [[1] * len(stages)]
        if all(stage.in_flight for stage in stages):
            return [[stage.in_flight // stage.micro_batch for stage in stages]]
        return self._clock.numbers_in_flight(base.draft)


def _halved(number: int) -> list[int]:
    """So many, half of them, and so on, down to one."""
    rounds = [number] if number else []
    while rounds and rounds[-1] > 1:
        rounds.append(-(-rounds[-1] // 2))
    return rounds


def _units(rounds: list[int]) -> int:
    """First cycles that take as long as all together: those of each round are twice as long as the ones before."""
    return sum(number << at for at, number in enumerate(rounds))


def compile_kernels() -> None:
    """Those of cycles, by one operator that costs nothing: problems that are seen through do not anneal."""
    one, two = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    four, three = np.zeros((0, 1, 1, 1), np.int64), np.zeros((2, 1, 1), np.int64)
    costs = Costs(
        shape_of=one, link=two - 1, sums=np.zeros((6, 1, 1, 2), np.int64), workspace=two, transient=four,
        recomputes=one, update=np.zeros((1, 1, 2)),
        first_made=np.zeros(2, np.int64), first_reader=np.zeros(2, np.int64), reader=one, last_reader=one,
        sent=three, port_first=np.zeros(2, np.int64), ports=np.zeros((0, 2), np.int64),
        occupied=np.zeros((2, 0, 1), np.int64), received=three,
        limit=one + 1, mode=0, micro_batches=1, steady=0,
    )  # fmt: skip
    stages = np.array([[1, 0, 0, 1]], np.int64)
    look(costs, stages, False, ANY - 1)
    cheapest_cuts(one, one, 0)
    annealed(costs, stages, 0, stages, 0, False, (0, 1, 1), (HOT, COLD), ANYWHERE, 1.0, 1, one + 1)
