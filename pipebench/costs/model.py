"""CostModel: what each stage and message of a plan costs on a problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipebench.costs.communicate import all_reduce_ns, level_between, message_ns, ring_level
from pipebench.costs.compute import OperatorTimes
from pipebench.costs.lanes import in_place
from pipebench.costs.memory import StageMemory, weight_state_bytes
from pipebench.costs.messages import Message, messages
from pipebench.costs.quantise import whole_bytes
from pipebench.costs.sharded_stage import ShardedStage, is_sharded, refuse_alternatives
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Nanoseconds of one micro-batch of a stage.

    backward: the full backward, recomputation included (async: with the amortised all-reduce).
    weight_gradient: the part of it that a split backward may run later. all_reduce: once a mini-batch
    (sync), 0 in async.
    """

    forward: int
    backward: int
    weight_gradient: int
    all_reduce: int

    @property
    def period(self) -> int:
        """Forward and backward together."""
        return self.forward + self.backward


class CostModel:
    """Costs of stages and messages of plans for one problem; times are cached by micro-batch size."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._times: dict[str, OperatorTimes] = {}

    @property
    def graph(self) -> OperatorGraph:
        """The problem's operator graph."""
        return self.problem.profile.graph

    def times_on(self, device_type: str) -> OperatorTimes:
        """Operator times on one device type."""
        if device_type not in self._times:
            self._times[device_type] = OperatorTimes(self.problem.profile.on(device_type))
        return self._times[device_type]

    @cached_property
    def times(self) -> OperatorTimes:
        """Operator times on the type of device 0: what planners of uniform clusters use."""
        return self.times_on(self.problem.cluster.devices[0])

    def _device_type(self, stage: Stage) -> str:
        return self.problem.cluster.devices[stage.devices[0]]

    def _costs(self, stage: Stage) -> Sequence[OperatorCosts]:
        return self.times_on(self._device_type(stage)).costs.operators

    def local_samples(self, stage: Stage) -> int:
        """Samples of a micro-batch that one replica computes: ceil(micro_batch / data_parallel)."""
        return -(-stage.micro_batch // stage.data_parallel)

    def stage_times(self, stage: Stage, plan: Plan | None = None) -> StageTimes:
        """Times of one micro-batch: the sum of the stage's operators at ceil(b / d) samples.

        plan: the one that the stage is part of, whose pipelines all-reduce together (None: one pipeline). async
        with replicas: the all-reduce of an update is spread over its micro-batches and runs behind each backward.
        recompute `stage`: the backward runs the forward again.

        Split operators: see `ShardedStage`. Raises UnsupportedProblem for one that has an alternative besides.
        """
        refuse_alternatives(stage)
        pipelines = 1 if plan is None else plan.all_pipelines
        times = self.times_on(self._device_type(stage))
        samples = self.local_samples(stage)
        positions = [self.graph.index[name] for name in stage.operators]
        forward_all, backward_all = times.at(samples)
        if is_sharded(stage):
            forward, backward, weight_gradient = self._sharded(stage).times(times)
        elif any(stage.choice):
            each = [
                times.chosen(position, identifier, samples)
                for position, identifier in zip(positions, stage.choice, strict=True)
            ]
            forward, backward, weight_gradient = (sum(column) for column in zip(*each, strict=True))
        else:
            forward, backward = int(forward_all[positions].sum()), int(backward_all[positions].sum())
            weight_gradient = int(times.weight_gradient_at(samples)[positions].sum())
        if stage.recompute == "stage":
            backward += forward
        reduce_ns = self.all_reduce_ns(stage, plan)
        if self.problem.regime.mode == "async" and reduce_ns:
            backward += -(-reduce_ns * stage.micro_batch * pipelines // self.problem.mini_batch)
            reduce_ns = 0
        return StageTimes(forward, backward, min(weight_gradient, backward), reduce_ns)

    def parameter_bytes(self, stage: Stage) -> int:
        """Weights on one device of the stage; a parameter that several of its operators use counts once.

        Of operators under alternatives that use the same parameters the largest counts; one that shares a
        parameter with others in another way counts in full. Of split operators see `ShardedStage.weights`.
        """
        if is_sharded(stage):
            return sum(self._sharded(stage).weights().values())
        names: set[str] = set()
        alternatives = 0
        sharing: dict[frozenset[str], int] = {}
        costs = self._costs(stage)
        for position, name in enumerate(stage.operators):
            operator = self.graph.index[name]
            identifier = stage.choice[position] if stage.choice else ""
            used = frozenset(self.graph.operators[operator].parameters)
            if not identifier:
                names |= used
                continue
            own = costs[operator].alternative(identifier).parameter_bytes
            if used:
                sharing[used] = max(own, sharing.get(used, 0))
            else:
                alternatives += own
        return alternatives + sum(sharing.values()) + sum(self.graph.parameter_bytes[name] for name in names)

    def all_reduce_ns(self, stage: Stage, plan: Plan | None = None) -> int:
        """Ring all-reduce of the stage's weight gradients over its replicas in all pipelines and copies.

        The ring spans the devices of all of them.
        One ring for each tensor-parallel rank, all at once. Of split operators also over the devices of a replica
        that hold the same weights.
        """
        replicas = stage.data_parallel * (1 if plan is None else plan.all_pipelines)
        devices = stage.devices
        if plan is not None and plan.pipelines > 1:
            devices = tuple(d for k in plan.mirrors(plan.stages.index(stage)) for d in plan.stages[k].devices)
        lowest, highest = min(devices), max(devices)
        if plan is not None and plan.copies > 1:
            highest += (plan.copies - 1) * (plan.devices_used // plan.copies)

        def level(rings: int) -> LinkLevel:
            return ring_level(self.problem.cluster, lowest, highest, rings)

        if is_sharded(stage):
            return self._sharded(stage).all_reduce_ns(replicas, level)
        if replicas == 1:
            return 0
        return all_reduce_ns(level(stage.tensor_parallel), self.parameter_bytes(stage), replicas)

    def _sharded(self, stage: Stage) -> ShardedStage:
        return ShardedStage(self.graph, stage, self.local_samples(stage), self.problem.cluster)

    def saved_bytes(self, stage: Stage) -> int:
        """What one device saves for one live micro-batch when nothing is recomputed."""
        costs = self._costs(stage)
        if is_sharded(stage):
            return self._sharded(stage).saved({each.operator: each for each in costs})
        samples = self.local_samples(stage)
        total = 0
        for position, name in enumerate(stage.operators):
            operator = costs[self.graph.index[name]]
            identifier = stage.choice[position] if stage.choice else ""
            each = operator.alternative(identifier) if identifier else operator
            total += whole_bytes(each.saved_bytes_per_sample * samples)
        return total

    def stage_memory(self, plan: Plan, position: int, edges: Sequence[Message]) -> StageMemory:
        """Memory of one device of the stage at `position`; `edges` are the messages of the plan.

        Each tensor that crosses into the stage, and each that crosses out of it, reserves the replica's part of
        one message and of one gradient message (the largest, where consumers differ in micro-batch): always in
        async, while a micro-batch is live in sync. Between stages on the same devices it is reserved once, at
        the receiver (it waits there). recompute `stage`: kept for each live micro-batch are the tensors
        received and the inputs of the model that the stage reads. What an alternative holds while it runs backward
        is added for the largest of them, as long as a micro-batch is live.

        Of split operators see `ShardedStage`; tensors that cross are held whole by each device of a replica.
        Raises UnsupportedProblem for a split operator that has an alternative besides.
        """
        stage = plan.stages[position]
        refuse_alternatives(stage)
        costs = self._costs(stage)
        samples = self.local_samples(stage)
        operators = [costs[self.graph.index[name]] for name in stage.operators]
        fixed = sum(
            operator.alternative(identifier).fixed_bytes
            for operator, identifier in zip(operators, stage.choice, strict=False)
            if identifier
        )
        replicas = stage.data_parallel * plan.all_pipelines
        if is_sharded(stage):
            state = self._sharded(stage).weight_state(self.problem.regime, plan.all_pipelines)
        else:
            state = weight_state_bytes(self.problem.regime, self.parameter_bytes(stage), replicas)
        held = fixed + state
        buffers = self._buffer_bytes(plan, position, edges)
        saved = self.saved_bytes(stage)
        while_live = 0
        if stage.recompute == "stage":
            read = {
                self.graph.tensor_index[tensor]
                for name in stage.operators
                for tensor in self.graph.operators[self.graph.index[name]].inputs
            }
            kept = {m.tensor for m in edges if m.target == position}
            kept |= {tensor for tensor in read if self.graph.producers[tensor] < 0}
            inputs = sum(self.tensor_bytes(tensor, samples) for tensor in kept)
            while_live, saved = saved, inputs
        while_live += max(
            (
                whole_bytes(operator.alternative(identifier).transient_bytes_per_sample * samples)
                for operator, identifier in zip(operators, stage.choice, strict=False)
                if identifier
            ),
            default=0,
        )
        if self.problem.regime.mode == "async":
            held += buffers
        else:
            while_live += buffers
        workspace = max((operator.workspace_bytes for operator in operators), default=0)
        return StageMemory(held, saved, while_live, workspace)

    def _buffer_bytes(self, plan: Plan, position: int, edges: Sequence[Message]) -> int:
        """Bytes that one device reserves for one message and gradient message of each tensor in and out."""
        stage = plan.stages[position]
        largest: dict[tuple[bool, int], tuple[int, int]] = {}
        for m in edges:
            source, target = plan.stages[m.source], plan.stages[m.target]
            if m.target == position or (m.source == position and not in_place(source, target)):
                key = m.target == position, m.tensor
                forward, backward = largest.get(key, (0, 0))
                largest[key] = max(forward, source.micro_batch), max(backward, target.micro_batch)
        return sum(
            self.tensor_bytes(tensor, -(-forward // stage.data_parallel))
            + self.gradient_bytes(tensor, -(-backward // stage.data_parallel))
            for (_, tensor), (forward, backward) in largest.items()
        )

    def tensor_bytes(self, tensor: int, samples: int) -> int:
        """Bytes of one message of a tensor."""
        described = self.graph.tensors[tensor]
        return whole_bytes(described.forward_bytes_per_sample * samples) + described.fixed_bytes

    def gradient_bytes(self, tensor: int, samples: int) -> int:
        """Bytes of one message of a tensor's gradient."""
        return whole_bytes(self.graph.tensors[tensor].gradient_bytes_per_sample * samples)

    def messages(self, plan: Plan) -> list[Message]:
        """The messages of a plan."""
        return messages(self.graph, plan)

    def message_ns(self, plan: Plan, message: Message, backward: bool = False) -> int:
        """Time of one message: the tensor at the source's micro-batch, or its gradient at the target's.

        Stages on the same devices pass tensors in place: 0.
        """
        source, target = plan.stages[message.source], plan.stages[message.target]
        if in_place(source, target):
            return 0
        level = level_between(self.problem.cluster, source.devices, target.devices)
        sent = (
            self.gradient_bytes(message.tensor, target.micro_batch)
            if backward
            else self.tensor_bytes(message.tensor, source.micro_batch)
        )
        return message_ns(level, sent, source.data_parallel, target.data_parallel)
