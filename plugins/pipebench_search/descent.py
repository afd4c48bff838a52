"""Local search: annealing of stages in a row, descents to better neighbours, random moves; and again."""

import random
from collections.abc import Callable, Iterator
from itertools import zip_longest

from pipebench.domain.plan import Plan
from pipebench.hooks.context import Context
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.clock import Clock
from pipebench_search.estimates.guess import Guesses
from pipebench_search.every_draft import EveryDraft
from pipebench_search.incumbent import Candidate, Incumbent
from pipebench_search.line.cycles import Cycles
from pipebench_search.pack import Near, Packing
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import Scorer
from pipebench_search.starts import NEAR, Starts

LOOKED_AT = 32
"""Neighbours that are scored before a plan counts as a local optimum: those of the best estimates."""
OTHERS = 8
"""So many of these are drawn from the rest."""
KICK = (1, 4)
"""The fewest and the most random moves from one local optimum to the start of the next descent."""
STARTS = 4
"""Plans from which annealing and descents start: the best, and the best of other shapes."""
BATCH = 48
"""Neighbours that the clock looks at before the fastest of them is scored."""
HARDLY = 1.1
"""Neighbours that take longer by the clock by this factor are not looked at."""
DESCENDING = 0.2
"""The share of the time that is left that each descent from a plan to start from takes, beside annealing."""
IN_VAIN = 5
"""After so many cycles without a better plan there are no more."""
WALKED = 0.5
"""Where a cycle finds nothing better, random moves and descents get this multiple of what it spent."""
REORDERED = 200_000
"""Tasks that branch and bound looks at, node by node, for a better order of the best plan."""
NODE_S, REORDERING = 25e-6, 0.1
"""What it takes for each of them, and the share of the time that is left that it may take."""
MIN_NODES = 500
"""Fewer are no search."""


Neighbour = tuple[str, Draft]
"""The move that leads to it, and the draft."""


def diverse(found: list[Candidate]) -> list[Candidate]:
    """The best, and the best of other shapes; `found` is in order."""
    shapes: dict[object, Candidate] = {}
    for each in found:
        if each.draft is not None:
            parts = each.draft.parts
            shape = len(parts), each.draft.sizes, each.draft.copies, parts[0].micro_batch
            shapes.setdefault(shape, each)
    return list(shapes.values())[:STARTS]


