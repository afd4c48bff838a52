"""CostModel: what each stage and message of a plan costs on a problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipebench.costs.communicate import all_reduce_ns, level_between, level_within, message_ns
from pipebench.costs.compute import OperatorTimes
from pipebench.costs.memory import StageMemory, weight_state_bytes
from pipebench.costs.messages import Message, messages
from pipebench.costs.quantise import whole_bytes
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

    def stage_times(self, stage: Stage, copies: int = 1) -> StageTimes:
        """Times of one micro-batch: the sum of the stage's operators at ceil(b / d) samples.

        async with replicas: the all-reduce of an update is spread over its micro-batches and runs behind
        each backward. recompute `stage`: the backward runs the forward again.
        """
        times = self.times_on(self._device_type(stage))
        samples = self.local_samples(stage)
        positions = [self.graph.index[name] for name in stage.operators]
        forward_all, backward_all = times.at(samples)
        if any(stage.choice):
            pairs = [
                times.chosen(position, identifier, samples)
                for position, identifier in zip(positions, stage.choice, strict=True)
            ]
            forward, backward = sum(f for f, _ in pairs), sum(b for _, b in pairs)
        else:
            forward, backward = int(forward_all[positions].sum()), int(backward_all[positions].sum())
        weight_gradient = int(times.weight_gradient_at(samples)[positions].sum())
        if stage.recompute == "stage":
            backward += forward
        reduce_ns = self.all_reduce_ns(stage, copies)
        if self.problem.regime.mode == "async" and reduce_ns:
            backward += -(-reduce_ns * stage.micro_batch * copies // self.problem.mini_batch)
            reduce_ns = 0
        return StageTimes(forward, backward, min(weight_gradient, backward), reduce_ns)

    def parameter_bytes(self, stage: Stage) -> int:
        """Weights on one device of the stage; a parameter that several of its operators use counts once."""
        names: set[str] = set()
        alternatives = 0
        costs = self._costs(stage)
        for position, name in enumerate(stage.operators):
            operator = self.graph.index[name]
            identifier = stage.choice[position] if stage.choice else ""
            if identifier:
                alternatives += costs[operator].alternative(identifier).parameter_bytes
            else:
                names.update(self.graph.operators[operator].parameters)
        return alternatives + sum(self.graph.parameter_bytes[name] for name in names)

    def all_reduce_ns(self, stage: Stage, copies: int = 1) -> int:
        """Ring all-reduce of the stage's weight gradients over its replicas (and copies of the pipeline)."""
        replicas = stage.data_parallel * copies
        if replicas == 1:
            return 0
        cluster = self.problem.cluster
        level = cluster.levels[-1] if copies > 1 else level_within(cluster, stage.devices)
        return all_reduce_ns(level, self.parameter_bytes(stage), replicas)

    def saved_bytes(self, stage: Stage) -> int:
        """What one device saves for one live micro-batch when nothing is recomputed."""
        costs = self._costs(stage)
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

        Each tensor that crosses into the stage, and each that crosses out of it, reserves forward and gradient
        bytes of one micro-batch: always in async, while a micro-batch is live in sync. Between stages on the
        same devices it is reserved once, at the receiver (it waits there).
        """
        stage = plan.stages[position]
        costs = self._costs(stage)
        samples = self.local_samples(stage)
        operators = [costs[self.graph.index[name]] for name in stage.operators]
        fixed = sum(
            operator.alternative(identifier).fixed_bytes
            for operator, identifier in zip(operators, stage.choice, strict=False)
            if identifier
        )
        held = fixed + weight_state_bytes(self.problem.regime, self.parameter_bytes(stage), stage.data_parallel)
        received = {m.tensor for m in edges if m.target == position}
        sent = {m.tensor for m in edges if m.source == position and plan.stages[m.target].devices != stage.devices}
        buffers = sum(
            self.tensor_bytes(tensor, samples) + self.gradient_bytes(tensor, samples)
            for side in (received, sent)
            for tensor in side
        )
        saved = self.saved_bytes(stage)
        while_live = 0
        if stage.recompute == "stage":
            inputs = sum(self.tensor_bytes(tensor, samples) for tensor in received)
            while_live, saved = saved, inputs
        if self.problem.regime.mode == "async":
            held += buffers
        else:
            while_live += buffers
        workspace = max((operator.workspace_bytes for operator in operators), default=0)
        return StageMemory(held, saved, while_live, workspace)

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
        if source.devices == target.devices:
            return 0
        level = level_between(self.problem.cluster, source.devices, target.devices)
        sent = (
            self.gradient_bytes(message.tensor, target.micro_batch)
            if backward
            else self.tensor_bytes(message.tensor, source.micro_batch)
        )
        return message_ns(level, sent, source.data_parallel, target.data_parallel)
