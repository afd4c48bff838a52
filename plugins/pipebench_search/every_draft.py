"""Every plan of a small problem that may be faster than the best one: branch and bound over drafts."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import Problem
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.estimates.guess import Guesses

MOST_OPERATORS, MOST_DEVICES = 6, 8
"""Problems with more are not small."""
MOST_LOOKED_AT = 100_000
"""Beginnings of drafts, and drafts, that are looked at."""

Below = Callable[[], int | None]
"""The time of the best plan so far, in ns; None while there is none."""


def is_small(problem: Problem) -> bool:
    """Whether a problem has few enough plans to look at all of them."""
    return len(problem.profile.graph.operators) <= MOST_OPERATORS and problem.cluster.size <= MOST_DEVICES


class EveryDraft:
    """The drafts of one problem: partitions into stages, groups of devices, copies, and how each stage runs.

    Stages in a row by order edges, relayed tensors and gaps between groups are not among them: those without can
    do all that they can.
    """

    def __init__(
        self, model: CostModel, drafting: Drafting, guesses: Guesses, micro_batches: Sequence[int]
    ) -> None:
        self._problem, self._drafting, self._guesses = model.problem, drafting, guesses
        self._model = model
        self._micro_batches = tuple(micro_batches)
        self._sync = self._problem.regime.mode == "sync"
        self._looked = 0
        self._known: dict[tuple[object, ...], tuple[list[tuple[Part, int]], int]] = {}
        self.small, self.complete = is_small(self._problem), False

    def drafts(self, below: Below) -> Iterator[Draft]:
        """Those that may take less; `complete` is set where none was left out."""
        self._looked = 0
        order = tuple(self._model.graph.topological)
        for parts in _partitions(order):
            for homes in _homes(len(parts)):
                for draft in self._placed(parts, homes, below):
                    if self._looked > MOST_LOOKED_AT:
                        return
                    yield draft
                if self._looked > MOST_LOOKED_AT:
                    return
        self.complete = True

    def _placed(self, contents: list[tuple[int, ...]], homes: tuple[int, ...], below: Below) -> Iterator[Draft]:
        """Groups of all sizes, in every order where it matters where they stand; copies."""
        count, groups = self._problem.cluster.size, max(homes) + 1
        orders = list(permutations(range(groups))) if len(self._problem.cluster.levels) > 1 else [range(groups)]
        for sizes in product(range(1, count + 1), repeat=groups):
            if sum(sizes) > count:
                continue
            for copies in range(1, count // sum(sizes) + 1):
                if self._problem.mini_batch % copies:
                    continue
                for places in orders:
                    at = tuple(places[home] for home in homes)
                    stand = tuple(sizes[list(places).index(place)] for place in range(groups))
                    yield from self._run(contents, at, stand, copies, below)

    def _run(
        self,
        contents: list[tuple[int, ...]],
        homes: tuple[int, ...],
        sizes: tuple[int, ...],
        copies: int,
        below: Below,
    ) -> Iterator[Draft]:
        """Stages of these operators on these groups in every manner, as long as no group is late."""
        offered = [
            self._offered(Draft((), sizes, copies), operators, home)
            for operators, home in zip(contents, homes, strict=True)
        ]
        if not all(manners for manners, _ in offered):
            return
        least = [busy for _, busy in offered]
        load = [0] * len(sizes)
        for home, busy in zip(homes, least, strict=True):
            load[home] += busy
        chosen: list[Part] = []

        def branch(at: int) -> Iterator[Draft]:
            self._looked += 1
            limit = below()
            if self._looked > MOST_LOOKED_AT or (limit is not None and max(load) >= limit):
                return
            if at == len(offered):
                yield Draft(tuple(chosen), sizes, copies)
                return
            home = homes[at]
            for part, busy in offered[at][0]:
                if not self._sync and chosen and part.micro_batch != chosen[0].micro_batch:
                    continue
                load[home] += busy - least[at]
                chosen.append(part)
                yield from branch(at + 1)
                chosen.pop()
                load[home] -= busy - least[at]

        yield from branch(0)

    def _offered(self, draft: Draft, operators: tuple[int, ...], group: int) -> tuple[list[tuple[Part, int]], int]:
        """What `_parts` gives, and the least of its times. It depends on the group and the devices in use."""
        sizes = draft.sizes
        key = operators, group, sizes[group], sum(sizes[:group]), sum(sizes), draft.copies
        if key not in self._known:
            parts = list(self._parts(draft, operators, group))
            self._known[key] = parts, min((busy for _, busy in parts), default=0)
        return self._known[key]

    def _parts(self, draft: Draft, operators: tuple[int, ...], group: int) -> Iterator[tuple[Part, int]]:
        """A stage in every manner that is possible, with the ns for which it keeps its devices busy."""
        samples = self._problem.mini_batch // draft.copies
        modes: tuple[ReplicaMode, ...] = ("split", "round_robin")
        alike: set[tuple[object, ...]] = set()
        for way in self._drafting.ways:
            for micro_batch in self._micro_batches:
                for mode in modes if draft.sizes[group] > way.tensor_parallel else modes[:1]:
                    part = Part(operators, group, way, micro_batch, mode)
                    one = Draft((Part(operators, 0, way, micro_batch, mode),), (draft.sizes[group],), draft.copies)
                    if not self._drafting.possible(one):
                        continue
                    key = way.tensor_parallel, way.recompute, way.choice_of(operators), micro_batch, mode
                    if key in alike:
                        continue
                    alike.add(key)
                    try:
                        times = self._guesses.stage_times(draft, part)
                    except PipebenchError:
                        continue
                    turns = draft.sizes[group] // way.tensor_parallel if mode == "round_robin" else 1
                    busy = samples // micro_batch * times.period // turns
                    overlaps = self._problem.overlap
                    yield part, 0 if overlaps else busy + (times.all_reduce if self._sync else 0)


def _partitions(order: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """All ways to put operators into stages; stages in the order of their first operator, few stages first."""
    found = sorted(_numbered(len(order)), key=lambda numbers: (max(numbers), numbers))
    for numbers in found:
        yield [
            tuple(op for op, stage in zip(order, numbers, strict=True) if stage == number)
            for number in range(max(numbers) + 1)
        ]


def _homes(stages: int) -> Iterator[tuple[int, ...]]:
    """All ways to put stages on groups, which are numbered by their first stage."""
    yield from _numbered(stages)


def _numbered(count: int) -> Iterator[tuple[int, ...]]:
    """Restricted growth strings: each number is at most one above the largest before it."""
    if count == 1:
        yield (0,)
        return
    for numbers in _numbered(count - 1):
        for number in range(max(numbers) + 2):
            yield (*numbers, number)
