"""Iterated local search: better neighbours as long as there are some, then a few random moves, and again."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.algorithms.planning import idle_devices
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.units import quantity
from pipebench.domain.plan import Plan
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_search.annealing import Annealing
from pipebench_search.clock import Clock
from pipebench_search.draft import Draft, Drafting
from pipebench_search.every_draft import EveryDraft
from pipebench_search.guess import Guesses
from pipebench_search.moves import Neighbourhood
from pipebench_search.pack import Near, Packing
from pipebench_search.plugin import SearchOptions
from pipebench_search.rows import rows_to_start_from
from pipebench_search.score import Scored, Scorer

LOOKED_AT = 32
"""Neighbours that are scored before a plan counts as a local optimum: those of the best estimates."""
OTHERS = 8
"""So many of these are drawn from the rest."""
KICK = (1, 4)
"""The fewest and the most random moves from one local optimum to the start of the next descent."""
STARTS = 4
"""Plans from which descents start before random moves do: the best, and the best of other shapes."""
BATCH = 48
"""Neighbours that the clock looks at before the fastest of them is scored."""
CYCLE, LONGEST = 4000, 64_000
"""Neighbours that the clock looks at in the first cycle of annealing, each has twice as many; and the most."""
WALKED = 0.5
"""Where a cycle finds nothing better, random moves and descents get this multiple of what it spent."""
WITH_MOVES = 1.5
"""A look of the clock with its random move takes about so many times as long as the look."""
NEARLY = 1.03
"""What annealing finds is scored where the clock shows at most this share of the best time."""
LOOKS = 32
"""So many looks of the clock count as a plan that was scored."""
NEAR = 1.35
"""Random moves lead to plans whose estimate is within this factor of the best time."""
SQUEEZED = 200
"""Rows that are looked at where none fits in memory."""
EVEN = 8
"""Plans of even stages that are scored beside those that were handed over."""
REORDERED = 200_000
"""Tasks that branch and bound looks at, node by node, for a better order of the best plan."""
MIN_NODES = 500
"""Fewer are no search."""
TIME_IS_OVER = "the time is over"
LEAST_MARGIN_S = 0.3
"""Before the deadline; more where scoring a plan takes long."""


Neighbour = tuple[str, Draft]
"""The move that leads to it, and the draft."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scored plan with its draft, who made the plan that it comes from, and the moves since."""

    scored: Scored
    draft: Draft | None
    source: str
    moves: tuple[str, ...] = ()


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
    """One search. bound_ns: the proven bound. options: when it ends."""

    def __init__(self, context: Context, scorer: Scorer, bound_ns: int, options: SearchOptions) -> None:
        self._context, self._scorer = context, scorer
        self._drafting = Drafting(scorer.problem)
        self._near = Neighbourhood(scorer.model, self._drafting)
        self._guesses = Guesses(scorer.model)
        self._clock = Clock(scorer.model, self._drafting, self._guesses)
        self._packing = Packing(scorer.model, self._drafting, self._near, self._guesses)
        self._every = EveryDraft(scorer.model, self._drafting, self._guesses, self._near.micro_batches)
        self._random = random.Random(context.seed)
        self._annealing = Annealing(
            self._clock, self._drafting, self._near, self._random, self._permitted, self._late, self._look
        )
        self._bound_ns, self._gap, self._stall = bound_ns, options.gap, options.stall
        self._steps = options.steps * len(scorer.model.graph.operators)
        self._seen: set[Draft] = set()
        self._scored = self._looks = 0
        self._cycles = 0
        self._improved_at = self._look_s = 0.0
        self._longest_s = 0.0
        self._patient = False
        self._began_s = self._told_s = time.monotonic()
        self.best: Candidate | None = None
        self.first: Candidate | None = None
        self.ended = ""

    def run(self, seeds: list[tuple[str, Plan]]) -> None:
        """Search until something ends it; `ended` says what. seeds: name of the planner, and its plan.

        First descents; then every plan of a small problem, of others random moves and descents in turn.
        """
        found = self._start(seeds)
        self.first = self.best
        starts = diverse(found)
        optima = self._optima(starts[:1])
        if not self._every.small:
            self._anneal(share=0.5)
        optima += self._optima(starts[1:])
        if self._every.small and not self._over():
            self._look_at_all()
            self.first = self.first or self.best
        if self.best is None:
            self.ended = self.ended or "no plan to start from fits"
            return
        while not self._over():
            known, spent = self.best, self._spent
            self._anneal()
            if self.best is known:
                self._walk(optima, self._spent + (self._spent - spent) * WALKED)

    def _optima(self, starts: list[Candidate]) -> list[Candidate]:
        """Where descents from the plans to start from end."""
        optima: list[Candidate] = []
        for start in starts:
            if self._over():
                break
            optima.append(self._descend(start))
        return optima

    def _look_at_all(self) -> None:
        """Every plan of a small problem that may be faster."""
        self._patient = True
        for draft in self._every.drafts(lambda: None if self.best is None else self.best.scored.ns):
            if self._over():
                return
            if draft in self._seen:
                continue
            guess = self._guesses.of(draft)
            best = self.best
            self._context.count("drafts")
            if guess is None or (best is not None and not best.scored.tight and guess.least >= best.scored.ns):
                continue
            plan = self._drafting.plan_of(draft)
            if plan is None or not self._scorer.permitted(plan):
                continue
            self._seen.add(draft)
            scored = self._score(plan, None if best is None else best.scored.rank)
            if scored is not None:
                self._note(Candidate(scored, draft, "every plan", ()))
        self._patient = False
        if self._every.complete:
            self.ended = "every plan was looked at"

    def _walk(self, optima: list[Candidate], until: float) -> None:
        """Random moves and descents in turn, until so much is spent; at least once."""
        fruitless = 0
        while not self._over():
            optima.sort(key=lambda each: each.scored.rank)
            optima[:] = diverse(optima)
            if not optima:
                self.ended = "no plan has neighbours"
                return
            base = optima[0] if self._random.random() < 0.6 else self._random.choice(optima)
            kicked = self._kicked(base)
            if kicked is not None:
                fruitless = 0
                optima.append(self._descend(kicked))
            else:
                fruitless += 1
                if fruitless > 50:
                    self.ended = "no move leads to a plan that was not looked at"
            if self._spent >= until:
                return

    def _anneal(self, share: float = 1.0) -> None:
        """A cycle of annealing, twice as long as the one before, and a descent from what it finds.

        In turn from the plan that the search began with and from the best. share: of what is left, at most.
        """
        start = self.first if self._cycles % 2 == 0 else self.best
        if start is None or self._over() or not self._by_the_clock(start):
            return
        looks = min(CYCLE << self._cycles, LONGEST)
        within, began_s = self._looks_within(looks, start, share), time.monotonic()
        found = self._annealed(start, within)
        self._cycles, self._look_s = self._cycles + 1, (time.monotonic() - began_s) / within
        if found is not None and not self._over():
            self._descend(found)

    def _annealed(self, base: Candidate, looks: int) -> Candidate | None:
        """The best plan of a cycle."""
        assert base.draft is not None
        found: Candidate | None = None
        for step in self._annealing.cycle(base.draft, looks):
            assert self.best is not None
            plan = None if step.draft in self._seen else self._drafting.plan_of(step.draft)
            if plan is None or step.ns > NEARLY * self.best.scored.ns:
                continue
            self._seen.add(step.draft)
            scored = self._score(plan, None)
            if scored is None:
                continue
            made = Candidate(scored, step.draft, base.source, (*base.moves, *step.labels))
            self._note(made)
            if found is None or scored.rank < found.scored.rank:
                found = made
        return found

    def _by_the_clock(self, here: Candidate) -> bool:
        """Whether the clock tells plans like this one apart: any order of their tasks will do."""
        return here.draft is not None and self._scorer.orders_freely and self._clock.shows(here.draft)

    def _look(self) -> None:
        """One more look of the clock."""
        self._looks += 1
        self._context.count("neighbours")
        if self._looks % LOOKS == 0 and time.monotonic() - self._told_s >= 1.0:
            self._tell()

    def _looks_within(self, looks: int, start: Candidate, share: float) -> int:
        """So many looks, or fewer where less time or work is left."""
        left = float(looks)
        if self._steps:
            left = min(left, share * (self._steps - self._spent) * LOOKS)
        deadline_s, now_s = self._context.deadline_s, time.monotonic()
        if deadline_s is not None:
            if not self._cycles and start.draft is not None:
                self._clock.time_ns(start.draft)
                self._look_s = WITH_MOVES * (time.monotonic() - now_s)
            left = min(left, share * (deadline_s - LEAST_MARGIN_S - now_s) / max(self._look_s, 1e-6))
        return max(1, int(left))

    def _permitted(self, draft: Draft) -> bool:
        plan = self._drafting.plan_of(draft)
        return plan is not None and self._scorer.permitted(plan)

    def _start(self, seeds: list[tuple[str, Plan]]) -> list[Candidate]:
        found: list[Candidate] = []
        for source, plan in seeds:
            for kept in (True, False) if plan != plan.without_in_flight() else (False,):
                if self._over():
                    return found
                if self._scorer.permitted(plan):
                    self._take(self._score(plan, None, kept), self._drafting.draft_of(plan), source, (), found)
        for draft in rows_to_start_from(self._drafting, self._near.micro_batches, self._late):
            if self._over():
                return sorted(found, key=lambda each: each.scored.rank)
            self._begin(draft, "stages in a row", found)
        guessed: list[tuple[float, int, Draft]] = []
        for draft in self._near.seeds():
            guess = self._guesses.of(draft) if self._drafting.possible(draft) else None
            if guess is not None:
                guessed.append((guess.about, len(guessed), draft))
            if self._late() and found:
                break
        guessed.sort(key=lambda each: each[:2])
        scored = 0
        for _, _, draft in guessed:
            if self._over() or scored >= (EVEN if seeds else 3 * EVEN):
                break
            before = len(found)
            self._begin(draft, "even stages", found)
            scored += len(found) > before
        rows = [(about, draft) for about, _, draft in guessed[:SQUEEZED]]
        if any(self._packing.is_short(draft, about) for about, draft in rows[:EVEN]):
            for draft in self._packing.starts(self._late):
                if self._over():
                    break
                self._begin(draft, "packed operators", found)
        if not found and rows:
            self._squeeze([draft for _, draft in rows], found)
        return sorted(found, key=lambda each: each.scored.rank)

    def _begin(self, draft: Draft, source: str, found: list[Candidate]) -> None:
        """Score a plan to start from that was not looked at."""
        plan = self._drafting.plan_of(draft)
        if plan is not None and draft not in self._seen and self._scorer.permitted(plan):
            self._seen.add(draft)
            self._take(self._score(plan, None), draft, source, (), found)

    def _squeeze(self, drafts: list[Draft], found: list[Candidate]) -> None:
        """Where no row fits: from the one that lacks least memory to neighbours that lack less, until one fits."""
        here, lacks = None, None
        while drafts and not self._over():
            better = None
            for draft in drafts:
                plan = self._drafting.plan_of(draft)
                lack = None if plan is None else self._scorer.excess_bytes(plan)
                if plan is None or lack is None or (lack and lacks is not None and lack >= lacks):
                    continue
                if lack:
                    better, lacks = draft, lack
                else:
                    self._begin(draft, "stages that fit", found)
                    if found:
                        return
                if self._late():
                    return
            if better is None or better is here:
                return
            here = better
            drafts = [made for _, made in self._near.moves(here) if self._drafting.possible(made)]

    def _take(
        self,
        scored: Scored | None,
        draft: Draft | None,
        source: str,
        moves: tuple[str, ...],
        found: list[Candidate],
    ) -> None:
        if scored is None:
            return
        candidate = Candidate(scored, draft, source, moves)
        found.append(candidate)
        self._note(candidate)

    def _note(self, candidate: Candidate) -> None:
        if self.best is None or candidate.scored.rank < self.best.scored.rank:
            self.best, self._improved_at = candidate, self._spent
            self._context.offer(self.result())
            self._tell()

    def _descend(self, start: Candidate) -> Candidate:
        """A local optimum: the first better neighbour, again and again."""
        here = start
        while (better := self._better(here)) is not None:
            here = better
        return self._reordered(here) if here is self.best else here

    def _reordered(self, here: Candidate) -> Candidate:
        """The plan in a better order of its tasks, where branch and bound finds one."""
        nodes = REORDERED // max(1, self._scorer.tasks(here.scored.plan))
        if self._over() or nodes < MIN_NODES:
            return here
        scored = self._scorer.reorder(here.scored, nodes)
        if scored is None:
            return here
        found = Candidate(scored, here.draft, here.source, (*here.moves, "order of tasks"))
        self._note(found)
        return found

    def _better(self, here: Candidate) -> Candidate | None:
        assert here.draft is not None
        below = here.scored.rank
        looked = 0
        for label, draft in self._neighbours(here, below[1] if not below[0] else None):
            if self._over() or looked >= LOOKED_AT:
                return None
            self._seen.add(draft)
            plan = self._drafting.plan_of(draft)
            if plan is None or not self._scorer.permitted(plan):
                continue
            looked += 1
            scored = self._score(plan, below)
            if scored is not None:
                found = Candidate(scored, draft, here.source, (*here.moves, label))
                self._note(found)
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
        """Some at a time, those that the clock shows to be faster; in the end the others, by the clock."""
        assert here.draft is not None
        moves: dict[Draft, str] = {}
        for label, made in self._near.moves(here.draft):
            if made not in self._seen and self._drafting.possible(made):
                moves.setdefault(made, label)
        listed = list(moves.items())
        self._random.shuffle(listed)
        here_ns, about = self._clock.time_ns(here.draft), self._about_ns(here.draft)
        scale = here_ns / about if here_ns and about else 1.0
        slower: list[tuple[float, int, Neighbour]] = []
        for first in range(0, len(listed), BATCH):
            timed: list[tuple[float, int, Neighbour]] = []
            for at, (draft, label) in enumerate(listed[first : first + BATCH], start=first):
                if self._late():
                    return
                ns = self._time_ns(draft, scale)
                self._look()
                if ns is not None:
                    timed.append((ns, at, (label, draft)))
            timed.sort(key=lambda each: each[:2])
            for each in timed:
                if here_ns is not None and each[0] < here_ns:
                    yield each[2]
                else:
                    slower.append(each)
        yield from (each for _, _, each in sorted(slower, key=lambda each: each[:2]))

    def _time_ns(self, draft: Draft, scale: float) -> float | None:
        """What a draft takes by the clock; where the clock does not show it so much of the estimate."""
        if self._clock.shows(draft):
            return self._clock.time_ns(draft)
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
            if self._late():
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
        assert self.best is not None
        draft, labels = base.draft, base.moves
        most = NEAR * self.best.scored.ns
        plan: Plan | None = None
        for _ in range(self._random.randint(*KICK)):
            moves = [(label, made) for label, made in self._near.moves(draft)]
            self._random.shuffle(moves)
            for label, made in moves[:60]:
                if self._over():
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
        scored = self._score(plan, None)
        if scored is None:
            return None
        found = Candidate(scored, draft, base.source, labels)
        self._note(found)
        return found

    def _score(self, plan: Plan, below: tuple[bool, int] | None, kept: bool = False) -> Scored | None:
        began_s = time.monotonic()
        scored = self._scorer.score(plan, below, kept)
        self._scored += 1
        ended_s = time.monotonic()
        self._longest_s = max(self._longest_s, ended_s - began_s)
        if ended_s - self._told_s >= 1.0:
            self._tell()
        return scored

    @property
    def _spent(self) -> float:
        """Plans that were scored, and the looks of the clock in such plans."""
        return self._scored + self._looks / LOOKS

    def _late(self) -> bool:
        deadline_s = self._context.deadline_s
        if deadline_s is None:
            return False
        return time.monotonic() >= deadline_s - LEAST_MARGIN_S - 2.0 * self._longest_s

    def _over(self) -> bool:
        """Whether the gap, the number of plans or the time ends the search."""
        if self.best is not None and self.best.scored.ns <= self._bound_ns * (1.0 + self._gap):
            at_bound = self.best.scored.ns <= self._bound_ns
            self.ended = "the bound is reached" if at_bound else f"the gap of {self._gap:.2%} is reached"
        elif self._steps and self._spent >= self._steps:
            self.ended = f"{self._steps} plans were scored"
        elif self._given_up():
            self.ended = f"local optimum, {quantity(self._stall, 'plan')} brought no better one"
        elif self._late():
            self.ended = TIME_IS_OVER
        return bool(self.ended)

    def _given_up(self) -> bool:
        """Whether many plans have brought no better one; while all are looked at, that is no reason to end."""
        known = self.best is not None and not self._patient
        return known and 0 < self._stall <= self._spent - self._improved_at

    def _tell(self) -> None:
        """Progress as solvers show it: incumbent, bound, gap."""
        if self.best is None:
            return
        self._told_s = now_s = time.monotonic()
        best_ns, deadline_s = self.best.scored.ns, self._context.deadline_s
        done = self._spent / self._steps if self._steps else 0.0
        if deadline_s is not None:
            done = max(done, (now_s - self._began_s) / max(deadline_s - self._began_s, 1e-9))
        self._context.report(min(done, 1.0), self.line(best_ns))

    def line(self, best_ns: int) -> str:
        """Incumbent, bound and gap in words."""
        samples = self._scorer.problem.mini_batch / (best_ns / 1e9) if best_ns else 0.0
        gap = f"{best_ns / self._bound_ns - 1:.2%}" if self._bound_ns else "-"
        known = f"best {samples:.5g} samples/s ({best_ns / 1e9:.4g} s), bound {self._bound_ns / 1e9:.4g} s"
        return f"{known}, gap {gap}, {quantity(self._scored, 'plan')}"

    def result(self) -> PlanResult:
        """The best plan so far, and how it came about."""
        assert self.best is not None
        best = self.best.scored
        return PlanResult(
            plan=best.plan,
            schedule=best.schedule,
            scheduler=best.scheduler,
            claimed_s=best.ns / NS_PER_S,
            termination="limit" if self.ended == TIME_IS_OVER else "heuristic",
            notices=(*self._account(), *idle_devices(self._scorer.problem, best.plan)),
        )

    def _account(self) -> tuple[str, ...]:
        """Lines for the row: whose plan it began with, what the search gained, why it ended."""
        assert self.best is not None
        first, best = (self.first or self.best).scored, self.best.scored
        lines = [f"search ended: {self.ended or 'before its time'}; {self.line(best.ns)}"]
        if best.rank < first.rank:
            counted = Counter(self.best.moves)
            moves = ", ".join(f"{label} x {n}" if n > 1 else label for label, n in sorted(counted.items()))
            gain = f"{1 - best.ns / first.ns:.2%} less time" if best.ns < first.ns else "inside the reserve"
            of = f"of {self.best.source}" if self.best.source else ""
            source = (self.first or self.best).source
            lines.append(f"search improved on {source} ({first.ns / 1e9:.4g} s): {gain}")
            lines.append(f"its plan comes from that {of} by: {moves or 'another order of its tasks'}")
        else:
            lines.append(f"search found nothing better than the plan of {self.best.source}")
        return tuple(lines)