class LocalSearch:
    """One search for the plan `known.best`. bound_ns: the proven bound. options: when it ends."""

    def __init__(self, context: Context, scorer: Scorer, bound_ns: int, options: SearchOptions) -> None:
        self.known = Incumbent(context, scorer, bound_ns, options)
        self._context, self._scorer = context, scorer
        self._drafting = Drafting(scorer.problem)
        self._near = Neighbourhood(scorer.model, self._drafting)
        self._guesses = Guesses(scorer.model)
        self._clock = Clock(scorer.model, self._drafting, self._guesses)
        self._packing = Packing(scorer.model, self._drafting, self._near, self._guesses)
        self._every = EveryDraft(scorer.model, self._drafting, self._guesses, self._near.micro_batches)
        self._random = random.Random(context.seed)
        self._seen: set[Draft] = set()
        self._starts = Starts(
            self.known, scorer, self._drafting, self._near, self._guesses, self._packing, self._seen
        )
        self._cycles = Cycles(self.known, scorer, self._drafting, self._guesses, self._clock, self._random)

    def run(self, seeds: list[tuple[str, Plan]]) -> None:
        """Search until something ends it; `ended` says what. seeds: name of the planner, and its plan.

        A small problem is seen through. A search that is given up begins again, from other plans to start from.
        """
        found = self._starts.begin(seeds)
        self.known.first = self.known.best
        self._once(diverse(found))
        while found and self.known.begins_again():
            self._seen.clear()
            some = self._random.sample(range(len(found)), -(-len(found) // 2))
            self._once(diverse([found[at] for at in sorted(some)]))

    def _once(self, starts: list[Candidate]) -> None:
        """Of a small problem descents and every plan; of others cycles of annealing, the longer ones from what the
        shorter ones found, and descents. Then cycles, and where these find nothing better random moves, too.
        """
        rows: list[Candidate] = []
        cycles = self._cycles
        optima = [] if cycles.only_rows else self._optima(starts[:1])
        if not self._every.small:
            bases = diverse(sorted([*optima, *starts], key=lambda each: each.scored.rank))
            bases = [each for each in bases if cycles.may_begin(each)]
            others = self._starts.even_rows() if bases and not cycles.only_rows else []
            loops = cycles.in_loops(bases[0], others) if bases else []
            starts_in_turn = [each for pair in zip_longest(bases, loops) for each in pair if each is not None]
            rows = self._ordered(cycles.in_turn(starts_in_turn))
        optima = starts if rows and cycles.only_rows else [*optima, *self._optima(starts[len(optima) :])]
        if self._every.small and not self.known.over():
            self._look_at_all()
            self.known.first = self.known.first or self.known.best
        if self.known.best is None:
            self.known.ended = self.known.ended or "no plan to start from fits"
            return
        count = in_vain = 0
        while not self.known.over():
            known, spent = self.known.best, self.known.spent
            bases = [*rows[:1], *(each for each in diverse(optima) if cycles.may_begin(each))]
            if bases and in_vain < IN_VAIN:
                base = bases[0 if count % 2 else count // 2 % len(bases)]
                rows += self._ordered(cycles.one(base, 1 + count))
                rows.sort(key=lambda each: each.scored.rank)
                count, in_vain = count + 1, in_vain + 1 if self.known.best is known else 0
                if cycles.only_rows:
                    continue
            if self.known.best is known:
                self._walk(optima, self.known.spent + (self.known.spent - spent) * WALKED)

    def _ordered(self, found: list[Candidate]) -> list[Candidate]:
        """The same; where the best plan is among them, it is tried in better orders of its tasks."""
        for each in found:
            if self.known.best is each:
                self._reordered(each)
        return found

    def _optima(self, starts: list[Candidate]) -> list[Candidate]:
        """Where descents from the plans to start from end: of a small problem in local optima."""
        optima: list[Candidate] = []
        for start in starts:
            if self.known.over():
                break
            late = self.known.over if self._every.small else self.known.late_after(DESCENDING)
            optima.append(self._descend(start, late))
        return optima

    def _look_at_all(self) -> None:
        """Every plan of a small problem that may be faster."""
        self.known.patient = True
        for draft in self._every.drafts(lambda: None if self.known.best is None else self.known.best.scored.ns):
            if self.known.over():
                return
            if draft in self._seen:
                continue
            guess = self._guesses.of(draft)
            best = self.known.best
            self._context.count("drafts")
            if guess is None or (best is not None and not best.scored.tight and guess.least >= best.scored.ns):
                continue
            plan = self._drafting.plan_of(draft)
            if plan is None or not self._scorer.permitted(plan):
                continue
            self._seen.add(draft)
            scored = self.known.score(plan, None if best is None else best.scored.rank)
            if scored is not None:
                self.known.note(Candidate(scored, draft, "every plan", ()))
        self.known.patient = False
        if self._every.complete:
            self.known.ended = "every plan was looked at"

    def _walk(self, optima: list[Candidate], until: float) -> None:
        """Random moves and descents in turn, until so much is spent; at least once."""
        fruitless = 0
        while not self.known.over():
            optima.sort(key=lambda each: each.scored.rank)
            optima[:] = diverse(optima)
            if not optima:
                self.known.ended = "no plan has neighbours"
                return
            base = optima[0] if self._random.random() < 0.6 else self._random.choice(optima)
            kicked = self._kicked(base)
            if kicked is None:
                fruitless += 1
                if fruitless > 50:
                    self.known.ended = "no move leads to a plan that was not looked at"
                continue
            fruitless = 0
            optima.append(self._descend(kicked))
            if self.known.spent >= until:
                return

    def _by_the_clock(self, here: Candidate) -> bool:
        """Whether the clock tells plans like this one apart: any order of their tasks will do."""
        return here.draft is not None and self._scorer.orders_freely and self._clock.shows(here.draft)

    def _descend(self, start: Candidate, late: Callable[[], bool] = lambda: False) -> Candidate:
        """A local optimum: the first better neighbour, again and again. late: whether to end before that."""
        here = start
        while not late() and (better := self._better(here, late)) is not None:
            here = better
        return self._reordered(here) if here is self.known.best else here

    def _reordered(self, here: Candidate) -> Candidate:
        """The plan in a better order of its tasks, where branch and bound finds one."""
        looks = self.known.in_time(REORDERED, NODE_S, REORDERING)
        nodes = looks // max(1, self._scorer.tasks(here.scored.plan))
        if self.known.over() or nodes < MIN_NODES:
            return here
        scored = self._scorer.reorder(here.scored, nodes)
        if scored is None:
            return here
        found = Candidate(scored, here.draft, here.source, (*here.moves, "order of tasks"))
        self.known.note(found)
        return found

    def _better(self, here: Candidate, late: Callable[[], bool]) -> Candidate | None:
        assert here.draft is not None
        below = here.scored.rank
        looked = 0
        for label, draft in self._neighbours(here, below[1] if not below[0] else None):
            if self.known.over() or late() or looked >= LOOKED_AT:
                return None
            self._seen.add(draft)
            plan = self._drafting.plan_of(draft)
            if plan is None or not self._scorer.permitted(plan):
                continue
            looked += 1
            scored = self.known.score(plan, below)
            if scored is not None:
                found = Candidate(scored, draft, here.source, (*here.moves, label))
                self.known.note(found)
                return found
        return None

    def _neighbours(self, here: Candidate, limit_ns: int | None) -> Iterator[Neighbour]:
        """Neighbours that were not looked at and may take less than the limit, the most promising first."""
        assert here.draft is not None
        if self._by_the_clock(here):
            yield from self._by_clock(here)
            return
        for _, label, draft in self._by_estimate(here.draft, limit_ns):
            if draft not in self._seen:
                yield label, draft

    def _by_clock(self, here: Candidate) -> Iterator[Neighbour]:
        """Some at a time, those that the clock shows to be faster; in the end those hardly slower."""
        assert here.draft is not None
        moves: dict[Draft, str] = {}
        for label, made in self._near.moves(here.draft):
            if made not in self._seen and self._drafting.possible(made):
                moves.setdefault(made, label)
        listed = list(moves.items())
        self._random.shuffle(listed)
        here_ns, about = self._clock.time_ns(here.draft), self._about_ns(here.draft)
        scale = here_ns / about if here_ns and about else 1.0
        most_ns = None if here_ns is None or here.scored.tight else int(here_ns * HARDLY)
        slower: list[tuple[float, int, Neighbour]] = []
        for first in range(0, len(listed), BATCH):
            timed: list[tuple[float, int, Neighbour]] = []
            for at, (draft, label) in enumerate(listed[first : first + BATCH], start=first):
                if self.known.late():
                    return
                ns = self._time_ns(draft, scale, most_ns)
                self.known.look()
                if ns is not None:
                    timed.append((ns, at, (label, draft)))
            timed.sort(key=lambda each: each[:2])
            for each in timed:
                if here_ns is not None and each[0] < here_ns:
                    yield each[2]
                else:
                    slower.append(each)
        yield from (each for _, _, each in sorted(slower, key=lambda each: each[:2]))

    def _time_ns(self, draft: Draft, scale: float, most_ns: int | None) -> float | None:
        """What a draft takes by the clock; where the clock does not show it so much of the estimate.

        most_ns: None for what takes longer by the clock.
        """
        if self._clock.shows(draft):
            return self._clock.time_ns(draft, most_ns)
        about = self._about_ns(draft)
        return None if about is None else scale * about

    def _about_ns(self, draft: Draft) -> float | None:
        """The estimate, memory included; None where it does not fit."""
        guess = self._guesses.of(draft)
        worth = None if guess is None else self._packing.worth(draft, guess.about)
        return None if worth is None or worth[0] else worth[1]

    def _by_estimate(self, draft: Draft, limit_ns: int | None) -> list[Near]:
        """Neighbours that may take less than the limit, by what they take about; a few of the rest are drawn."""
        found: dict[Draft, Near] = {}
        for label, made in self._near.moves(draft):
            if self.known.late():
                break
            if made in found or made in self._seen or not self._drafting.possible(made):
                continue
            guess = self._guesses.of(made)
            self._context.count("neighbours")
            if guess is not None and (limit_ns is None or guess.least < limit_ns):
                found[made] = guess.about, label, made
        first, rest = self._packing.ranked(found.values(), LOOKED_AT - OTHERS)
        drawn = self._random.sample(rest, min(OTHERS, len(rest)))
        return [*first, *drawn, *rest]

    def _kicked(self, base: Candidate) -> Candidate | None:
        """A plan some random moves away that is valid."""
        assert base.draft is not None
        assert self.known.best is not None
        draft, labels = base.draft, base.moves
        most = NEAR * self.known.best.scored.ns
        plan: Plan | None = None
        for _ in range(self._random.randint(*KICK)):
            moves = [(label, made) for label, made in self._near.moves(draft)]
            self._random.shuffle(moves)
            for label, made in moves[:60]:
                if self.known.over():
                    return None
                guess = self._guesses.of(made) if self._drafting.possible(made) else None
                if guess is None or guess.least > most:
                    continue
                tried = self._drafting.plan_of(made)
                if tried is None or not self._scorer.permitted(tried):
                    continue
                draft, plan, labels = made, tried, (*labels, label)
                break
        if plan is None or draft in self._seen:
            return None
        self._seen.add(draft)
        scored = self.known.score(plan, None)
        if scored is None:
            return None
        found = Candidate(scored, draft, base.source, labels)
        self.known.note(found)
        return found
