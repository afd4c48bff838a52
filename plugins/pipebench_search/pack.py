"""Plans compared by what they take about, memory included, and descents by that alone: no order is made."""

import heapq
from collections.abc import Callable, Iterable

from pipebench.costs.model import CostModel
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.guess import Guesses
from pipebench_search.estimates.pace import pace_of

Near = tuple[float, str, Draft]
"""What a draft takes about where memory is no matter, the move that leads to it, and the draft."""
Worth = tuple[int, float]
"""Bytes that devices lack, and nanoseconds of a mini-batch, about. Smaller is better."""

PACED = 256
"""Drafts of one neighbourhood whose memory is looked at."""
MOST_SINGLE = 32
"""Operators of a problem for which there are plans of single operators to start from."""
PACKINGS = 3
"""Micro-batch sizes of these."""
STEPS = 60
"""Of a descent by estimates."""


class Packing:
    """Drafts of one problem by what they take about with the memory that they have."""

    def __init__(self, model: CostModel, drafting: Drafting, near: Neighbourhood, guesses: Guesses) -> None:
        self._model, self._drafting, self._near, self._guesses = model, drafting, near, guesses

    def worth(self, draft: Draft, about_ns: float) -> Worth | None:
        """None where it has no plan."""
        plan = self._drafting.plan_of(draft)
        pace = None if plan is None else pace_of(self._model, plan)
        return None if pace is None else (pace.lack_bytes, about_ns + pace.later_ns)

    def is_short(self, draft: Draft, about_ns: float) -> bool:
        """Whether memory slows it, or does not hold it."""
        return self.worth(draft, about_ns) != (0, about_ns)

    def ranked(self, found: Iterable[Near], count: int) -> tuple[list[Near], list[Near]]:
        """The `count` that take least; the rest. Those that lack memory are left out where that was seen."""
        each = list(found)
        heap = [(about, at, False) for at, (about, _, _) in enumerate(each)]
        heapq.heapify(heap)
        first: list[Near] = []
        looked = 0
        while heap and len(first) < count:
            about, at, known = heapq.heappop(heap)
            if known or looked >= PACED:
                first.append(each[at])
                continue
            looked += 1
            worth = self.worth(each[at][2], about)
            if worth is not None and not worth[0]:
                heapq.heappush(heap, (worth[1], at, True))
        return first, [each[at] for _, at, _ in sorted(heap)]

    def descent(self, draft: Draft, late: Callable[[], bool]) -> tuple[Worth, Draft] | None:
        """A local optimum by worth; None where the draft has none."""
        guess = self._guesses.of(draft) if self._drafting.possible(draft) else None
        here = None if guess is None else self.worth(draft, guess.about)
        if here is None:
            return None
        for _ in range(STEPS):
            better = None if late() else self._better(draft, here)
            if better is None:
                break
            here, draft = better
        return here, draft

    def _better(self, draft: Draft, here: Worth) -> tuple[Worth, Draft] | None:
        """The first better neighbour, in the order of what they take about without memory."""
        guessed: list[tuple[float, int, Draft]] = []
        for _, made in self._near.moves(draft):
            guess = self._guesses.of(made) if self._drafting.possible(made) else None
            if guess is not None and (here[0] or guess.about < here[1]):
                guessed.append((guess.about, len(guessed), made))
        guessed.sort(key=lambda each: each[:2])
        for about, _, made in guessed[:PACED]:
            worth = self.worth(made, about)
            if worth is not None and worth < here:
                return worth, made
        return None

    def starts(self, late: Callable[[], bool]) -> list[Draft]:
        """Single operators on single devices, packed by work and then by worth; the best first.

        Micro-batches are those that fit best at first. Each operator is recomputed where that may be: so
        it holds least.
        """
        alone = [way for way in self._drafting.ways if way.tensor_parallel == 1]
        if len(self._near.work) > MOST_SINGLE or not alone:
            return []
        way = next((each for each in alone if each.recompute == "stage"), alone[0])
        homes = self._near.balanced_homes()
        sizes = (1,) * (max(homes.values()) + 1)
        found: list[tuple[Worth, int, Draft]] = []
        for size in self._near.micro_batches:
            draft = Draft(tuple(Part((op,), home, way, size) for op, home in homes.items()), sizes)
            guess = self._guesses.of(draft) if self._drafting.possible(draft) else None
            worth = None if guess is None else self.worth(draft, guess.about)
            if worth is not None:
                found.append((worth, len(found), draft))
        found.sort(key=lambda each: each[:2])
        packed = [self.descent(draft, late) for _, _, draft in found[:PACKINGS]]
        return [draft for _, draft in sorted(filter(None, packed), key=lambda each: each[0])]
