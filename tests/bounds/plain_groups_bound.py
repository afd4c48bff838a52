"""The bound from groups of devices spelt out naively: every partition, every size, every stage for each operator.

For problems of `tests.builders.dag_problem` without alternatives and pins, on a flat cluster whose links carry one
byte a nanosecond.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.bounds.every_plan import partitions


@dataclass(frozen=True)
class Plans:
    """Copies, whether each group is one device, whether a pattern, and each operator's size of micro-batches."""

    copies: int
    alone: bool
    pattern: bool
    sizes: tuple[int, ...]


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

    def times(self, samples: int) -> int:
        """Of the micro-batches that cover so many samples those of the first replica."""
        return len([at for at in range(-(-samples // self.micro_batch)) if at % self.turns == 0])


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
        self._all = list(range(len(self._names)))
        self._figures = cache(self._figures_of)  # type: ignore[method-assign]

    def _run(self, samples: int) -> tuple[list[int], list[int]]:
        if samples not in self._runs:
            forward, backward = self._times.at(samples)
            self._runs[samples] = forward.tolist(), backward.tolist()
        return self._runs[samples]

    def possible(self, time_ns: int) -> bool:
        """Whether for each operator that nothing reads from some kind of plans leaves a division."""
        lasts = [op for op in self._all if not any(op in before for before in self._before)]
        return all(any(self._divides(last, kind, time_ns) for kind in self._kinds()) for last in lasts)

    def _kinds(self) -> Iterator[Plans]:
        samples = self._problem.mini_batch
        for copies in (each for each in range(1, self._size + 1) if samples % each == 0):
            sizes = [each for each in range(1, samples // copies + 1) if samples // copies % each == 0]
            for alone in (True, False):
                for each in product(sizes, repeat=len(self._all)):
                    yield Plans(copies, alone, False, each)
                if not self._sync:
                    yield from (Plans(copies, alone, True, (each,) * len(self._all)) for each in sizes)

    def _divides(self, last: int, kind: Plans, time_ns: int) -> bool:
        there_are = self._size // kind.copies
        if self._figures(last, kind) is None:
            return False
        counts = [1] if kind.alone else range(1, there_are + 1)
        held = cache(
            lambda group, count: any(
                self._holds(group, count, turns, last, kind, time_ns)
                for turns in range(1, count + 1)
                if count % turns == 0
            )
        )
        return any(
            all(
                held(tuple(sorted(map(self._names.index, group))), count)
                for group, count in zip(groups, each, strict=True)
            )
            for groups in partitions(self._names)
            for each in product(counts, repeat=len(groups))
            if sum(each) <= there_are and (kind.alone or max(each) > 1)
        )

    def _stages(self, op: int, count: int, turns: int, kind: Plans) -> Iterator[Stage]:
        """Every stage with an operator that can be on a group. All devices of a replica run the same."""
        samples, micro_batch = self._problem.mini_batch // kind.copies, kind.sizes[op]
        for replicas in (each for each in range(1, count + 1) if count % each == 0):
            runs = Fraction(samples // micro_batch)
            for again in (False, True):
                if turns > 1 and replicas == turns:
                    in_turn = runs / turns if kind.pattern else Fraction(-(-runs // turns))
                    yield Stage(kind.copies * replicas, count // replicas, 1, micro_batch, in_turn, turns, again)
                elif turns == 1 and replicas <= micro_batch:
                    yield Stage(kind.copies * replicas, count // replicas, replicas, micro_batch, runs, 1, again)

    def _live(self, op: int, stage: Stage, last: int, kind: Plans) -> int:
        """Bytes that are saved when the first forward of the last operator ends."""
        forward, backward = self._run(stage.samples)
        at_once = self._above(last) | {last}
        if op not in at_once or not forward[op] or not backward[op]:
            return 0
        later = [each for each in at_once if each == op or op in self._above(each)]
        times = 1 if kind.pattern or stage.again else stage.times(max(kind.sizes[each] for each in later))
        return times * stage.samples * self._saved[op]

    def _passes(self, op: int, stage: Stage) -> tuple[int, int]:
        forward, backward = self._run(stage.samples)
        return forward[op], backward[op] + (forward[op] if stage.again else 0)

    def _figures_of(self, last: int, kind: Plans) -> "Figures | None":
        """What is least over all stages that have memory for one operator; None where one fits nowhere."""
        counts = [1] if kind.alone else range(1, self._size // kind.copies + 1)
        every = [
            [
                stage
                for count in counts
                for turns in range(1, count + 1)
                if count % turns == 0
                for stage in self._stages(op, count, turns, kind)
                if self._held * self._weights[op] + stage.samples * self._saved[op] <= self._memory
                and self._held * self._weights[op] + self._live(op, stage, last, kind) <= self._memory
            ]
            for op in self._all
        ]
        if not all(every):
            return None
        return Figures(self._before, [[(each, *self._passes(op, each)) for each in every[op]] for op in self._all])

    def _holds(self, held: tuple[int, ...], count: int, turns: int, last: int, kind: Plans, time_ns: int) -> bool:
        figures = self._figures(last, kind)
        assert figures is not None
        sizes = range(1, self._problem.mini_batch // kind.copies + 1)
        every = [
            stage
            for size in sizes
            if self._problem.mini_batch // kind.copies % size == 0 and (not kind.pattern or size == kind.sizes[0])
            for stage in self._stages(0, count, turns, Plans(kind.copies, kind.alone, kind.pattern, (size,)))
        ]
        start = 0 if kind.pattern else min(figures.start(op, kind.sizes[op]) for op in held)
        end = 0 if kind.pattern else min(figures.end(op) for op in held)
        choices = [
            [
                (stage, self._cost(op, stage, every, set(held), last, kind))
                for stage in self._stages(op, count, turns, kind)
                if self._held * self._weights[op] + stage.samples * self._saved[op] <= self._memory
                and (kind.pattern or self._way_ns(op, stage, every, set(held), figures) <= time_ns)
            ]
            for op in held
        ]
        return any(
            sum(cost[0] for _, cost in chosen) <= time_ns - start
            and (kind.pattern or sum(cost[1] for _, cost in chosen) <= time_ns - start - end)
            and sum(cost[2] for _, cost in chosen) <= self._memory
            and self._in_rounds(
                dict(zip(held, (stage for stage, _ in chosen), strict=True)), kind, figures, time_ns
            )
            for chosen in product(*choices)
        )

    def _in_rounds(self, chosen: dict[int, Stage], kind: Plans, figures: "Figures", time_ns: int) -> bool:
        """Lemma 12: the most micro-batches that fit, one more each time."""
        free = self._memory - sum(self._held * self._weights[op] for op in chosen)
        for op, stage in chosen.items():
            forward, back = self._passes(op, stage)
            if stage.again or not self._saves(op, stage) or not forward + back:
                continue
            stay = forward + back + figures.between(op, stage.micro_batch)
            runs = stage.runs
            most = 0
            while most < 100 and self._bytes(op, most + 1, chosen) <= free:
                most += 1
            if kind.pattern:
                if most < 100 and stay * runs > most * time_ns:
                    return False
                continue
            if not most:
                return False
            most, apart = min(most, int(runs)), max(forward, back)
            rounds = -(-int(runs) // most)
            others = int(runs) - 1 - (rounds - 1) * most
            needed = min(rounds * stay + others * apart, (rounds + 1) * stay)
            if needed > time_ns - figures.start(op, stage.micro_batch) - figures.end(op):
                return False
        return True

    def _saves(self, op: int, stage: Stage) -> int:
        forward, backward = self._run(stage.samples)
        return stage.samples * self._saved[op] if forward[op] and backward[op] else 0

    def _bytes(self, op: int, live: int, chosen: dict[int, Stage]) -> int:
        """The first samples are live, so many that micro-batches of this operator on one replica are."""
        mine = chosen[op]
        total = live * self._saves(op, mine)
        for other, stage in chosen.items():
            if other in self._above(op) and (stage.turns == 1 or stage.micro_batch == mine.micro_batch):
                times = -(-live * mine.micro_batch // stage.micro_batch)
                total += self._saves(other, stage) * (min(times, 1) if stage.again else times)
        return total

    def _way_ns(self, op: int, stage: Stage, every: list[Stage], held: set[int], figures: "Figures") -> int:
        here = sum(self._passes(op, stage))
        above, below = figures.above(op), figures.below(op)
        found = [above + here + below]
        for producer, readers, each in self._tensors:
            senders = every if self._may_be_relayed(producer, readers) else [stage]
            sent = min(
                self._message_ns(end, each * end.micro_batch) + self._message_ns(end, each) for end in senders
            )
            if producer == op:
                found += [
                    above + here + sent + figures.both[reader] + figures.below(reader) for reader in readers - held
                ]
            elif op in readers and producer not in held:
                found.append(figures.above(producer) + figures.both[producer] + sent + here + below)
        return max(found)

    def _may_be_relayed(self, producer: int, readers: set[int]) -> bool:
        """Whether a stage may stand between the maker and a reader, and pass the tensor on in its own messages."""
        return any(
            other not in self._above(producer) | {producer, reader} and reader not in self._above(other)
            for reader in readers
            for other in range(len(self._names))
        )

    def _cost(
        self, op: int, stage: Stage, every: list[Stage], held: set[int], last: int, kind: Plans
    ) -> tuple[int, int, int]:
        """Time of a mini-batch, without all-reduces, and bytes at the instant on the first device of the group."""
        reduce = max(0, round(2 * (stage.replicas - 1) * self._weights[op] / stage.replicas) - 1)
        run = int(stage.runs * sum(self._passes(op, stage)))
        at_once = self._above(last) | {last}
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
        return run + reduce, run, self._held * self._weights[op] + self._live(op, stage, last, kind) + buffers

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


Costs = tuple[Stage, int, int]
"""A stage, its forward and its backward of one operator."""


class Figures:
    """The least times of each operator, and sums of them along paths. every: of each operator its stages."""

    def __init__(self, before: list[set[int]], every: list[list[Costs]]) -> None:
        self._before, self._every = before, every
        self.both = [min(forward + back for _, forward, back in each) for each in every]
        self._forward = [min(forward for _, forward, _ in each) for each in every]
        self._back = [min(back for _, _, back in each) for each in every]

    def _paths(self, op: int, behind: bool) -> Iterator[list[int]]:
        """All paths from an operator, or to it, itself left out; the nearest first."""
        yield []
        near = {other for other, before in enumerate(self._before) if op in before} if behind else self._before[op]
        for other in near:
            yield from ([other, *path] for path in self._paths(other, behind))

    def above(self, op: int) -> int:
        return max(sum(self.both[each] for each in path) for path in self._paths(op, behind=False))

    def below(self, op: int) -> int:
        return max(sum(self.both[each] for each in path) for path in self._paths(op, behind=True))

    def end(self, op: int) -> int:
        return max(sum(self._back[each] for each in path) for path in self._paths(op, behind=False))

    def start(self, op: int, samples: int) -> int:
        """One operator of a path runs all the samples, before it and behind it one run is enough."""
        found = [0]
        for path in self._paths(op, behind=False):
            single = [self._forward[each] for each in path]
            several = [min(stage.times(samples) * f for stage, f, _ in self._every[each]) for each in path]
            found += [sum(single) - one + other for one, other in zip(single, several, strict=True)]
        return max(found)

    def between(self, op: int, samples: int) -> int:
        found = [0]
        for path in self._paths(op, behind=True):
            for at, each in enumerate(path):
                nearer = sum(self.both[one] for one in path[:at])
                found.append(nearer + self.both[each])
                found.append(nearer + min(self._several(each, samples, costs) for costs in self._every[each]))
        return max(found)

    def _several(self, op: int, samples: int, costs: Costs) -> int:
        """All runs after each other; or those of one way, and between the other ways once down and up."""
        stage, forward, back = costs
        times, below = stage.times(samples), self.below(op)
        down = times * forward + below + back
        up = forward + below + times * back
        return max(times * (forward + back), down, up)


def _samples_of_buffers(stage: Stage, kind: Plans) -> int:
    """Of a message and of a gradient message, one of which is the other end's."""
    other = stage.micro_batch if kind.pattern else 1
    return stage.samples + -(-other // stage.share)
