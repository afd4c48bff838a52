"""Simulated annealing by the clock (Kirkpatrick, Gelatt and Vecchi, Science 220, 1983): no plan is simulated."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipebench_search.clock import Clock
from pipebench_search.draft import Draft, Drafting
from pipebench_search.moves import Neighbourhood

HOT, COLD = 0.02, 0.001
"""A draft that takes so much longer, as a share, is taken with a chance of 1/e: at first, and in the end."""


@dataclass(frozen=True, slots=True)
class Step:
    """A draft that no draft of its cycle before it was faster than, by the clock, and the moves that led to it."""

    draft: Draft
    labels: tuple[str, ...]


class Annealing:
    """Cycles of random moves. late: whether to end. looked: called for each draft that the clock looks at."""

    def __init__(
        self,
        clock: Clock,
        drafting: Drafting,
        near: Neighbourhood,
        draw: random.Random,
        late: Callable[[], bool],
        looked: Callable[[], None],
    ) -> None:
        self._clock, self._drafting, self._near, self._draw = clock, drafting, near, draw
        self._late, self._looked = late, looked

    def cycle(self, start: Draft, looks: int) -> Iterator[Step]:
        """From a draft that the clock shows, with so many looks at neighbours, ever colder."""
        here, labels = start, tuple[str, ...]()
        here_ns = self._clock.time_ns(start)
        if here_ns is None:
            return
        lowest_ns = here_ns
        done = 0
        while done < looks:
            moves = list(self._near.moves(here))
            self._draw.shuffle(moves)
            moved = False
            for label, made in moves:
                if done >= looks or self._late():
                    return
                if not self._drafting.possible(made) or not self._clock.shows(made):
                    continue
                done += 1
                self._looked()
                ns = self._clock.time_ns(made)
                heat = HOT * (COLD / HOT) ** (done / looks)
                if ns is None or self._draw.random() >= math.exp(min(0.0, math.log(here_ns / ns) / heat)):
                    continue
                here, here_ns, labels, moved = made, ns, (*labels, label), True
                if ns < lowest_ns:
                    lowest_ns = ns
                    yield Step(made, labels)
                break
            if not moved:
                return
