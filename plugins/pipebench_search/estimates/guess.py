"""What a draft takes, before there is a plan of it: a bound that no order is below, and about how long."""

from dataclasses import dataclass
from math import ceil, inf

from pipebench.costs.formula import StageTimes
from pipebench.costs.links import ports_between
from pipebench.costs.model import CostModel
from pipebench.costs.placement import farthest, kinds_of_copies
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench_search.drafts.draft import Draft, Part


@dataclass(frozen=True, slots=True)
class Guess:
    """Nanoseconds of a mini-batch. least: no order of the plan takes less. about: to compare plans by."""

    least: int
    about: float


class Guesses:
    """Guesses for drafts of one problem. Times of stages are kept: neighbours share most of them."""

    def __init__(self, model: CostModel) -> None:
        self._model, self._problem = model, model.problem
        graph = model.graph
        self._names = [operator.name for operator in graph.operators]
        self._edges = [(op, after) for op, readers in enumerate(graph.successors) for after in readers]
        self._tensors = [
            (
                producer,
                tuple(graph.consumers[at]),
                tensor.forward_bytes_per_sample,
                tensor.gradient_bytes_per_sample,
            )
            for at, (producer, tensor) in enumerate(zip(graph.producers, graph.tensors, strict=True))
            if producer >= 0 and graph.consumers[at]
        ]
        self._sync = self._problem.regime.mode == "sync"
        self._times: dict[tuple[object, ...], StageTimes] = {}
        self._levels: dict[tuple[int, int], LinkLevel] = {}
        self._rates: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}

    def of(self, draft: Draft) -> Guess | None:
        """None where stages wait for each other in a circle, or where a way has no times."""
        firsts, first = [], 0
        for size in draft.sizes:
            firsts.append(first)
            first += size
        try:
            times = [self._stage_times(draft, part, firsts[part.group], first) for part in draft.parts]
        except PipebenchError:
            return None
        home = [0] * len(self._names)
        for at, part in enumerate(draft.parts):
            for op in part.operators:
                home[op] = at
        order = self._order(draft, home)
        if order is None:
            return None
        return self._guess(draft, times, home, order, firsts)

    def stage_times(self, draft: Draft, part: Part) -> StageTimes:
        """The times of a stage of a draft. Raises PipebenchError where its way has none."""
        return self._stage_times(draft, part, sum(draft.sizes[: part.group]), sum(draft.sizes))

    def stage(self, draft: Draft, part: Part) -> Stage:
        """A stage of a draft."""
        return self._stage(draft, part, sum(draft.sizes[: part.group]))

    def update_ns(self, draft: Draft, part: Part) -> int:
        """The update of a stage of a draft, once a mini-batch, in both regimes."""
        stage = self.stage(draft, part)
        return self._model.update_ns(stage, _copies_of(stage, draft.copies, sum(draft.sizes)))

    def _stage(self, draft: Draft, part: Part, first: int) -> Stage:
        return part.stage(self._names, tuple(range(first, first + draft.sizes[part.group])))

    def _stage_times(self, draft: Draft, part: Part, first: int, used: int) -> StageTimes:
        size = draft.sizes[part.group]
        replicas = size // part.way.tensor_parallel
        where = self.reduction_level(first, size, draft.copies, used).name if draft.copies * replicas > 1 else ""
        shape = size, part.micro_batch, part.replicas, draft.copies, where
        key = part.operators, id(part.way), *shape
        if key not in self._times:
            stage = self._stage(draft, part, first)
            self._times[key] = self._model.stage_times(stage, _copies_of(stage, draft.copies, used))
        return self._times[key]

    def _order(self, draft: Draft, home: list[int]) -> list[tuple[int, list[int]]] | None:
        """Stages in topological order, each with those before it; None where there is a circle."""
        before: list[set[int]] = [set() for _ in draft.parts]
        for op, after in self._edges:
            if home[op] != home[after]:
                before[home[after]].add(home[op])
        if draft.chained:
            for at in range(1, len(draft.parts)):
                before[at].add(at - 1)
        done: set[int] = set()
        order: list[tuple[int, list[int]]] = []
        left = list(range(len(draft.parts)))
        while left:
            free = [at for at in left if before[at] <= done]
            if not free:
                return None
            order += [(at, sorted(before[at])) for at in free]
            done.update(free)
            left = [at for at in left if at not in done]
        return order

    def _guess(
        self,
        draft: Draft,
        times: list[StageTimes],
        home: list[int],
        order: list[tuple[int, list[int]]],
        firsts: list[int],
    ) -> Guess:
        parts = draft.parts
        samples = self._problem.mini_batch // draft.copies
        replicas = [draft.sizes[part.group] // part.way.tensor_parallel for part in parts]
        turns = [
            count if part.replicas == "round_robin" else 1 for part, count in zip(parts, replicas, strict=True)
        ]
        counts = [samples // part.micro_batch for part in parts]
        load, reduce = [0] * len(draft.sizes), [0] * len(draft.sizes)
        for part, time, count, turn in zip(parts, times, counts, turns, strict=True):
            load[part.group] += time.period * count // turn
            reduce[part.group] += time.all_reduce
        sent = self._sent_ns(draft, home, firsts, replicas)
        if not self._sync:
            link = max((ns * counts[pair[0]] for pair, ns in sent.items()), default=0.0)
            return Guess(max(load), max(*load, link))
        head, tail, path = [0] * len(parts), [0] * len(parts), [0.0] * len(parts)
        for at, before in order:
            for other in before:
                head[at] = max(head[at], head[other] + times[other].forward)
                tail[at] = max(tail[at], tail[other] + times[other].backward - times[other].weight_gradient)
                path[at] = max(path[at], path[other] + times[other].period + sent.get((other, at), 0.0))
        least, about = 0, 0.0
        for at, (time, count, turn) in enumerate(zip(times, counts, turns, strict=True)):
            if not self._problem.overlap:
                each = ceil(count / turn)
                crossed = head[at] + each * (time.period - time.weight_gradient) + tail[at]
                least = max(least, crossed, head[at] + each * time.period + time.all_reduce)
            about = max(about, path[at] + time.period)
        waits = [0.0] * len(parts)
        for (source, _), ns in sent.items():
            waits[source] = max(waits[source], ns)
        filled = [0.0] * len(draft.sizes)
        for part, time, count, turn, wait in zip(parts, times, counts, turns, waits, strict=True):
            filled[part.group] += max(0, count - 1) * (time.period + wait) / turn
        if not self._problem.overlap:
            least = max(least, *(a + b for a, b in zip(load, reduce, strict=True)))
        return Guess(least, about + max(filled) + max(reduce))

    def _sent_ns(
        self, draft: Draft, home: list[int], firsts: list[int], replicas: list[int]
    ) -> dict[tuple[int, int], float]:
        """What stages send each other for one micro-batch, there and back."""
        groups = [part.group for part in draft.parts]
        samples = [part.micro_batch for part in draft.parts]
        sent: dict[tuple[int, int], float] = {}
        for producer, consumers, forward, gradient in self._tensors:
            source = home[producer]
            for target in {home[reader] for reader in consumers}:
                if groups[source] != groups[target]:
                    there = forward * samples[source] + gradient * samples[target]
                    sent[source, target] = sent.get((source, target), 0.0) + there
        shares = [
            count if part.replicas == "split" else 1 for part, count in zip(draft.parts, replicas, strict=True)
        ]
        lasts = [first + size - 1 for first, size in zip(firsts, draft.sizes, strict=True)]
        used = range(sum(draft.sizes))
        copies = kinds_of_copies(self._problem.cluster, used, draft.copies)
        made = {}
        for (source, target), size in sent.items():
            near, far = sorted((groups[source], groups[target]))
            one, other = (firsts[near], lasts[near]), (firsts[far], lasts[far])
            shift = farthest(self._problem.cluster, copies, used, [*one, *other]) * len(used)
            level = self.level(shift + one[0], shift + other[1])
            rate = min(shares[source], shares[target]) * level.bandwidth_bytes_s
            shared = (
                self._shared((at + one[0], at + one[1]), (at + other[0], at + other[1]))
                for at in (copy * len(used) for copy in copies)
            )
            made[source, target] = NS_PER_S * (2 * level.latency_s + size / min(rate, *shared))
        return made

    def _shared(self, one: tuple[int, int], other: tuple[int, int]) -> float:
        """Bytes/s that the ports between two runs of devices, first and last ones, let pass; rates are kept."""
        if (one, other) not in self._rates:
            here, there = (range(first, last + 1) for first, last in (one, other))
            passed = ports_between(self._problem.cluster, here, there)
            self._rates[one, other] = min((each.groups * each.bandwidth_bytes_s for each in passed), default=inf)
        return self._rates[one, other]

    def reduction_level(self, first: int, size: int, copies: int, used: int) -> LinkLevel:
        """The level over which the replicas of a group in all copies reduce gradients: of where it stands no more
        matters. first, size: its devices. used: by each copy.
        """
        return self.level(first, first + size - 1 + (copies - 1) * used)

    def level(self, first: int, last: int) -> LinkLevel:
        """As `Cluster.level_spanning`; levels are kept."""
        if (first, last) not in self._levels:
            self._levels[first, last] = self._problem.cluster.level_spanning(first, last)
        return self._levels[first, last]


def _copies_of(stage: Stage, copies: int, used: int) -> Plan | None:
    """A plan of so many copies of `used` devices each with that stage; None for one copy."""
    if copies == 1:
        return None
    rest = tuple(device for device in range(used) if device not in stage.devices)
    other = Stage(operators=stage.operators, devices=rest, data_parallel=max(1, len(rest)), micro_batch=used)
    return Plan(stages=(stage, other) if rest else (stage,), copies=copies)
