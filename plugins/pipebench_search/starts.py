"""Plans that a search starts from: other planners', even stages, rows of a dynamic program, packed operators."""

from functools import partial
from math import inf

from pipebench.domain.plan import Plan
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.drafts.rows import rows_to_start_from
from pipebench_search.estimates.guess import Guesses
from pipebench_search.incumbent import Candidate, Incumbent
from pipebench_search.pack import Packing
from pipebench_search.score import Scored, Scorer

STARTING = 0.4
"""The share of the time after which no more plans to start from are looked for."""
NEAR = 1.35
"""Plans whose estimate is above the best time by this factor lead nowhere."""
SQUEEZED = 200
"""Rows that are looked at where none fits in memory."""
CLEARLY = 0.92
"""Copies of a row stand in for replicas of its stages where they take less than this share by the estimate."""
EVEN = 8
"""Plans of even stages that are scored beside those that were handed over."""


class Starts:
    """Those of one search. seen: drafts that it has looked at; those of the starts are added."""

    def __init__(
        self,
        known: Incumbent,
        scorer: Scorer,
        drafting: Drafting,
        near: Neighbourhood,
        guesses: Guesses,
        packing: Packing,
        seen: set[Draft],
    ) -> None:
        self._known, self._scorer, self._drafting = known, scorer, drafting
        self._near, self._guesses, self._packing, self._seen = near, guesses, packing, seen

    def begin(self, seeds: list[tuple[str, Plan]]) -> list[Candidate]:
        """All that are scored, the best first. seeds: name of the planner, and its plan."""
        found: list[Candidate] = []
        for source, plan in seeds:
            for kept in (True, False) if plan != plan.without_in_flight() else (False,):
                if self._known.over():
                    return found
                if self._scorer.permitted(plan):
                    seed = self._known.score(plan, None, kept)
                    self._take(seed, self._drafting.draft_of(plan), source, found)
        rows = self.even_stages(EVEN if seeds else 3 * EVEN, found)
        self.stages_in_a_row(found)
        if any(self._packing.is_short(draft, about) for about, draft in rows[:EVEN]):
            for draft in self._packing.starts(self._known.late):
                if self._known.over():
                    break
                self._begin(draft, "packed operators", found)
        if not found and rows:
            self._squeeze([draft for _, draft in rows], found)
        return sorted(found, key=lambda each: each.scored.rank)

    def even_stages(self, most: int, found: list[Candidate]) -> list[tuple[float, Draft]]:
        """So many plans of even stages, the best by the estimate. Gives the first of all, with their estimates."""
        guessed: list[tuple[float, int, Draft]] = []
        for draft in self._near.seeds():
            if self._known.late() and (guessed or found):
                break
            about = self._estimate(draft)
            if about is not None:
                guessed.append((about, len(guessed), draft))
        guessed.sort(key=lambda each: each[:2])
        scored = 0
        for _, _, draft in guessed:
            if self._known.over() or scored >= most or (scored and self._known.late(STARTING)):
                break
            before = len(found)
            self._begin(draft, "even stages", found)
            scored += len(found) > before
        return [(about, draft) for about, _, draft in guessed[:SQUEEZED]]

    def even_rows(self) -> list[Draft]:
        """Rows of even stages on all devices, and copies of them in their place where that is faster, those first
        that take least by the estimate.
        """
        guessed: list[tuple[float, int, Draft]] = []
        for row in self._near.even_rows():
            about, chosen = self._estimate(row), row
            # Stages of copies are nearer to each other; the estimate has to say clearly that this helps.
            most = inf if about is None else about * CLEARLY
            for copies in self._near.as_copies(row):
                estimate = self._estimate(copies)
                if estimate is not None and estimate < most:
                    about, chosen, most = estimate, copies, estimate
            if about is not None:
                guessed.append((about, len(guessed), chosen))
        return [draft for _, _, draft in sorted(guessed, key=lambda each: each[:2])]

    def _estimate(self, draft: Draft) -> float | None:
        """What it takes, about; None where there is no such plan."""
        guess = self._guesses.of(draft) if self._drafting.possible(draft) else None
        return None if guess is None else guess.about

    def stages_in_a_row(self, found: list[Candidate]) -> None:
        """The rows of a dynamic program, without those that take far longer than the best plan in any order."""
        rows_are_late = partial(self._known.late, STARTING)
        for draft in rows_to_start_from(self._drafting, self._near.micro_batches, rows_are_late):
            if self._known.over():
                return
            guess, best = self._guesses.of(draft), self._known.best
            if guess is None or best is None or guess.least <= NEAR * best.scored.ns:
                self._begin(draft, "stages in a row", found)

    def _begin(self, draft: Draft, source: str, found: list[Candidate]) -> None:
        """Score a plan to start from that was not looked at."""
        plan = self._drafting.plan_of(draft)
        if plan is not None and draft not in self._seen and self._scorer.permitted(plan):
            self._seen.add(draft)
            self._take(self._known.score(plan, None), draft, source, found)

    def _squeeze(self, drafts: list[Draft], found: list[Candidate]) -> None:
        """Where no row fits: from the one that lacks least memory to neighbours that lack less, until one fits."""
        here, lacks = None, None
        while drafts and not self._known.over():
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
                if self._known.late():
                    return
            if better is None or better is here:
                return
            here = better
            drafts = [made for _, made in self._near.moves(here) if self._drafting.possible(made)]

    def _take(self, scored: Scored | None, draft: Draft | None, source: str, found: list[Candidate]) -> None:
        if scored is not None:
            candidate = Candidate(scored, draft, source)
            found.append(candidate)
            self._known.note(candidate)
