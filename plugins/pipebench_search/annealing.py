"""Simulated annealing by the clock (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983): no plan is simulated."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipebench_search.clock import Clock
from pipebench_search.draft import Draft, Drafting
from pipebench_search.moves import Neighbourhood

HOT, COLD = 0.02, 0.0005
"""By such a share a draft may take longer to be gone on from with a chance of 1/e: at first, and in the end."""
CLEARLY = 0.998
"""A draft is handed on where it takes less than this share of what the last one took."""
TRIED = 100
"""Random moves until there is one that the clock shows."""


@dataclass(frozen=True, slots=True)
class Step:
    """A draft, and what it takes by the clock."""

    draft: Draft
    ns: int


class Annealing:
    """Cycles of random moves. permitted: whether a draft's plan may be looked at. late: whether to end.

    looked: called for each draft that the clock looks at.
    """

    def __init__(
        self,
        clock: Clock,
        drafting: Drafting,
        near: Neighbourhood,
        draw: random.Random,
        permitted: Callable[[Draft], bool],
        late: Callable[[], bool],
        looked: Callable[[], None],
    ) -> None:
        self._clock, self._drafting, self._near, self._draw = clock, drafting, near, draw
        self._permitted, self._late, self._looked = permitted, late, looked

    def cycle(self, start: Draft, looks: int) -> Iterator[Step]:
        """From a draft that the clock shows, with so many looks at neighbours, ever colder.

        Drafts that are clearly faster than all before them in the cycle, and the fastest.
        """
        ns = self._clock.time_ns(start)
        if ns is None:
            return
        here = lowest = told = Step(start, ns)
        moves = self._near.drawn(start, self._draw)
        for done in range(looks):
            if self._late():
                break
            made = self._made(moves)
            heat = HOT * (COLD / HOT) ** (done / looks)
            if made is None or self._draw.random() >= _chance(here.ns, made.ns, heat):
                continue
            if not self._permitted(made.draft):
                continue
            here, moves = made, self._near.drawn(made.draft, self._draw)
            if here.ns < lowest.ns:
                lowest = here
            if lowest.ns < CLEARLY * told.ns:
                told = lowest
                yield told
        if lowest is not told:
            yield lowest

    def _made(self, moves: Iterator[tuple[str, Draft]]) -> Step | None:
        """A neighbour that the clock shows; None where it does not fit in memory, or there is none."""
        for _, (_, draft) in zip(range(TRIED), moves, strict=False):
            if self._drafting.possible(draft) and self._clock.shows(draft):
                self._looked()
                ns = self._clock.time_ns(draft)
                return None if ns is None else Step(draft, ns)
        return None


def _chance(here_ns: int, made_ns: int, heat: float) -> float:
    """Of going on to a draft; 1 where it is no slower. What takes no time counts as 1 ns."""
    return math.exp(min(0.0, math.log(max(1, here_ns) / max(1, made_ns)) / heat))
