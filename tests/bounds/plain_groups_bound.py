"""The bound from groups of devices spelt out naively: every partition, every size, every kind of replicas.

For async problems of `tests.builders.dag_problem` without alternatives and pins, on a flat cluster whose links
carry one byte a nanosecond.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from pipebench.bounds.groups import WEIGHTS
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.bounds.every_plan import partitions

Stage = tuple[int, int, Fraction]
"""Replicas in all copies, samples on a replica, and runs of the first one in the time of a mini-batch."""


class PlainGroups:
    """A problem, and whether its operators can be divided among its devices in a time."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._times = problem, CostModel(problem).times
        self._runs: dict[int, tuple[list[int], list[int]]] = {}
        graph, (costs,) = problem.profile.graph, problem.profile.costs
        self._names = [operator.name for operator in graph.operators]
        self._before = [set(before) for before in graph.predecessors]
        self._weights = [sum(graph.parameter_bytes[name] for name in op.parameters) for op in graph.operators]
        self._saved = [int(operator.saved_bytes_per_sample) for operator in costs.operators]
        self._tensors = [
            (producer, set(graph.consumers[at]), 2 * int(graph.tensors[at].forward_bytes_per_sample))
            for at, producer in enumerate(graph.producers)
        ]
        self._memory, self._size = problem.cluster.types[0].memory_bytes, problem.cluster.size
        every = [self._run(samples) for samples in range(1, problem.mini_batch + 1)]
        count = range(len(self._names))
        self._forward = [min(forward[op] for forward, _ in every) for op in count]
        self._back = [min(backward[op] for _, backward in every) for op in count]

    def _run(self, samples: int) -> tuple[list[int], list[int]]:
        if samples not in self._runs:
            forward, backward = self._times.at(samples)
            self._runs[samples] = forward.tolist(), backward.tolist()
        return self._runs[samples]

    def possible(self, time_ns: int) -> bool:
        """Whether some number of copies and some micro-batch size, or none in common, leave a division."""
        samples = self._problem.mini_batch
        sizes = [size for size in range(1, samples + 1) if samples % size == 0]
        for copies in (count for count in sizes if count <= self._size):
            for size in (0, *(size for size in sizes if samples // copies % size == 0)):
                if (size or self._down_and_up() <= time_ns) and self._divides(copies, size, time_ns):
                    return True
        return False

    def _divides(self, copies: int, size: int, time_ns: int) -> bool:
        there_are = self._size // copies
        known: dict[tuple[str, ...], int] = {}
        for groups in partitions(self._names):
            for group in map(tuple, groups):
                if group not in known:
                    held = {self._names.index(name) for name in group}
                    fits = (
                        count
                        for count in range(1, there_are + 1)
                        if self._holds(held, count, copies, size, time_ns)
                    )
                    known[group] = next(fits, there_are + 1)
            if sum(known[tuple(group)] for group in groups) <= there_are:
                return True
        return False

    def _holds(self, held: set[int], count: int, copies: int, size: int, time_ns: int) -> bool:
        return any(
            self._fits(held, list(self._stages(count, turns, copies, size)), size, time_ns)
            for turns in range(1, count + 1)
            if count % turns == 0
        )

    def _stages(self, count: int, turns: int, copies: int, size: int) -> Iterator[Stage]:
        """Every stage that can be on a group. A replica of several devices runs the same on each of them."""
        samples = self._problem.mini_batch // copies
        for micro_batch in [size] if size else [each for each in range(1, samples + 1) if samples % each == 0]:
            for replicas in (each for each in range(1, count + 1) if count % each == 0):
                runs = samples // micro_batch
                if turns > 1 and replicas == turns:
                    in_turn = Fraction(runs, turns) if size else Fraction(-(-runs // turns))
                    yield copies * replicas, micro_batch, in_turn
                elif turns == 1 and replicas <= micro_batch:
                    yield copies * replicas, -(-micro_batch // replicas), Fraction(runs)

    def _fits(self, held: set[int], stages: list[Stage], size: int, time_ns: int) -> bool:
        if not stages:
            return False
        samples = min(each for _, each, _ in stages) if size else 1
        crossing = sum(
            samples * bytes_each
            for producer, readers, bytes_each in self._tensors
            if (producer in held and readers - held) or (producer not in held and readers & held)
        )
        start = 0 if size else min(self._to(op, self._forward, behind=False) for op in held)
        end = 0 if size else min(self._to(op, self._back, behind=True) for op in held)
        lasts = [op for op in range(len(self._names)) if not any(op in before for before in self._before)]
        for last, (one, other), whole in product(lasts, WEIGHTS, (True, False)):
            least = [self._least(op, stages, last, one * self._memory, other * time_ns, whole) for op in held]
            if None in least:
                return False
            room = one * (time_ns - start - (0 if whole else end)) * self._memory
            room += other * (self._memory - crossing) * time_ns
            if sum(each for each in least if each is not None) > room:
                return False
        return True

    def _least(
        self, op: int, stages: list[Stage], last: int, one: int, other: int, whole: bool
    ) -> Fraction | None:
        """The least cost of an operator among what stages there may be; None where it fits in none."""
        found = []
        for replicas, samples, runs in stages:
            forward, backward = self._run(samples)
            state, saved = 3 * self._weights[op], samples * self._saved[op]
            if state + saved > self._memory:
                continue
            reduce = max(0, round(2 * (replicas - 1) * self._weights[op] / replicas) - 1)
            if not forward[op] or not backward[op] or op not in self._above(last) | {last}:
                saved = 0
            time = int(runs * (forward[op] + backward[op])) + (reduce if whole else 0)
            found.append(Fraction(one * time + other * (state + saved)))
        return min(found, default=None)

    def _above(self, op: int) -> set[int]:
        found, todo = set[int](), [op]
        while todo:
            new = self._before[todo.pop()] - found
            found |= new
            todo += new
        return found

    def _to(self, op: int, lengths: list[int], behind: bool) -> int:
        """The longest sum along a path to an operator, or from it, itself left out."""
        near = {other for other, before in enumerate(self._before) if op in before} if behind else self._before[op]
        return max((lengths[other] + self._to(other, lengths, behind) for other in near), default=0)

    def _down_and_up(self) -> int:
        both = [one + other for one, other in zip(self._forward, self._back, strict=True)]
        return max(self._to(op, both, behind=False) + both[op] for op in range(len(both)))
