"""The bound from groups of devices spelt out naively: every partition, every size, every stage for each operator.

For problems of `tests.builders.dag_problem` without alternatives and pins, on a flat cluster whose links carry one
byte a nanosecond.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.bounds.every_plan import partitions


@dataclass(frozen=True)
class Plans:
    """A kind of plans: copies, and the micro-batch of the last operator, which in a pattern all stages have."""

    copies: int
    pattern: bool
    size: int


@dataclass(frozen=True)
class Stage:
    """replicas: in all copies. share: of these in one copy, how many share a micro-batch. degree: devices of each.

    runs: of the first one. again: a backward runs the forward again.
    """

    replicas: int
    degree: int
    share: int
    micro_batch: int
    runs: Fraction
    turns: int
    again: bool

    @property
    def samples(self) -> int:
        return -(-self.micro_batch // self.share)


class PlainGroups:
    """A problem, and whether its operators can be divided among its devices in a time."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._times = problem, CostModel(problem).times
        self._sync = problem.regime.mode == "sync"
        self._runs: dict[int, tuple[list[int], list[int]]] = {}
        graph, (costs,) = problem.profile.graph, problem.profile.costs
        self._names = [operator.name for operator in graph.operators]
        self._before = [set(before) for before in graph.predecessors]
        self._weights = [sum(graph.parameter_bytes[name] for name in op.parameters) for op in graph.operators]
        self._saved = [int(operator.saved_bytes_per_sample) for operator in costs.operators]
        self._tensors = [
            (producer, set(graph.consumers[at]), int(graph.tensors[at].forward_bytes_per_sample))
            for at, producer in enumerate(graph.producers)
        ]
        self._held = 2 if self._sync else 3
        self._memory, self._size = problem.cluster.types[0].memory_bytes, problem.cluster.size
        every = [self._run(samples) for samples in range(1, problem.mini_batch + 1)]
        count = range(len(self._names))
        self._forward = [min(forward[op] for forward, _ in every) for op in count]
        self._back = [min(backward[op] for _, backward in every) for op in count]
        self._both = [one + other for one, other in zip(self._forward, self._back, strict=True)]

    def _run(self, samples: int) -> tuple[list[int], list[int]]:
        if samples not in self._runs:
            forward, backward = self._times.at(samples)
            self._runs[samples] = forward.tolist(), backward.tolist()
        return self._runs[samples]

    def possible(self, time_ns: int) -> bool:
        """Whether for each operator that nothing reads from some kind of plans leaves a division."""
        lasts = [op for op in range(len(self._names)) if not any(op in before for before in self._before)]
        return all(any(self._divides(last, kind, time_ns) for kind in self._kinds()) for last in lasts)

    def _kinds(self) -> Iterator[Plans]:
        samples = self._problem.mini_batch
        for copies in (each for each in range(1, self._size + 1) if samples % each == 0):
            for size in (each for each in range(1, samples + 1) if samples // copies % each == 0):
                yield Plans(copies, pattern=False, size=size)
                if not self._sync:
                    yield Plans(copies, pattern=True, size=size)

    def _divides(self, last: int, kind: Plans, time_ns: int) -> bool:
        there_are = self._size // kind.copies
        known: dict[tuple[str, ...], int] = {}
        for groups in partitions(self._names):
            for group in map(tuple, groups):
                if group not in known:
                    held = sorted(self._names.index(name) for name in group)
                    fits = (
                        count
                        for count in range(1, there_are + 1)
                        if any(
                            self._holds(held, count, turns, last, kind, time_ns)
                            for turns in range(1, count + 1)
                            if count % turns == 0
                        )
                    )
                    known[group] = next(fits, there_are + 1)
            if sum(known[tuple(group)] for group in groups) <= there_are:
                return True
        return False

    def _stages(self, count: int, turns: int, kind: Plans) -> Iterator[Stage]:
        """Every stage that can be on a group. A replica of several devices runs the same on each of them."""
        samples = self._problem.mini_batch // kind.copies
        for micro_batch in (each for each in range(1, samples + 1) if samples % each == 0):
            if kind.pattern and micro_batch != kind.size:
                continue
            for replicas in (each for each in range(1, count + 1) if count % each == 0):
                runs = Fraction(samples // micro_batch)
                for again in (False, True):
                    if turns > 1 and replicas == turns:
                        in_turn = runs / turns if kind.pattern else Fraction(-(-runs // turns))
                        yield Stage(
                            kind.copies * replicas, count // replicas, 1, micro_batch, in_turn, turns, again
                        )
                    elif turns == 1 and replicas <= micro_batch:
                        yield Stage(
                            kind.copies * replicas, count // replicas, replicas, micro_batch, runs, 1, again
                        )

    def _holds(self, held: list[int], count: int, turns: int, last: int, kind: Plans, time_ns: int) -> bool:
        start = 0 if kind.pattern else min(self._to(op, self._forward, behind=False) for op in held)
        end = 0 if kind.pattern else min(self._to(op, self._back, behind=False) for op in held)
        every = list(self._stages(count, turns, kind))
        for whole, room in ((True, time_ns - start), (False, time_ns - start - end)):
            choices = [
                [
                    self._cost(op, stage, every, set(held), last, kind, whole)
                    for stage in every
                    if self._may(op, stage, every, set(held), last, kind, time_ns)
                ]
                for op in held
            ]
            if not _some(choices, room, self._memory):
                return False
        return True

    def _may(
        self, op: int, stage: Stage, every: list[Stage], held: set[int], last: int, kind: Plans, time_ns: int
    ) -> bool:
        """One live micro-batch fits, the last operator has its size, and a sample comes there and back in time."""
        if not kind.pattern and op == last and stage.micro_batch != kind.size:
            return False
        if self._held * self._weights[op] + stage.samples * self._saved[op] > self._memory:
            return False
        return kind.pattern or self._way_ns(op, stage, every, held) <= time_ns

    def _way_ns(self, op: int, stage: Stage, every: list[Stage], held: set[int]) -> int:
        forward, backward = self._run(stage.samples)
        here = forward[op] + backward[op] + (forward[op] if stage.again else 0)
        above, below = self._to(op, self._both, behind=False), self._to(op, self._both, behind=True)
        found = [above + here + below]
        for producer, readers, each in self._tensors:
            senders = every if self._may_be_relayed(producer, readers) else [stage]
            sent = min(
                self._message_ns(end, each * end.micro_batch) + self._message_ns(end, each) for end in senders
            )
            if producer == op:
                found += [
                    above + here + sent + self._both[reader] + self._to(reader, self._both, behind=True)
                    for reader in readers - held
                ]
            elif op in readers and producer not in held:
                found.append(
                    self._to(producer, self._both, behind=False) + self._both[producer] + sent + here + below
                )
        return max(found)

    def _may_be_relayed(self, producer: int, readers: set[int]) -> bool:
        """Whether a stage may stand between the maker and a reader, and pass the tensor on in its own messages."""
        return any(
            other not in self._above(producer) | {producer, reader} and reader not in self._above(other)
            for reader in readers
            for other in range(len(self._names))
        )

    def _cost(
        self, op: int, stage: Stage, every: list[Stage], held: set[int], last: int, kind: Plans, whole: bool
    ) -> tuple[int, int]:
        """Time of a mini-batch and bytes at the instant on the first device of the group."""
        forward, backward = self._run(stage.samples)
        reduce = max(0, round(2 * (stage.replicas - 1) * self._weights[op] / stage.replicas) - 1)
        run = forward[op] + backward[op] + (forward[op] if stage.again else 0)
        at_once = self._above(last) | {last}
        micro_batches = [at for at in range(-(-kind.size // stage.micro_batch)) if at % stage.turns == 0]
        live = 1 if stage.again or kind.pattern else len(micro_batches)
        saved = live * stage.samples * self._saved[op]
        if not forward[op] or not backward[op] or op not in at_once:
            saved = 0
        buffered = held & at_once if self._sync else held
        buffers = 0
        for producer, readers, each in self._tensors:
            if producer == op and readers - held and op in buffered:
                if not self._may_be_relayed(producer, readers):
                    buffers += each * _samples_of_buffers(stage, kind)
                elif not self._sync or readers <= at_once:
                    buffers += each * min(_samples_of_buffers(end, kind) for end in every)
            if producer not in held and readers & buffered and op == min(readers & buffered):
                buffers += each * _samples_of_buffers(stage, kind)
        return int(stage.runs * run) + (reduce if whole else 0), self._held * self._weights[op] + saved + buffers

    def _message_ns(self, stage: Stage, size: int) -> int:
        """At one byte a nanosecond for each rank of the stage that sends or receives, if the cluster has links."""
        return round(Fraction(size, stage.share * stage.degree)) if self._size > 1 else 0

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


def _samples_of_buffers(stage: Stage, kind: Plans) -> int:
    """Of a message and of a gradient message, one of which is the other end's."""
    other = stage.micro_batch if kind.pattern else 1
    return stage.samples + -(-other // stage.share)


def _some(choices: list[list[tuple[int, int]]], room: int, memory: int) -> bool:
    """Whether one choice of each goes into the room and the memory."""
    if room < 0 or memory < 0:
        return False
    if not choices:
        return True
    return any(_some(choices[1:], room - time, memory - held) for time, held in choices[0])
