"""CostModel: what each stage and message of a plan costs on a problem."""

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from pipebench.costs.formula import Formula, Holdings, StageMemory, StageTimes
from pipebench.costs.messages import Message, messages, slowest
from pipebench.costs.placement import in_farthest_copy, in_place
from pipebench.costs.quantise import whole_bytes
from pipebench.costs.rings import Ring, Rings, ring
from pipebench.costs.sharded_stage import ShardedStage, is_sharded, refuse_alternatives
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.costs.sums.terms import PlainTerms, Terms
from pipebench.costs.weights import (
    WeightPart,
    exchange_ns,
    reduce_ns,
    state_bytes,
    unit_bytes,
    update_ns,
    weight_parts,
)
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts


class CostModel:
    """The costs of stages and messages of plans for one problem. Times are cached by micro-batch size."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.formula = Formula(problem.regime, problem.mini_batch)
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
        """Operator times on the device type of device 0. Planners for uniform clusters use these."""
        return self.times_on(self.problem.cluster.devices[0])

    def terms(self, samples: int) -> Terms:
        """What each operator, parameter and tensor adds to a stage. samples: on one replica.

        Device type: that of device 0.
        """
        return self._plain_terms.at(samples)

    @cached_property
    def _plain_terms(self) -> PlainTerms:
        return PlainTerms(self.graph, self.times)

    def _device_type(self, stage: Stage) -> str:
        return self.problem.cluster.devices[stage.devices[0]]

    def _costs(self, stage: Stage) -> Sequence[OperatorCosts]:
        return self.times_on(self._device_type(stage)).costs.operators

    def local_samples(self, stage: Stage) -> int:
        """Samples of a micro-batch on one of the replicas that share it: ceil(micro_batch / sharers)."""
        return -(-stage.micro_batch // stage.sharers)

    def stage_times(self, stage: Stage, plan: Plan | None = None) -> StageTimes:
        """Times of one micro-batch: sums over the stage's operators at `local_samples` (`Formula.times`).

        plan: the plan of the stage; its pipelines all-reduce together. None: one pipeline.
        In async a replica that takes every r-th micro-batch has an r-fold share of the update in each of them.
        Split operators are priced by `ShardedStage`.
        Raises UnsupportedProblem for a split operator that also has an alternative.
        """
        refuse_alternatives(stage)
        lanes = stage.turns * (1 if plan is None else plan.all_pipelines)
        return self.formula.times(
            self._compute_ns(stage, plan),
            self.update_ns(stage, plan),
            stage.micro_batch,
            lanes,
            stage.recompute,
            self._exchange_ns(stage, plan),
        )

    def exposed_exchange_ns(self, stage: Stage, plan: Plan | None = None) -> tuple[int, int]:
        """The ns of a forward and of a backward in which replicas exchange weights and nothing is computed."""
        if not self.problem.regime.shards_weights:
            return 0, 0
        computed = self.formula.times(self._compute_ns(stage, plan), 0, stage.micro_batch, 1, stage.recompute)
        exchange = self._exchange_ns(stage, plan)
        return max(0, exchange[0] - computed.forward), max(0, exchange[1] - computed.backward)

    def update_ns(self, stage: Stage, plan: Plan | None = None) -> int:
        """The time of the update that the stage runs once a mini-batch, in ns, in both regimes."""
        if self.problem.regime.step is None:
            return self.formula.update_ns(self.all_reduce_ns(stage, plan))
        replicas = stage.data_parallel * (1 if plan is None else plan.all_pipelines)
        return update_ns(self.formula, self.all_reduce_ns(stage, plan), self._parts(stage, replicas))

    def needs_update_task(self, stage: Stage, plan: Plan | None = None) -> bool:
        """Whether the update is a task of its own (kind R): in sync, where it takes time."""
        return self.problem.regime.mode == "sync" and self.update_ns(stage, plan) > 0

    def _compute_ns(self, stage: Stage, plan: Plan | None) -> tuple[int, int, int]:
        """Forward, backward and weight-gradient ns of one micro-batch without recomputation."""
        times = self.times_on(self._device_type(stage))
        samples = self.local_samples(stage)
        if is_sharded(stage):
            return self._sharded_stage(stage, plan).times(times)
        positions = [self.graph.index[name] for name in stage.operators]
        if any(stage.choice):
            each = [
                times.choice_ns(position, identifier, samples)
                for position, identifier in zip(positions, stage.choice, strict=True)
            ]
            forward, backward, weight_gradient = (sum(column) for column in zip(*each, strict=True))
            return forward, backward, weight_gradient
        forward_all, backward_all = times.at(samples)
        weight_all = times.weight_gradient_at(samples)
        return (
            int(forward_all[positions].sum()),
            int(backward_all[positions].sum()),
            int(weight_all[positions].sum()),
        )

    def collective_ns(self, stage: Stage, plan: Plan | None = None) -> tuple[int, int]:
        """The ns of a micro-batch's forward and backward that collectives inside the stage add.

        They are a part of `stage_times`, recomputation included. Alternatives that do not tell them apart add 0.
        """
        if is_sharded(stage):
            forward, backward = self._sharded_stage(stage, plan).communication()
        else:
            times, samples = self.times_on(self._device_type(stage)), self.local_samples(stage)
            each = [
                times.collective_ns(self.graph.index[name], identifier, samples)
                for name, identifier in zip(stage.operators, stage.choice, strict=False)
            ]
            forward, backward = sum(there for there, _ in each), sum(back for _, back in each)
        return forward, backward + forward if stage.recompute == "stage" else backward

    def exposed_reduce_ns(self, stage: Stage, plan: Plan | None = None) -> int:
        """The ns of `update_ns` in which gradients are reduced; the rest is the optimizer."""
        return self.formula.exposed_reduce_ns(self.all_reduce_ns(stage, plan))

    def parameter_bytes(self, stage: Stage) -> int:
        """Bytes of weights on one device of the stage. A parameter that several operators use counts once.

        Operators under alternatives that use the same set of parameters count once, with the largest of their
        bytes, experts that ranks share out apart.
        An alternative whose parameters overlap with others in any other way counts in full.
        Split operators are priced by `ShardedStage.weights`.
        """
        return self._weights(stage)[0]

    def _weights(self, stage: Stage) -> tuple[int, int]:
        """`parameter_bytes`, and of them those of experts that ranks share out."""
        if is_sharded(stage):
            return sum(self._sharded_stage(stage).weights().values()), 0
        graph = self.graph
        names: set[str] = set()
        alternatives = experts = 0
        sharing: dict[frozenset[str], tuple[int, int]] = {}
        costs = self._costs(stage)
        for position, name in enumerate(stage.operators):
            operator = graph.index[name]
            identifier = stage.choice[position] if stage.choice else ""
            if not identifier:
                names.update(graph.operators[operator].parameters)
                continue
            used = frozenset(graph.operators[operator].parameters)
            way = costs[operator].alternative(identifier)
            if used:
                alike, shared = sharing.get(used, (0, 0))
                own = way.parameter_bytes - way.expert_bytes
                sharing[used] = max(alike, own), max(shared, way.expert_bytes)
            else:
                alternatives += way.parameter_bytes
                experts += way.expert_bytes
        weights = alternatives + sum(map(sum, sharing.values())) + sum(graph.parameter_bytes[n] for n in names)
        if self.problem.regime.expert_ranks > 1:
            experts += sum(held for _, held in sharing.values()) + sum(graph.expert_bytes[n] for n in names)
        return weights, experts

    def _parts(self, stage: Stage, replicas: int) -> tuple[WeightPart[int], ...]:
        """The weights on one device of the stage, by how many ranks of all replicas hold the same."""
        return weight_parts(self.problem.regime, *self._weights(stage), replicas, stage.tensor_parallel)

    def all_reduce_ns(self, stage: Stage, plan: Plan | None = None) -> int:
        """Ring all-reduce of the stage's weight gradients over its replicas in all pipelines and copies, in ns.

        The ring spans the devices of all these replicas. Each tensor-parallel rank has a ring; all rings run at
        once. Experts that ranks share out have rings of those ranks that hold the same ones (`costs.weights`).
        Gradients of split operators are also reduced over the devices of a replica that hold the same weights.
        """
        replicas, links = self._rings(stage, plan)
        if is_sharded(stage):
            return self._sharded_stage(stage).all_reduce_ns(self.formula, replicas, links)
        if self.formula.holders(replicas) == 1 and self.problem.regime.expert_ranks == 1:
            return 0
        return reduce_ns(self.formula, self._parts(stage, replicas), links)

    def _rings(self, stage: Stage, plan: Plan | None) -> tuple[int, Rings]:
        """The replicas of the stage in all pipelines and copies, and the links between them by number of rings."""
        replicas = stage.data_parallel * (1 if plan is None else plan.all_pipelines)
        alike = [stage]
        if plan is not None and plan.pipelines > 1:
            alike = [plan.stages[k] for k in plan.mirrors(plan.stages.index(stage))]
        blocks = tuple((min(each.devices), max(each.devices)) for each in alike)
        if plan is not None and plan.copies > 1:
            apart = plan.copy_size
            starts = range(0, plan.copies * apart, apart)
            blocks = tuple((first + start, last + start) for first, last in blocks for start in starts)
        devices = replicas * stage.tensor_parallel
        return replicas, lambda rings: self._ring(blocks, devices, rings)

    def _ring(self, blocks: tuple[tuple[int, int], ...], devices: int, rings: int) -> Ring:
        """The links of each of so many rings over `devices` devices in these blocks."""
        ranks = devices * self.problem.cluster.rank_count // rings
        return ring(self.problem.cluster, self.problem.regime, blocks, ranks, rings)

    def _exchange_ns(self, stage: Stage, plan: Plan | None) -> tuple[int, int]:
        """What replicas that share out weights exchange in a forward and in a backward (`Formula.exchange_ns`).

        Split operators whose weights several devices of a replica hold share them out over these as well.
        """
        if not self.problem.regime.shards_weights:
            return 0, 0
        replicas, links = self._rings(stage, plan)
        if not is_sharded(stage):
            return exchange_ns(self.formula, self._parts(stage, replicas), links)
        sharers = self._sharded_stage(stage).weights()
        each = [
            self.formula.exchange_ns(links(max(1, stage.tensor_parallel // held)), local, replicas * held)
            for held, local in sharers.items()
            if self.formula.holders(replicas * held) > 1
        ]
        return sum(there for there, _ in each), sum(back for _, back in each)

    def _unit_bytes(self, stage: Stage, replicas: int) -> int:
        """Weights of the operator that has the most, on one device, where replicas share them out."""
        if not self.problem.regime.shards_weights:
            return 0
        if is_sharded(stage):
            return self._sharded_stage(stage).largest_bytes(replicas)
        graph, costs, regime = self.graph, self._costs(stage), self.problem.regime
        most = 0
        for name, identifier in zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True):
            operator = graph.index[name]
            held = graph.weight_bytes[operator], graph.expert_weight_bytes[operator]
            if identifier:
                way = costs[operator].alternative(identifier)
                held = way.parameter_bytes, way.expert_bytes
            parts = weight_parts(regime, *held, replicas, stage.tensor_parallel)
            most = max(most, unit_bytes(parts))
        return most

    def _sharded_stage(self, stage: Stage, plan: Plan | None = None) -> ShardedStage:
        """plan: the plan of the stage, where times matter: those of the copy that is spread most."""
        if plan is not None and plan.copies > 1:
            stage = replace(stage, devices=in_farthest_copy(self.problem.cluster, plan, stage.devices))
        return ShardedStage(self.graph, stage, self.local_samples(stage), self.problem.cluster)

    def saved_bytes(self, stage: Stage) -> int:
        """Bytes that one device saves for one live micro-batch without recomputation."""
        costs = self._costs(stage)
        if is_sharded(stage):
            return self._sharded_stage(stage).saved_bytes({each.operator: each for each in costs})
        samples = self.local_samples(stage)
        total = 0
        for position, name in enumerate(stage.operators):
            operator = costs[self.graph.index[name]]
            identifier = stage.choice[position] if stage.choice else ""
            each = operator.alternative(identifier) if identifier else operator
            total += whole_bytes(each.saved_bytes_per_sample * samples)
        return total

    def stage_memory(self, plan: Plan, position: int, edges: Sequence[Message]) -> StageMemory:
        """Memory of one device of the stage at `position` (`Formula.memory`). edges: the messages of the plan.

        Each tensor that crosses into or out of the stage reserves one message and one gradient message, the part
        of one replica. Where consumers differ in micro-batch, the largest counts. Between stages on the same
        devices only the receiver reserves it.
        A tensor that crosses is held whole by each device of a replica, also where operators are split
        (`ShardedStage`).
        Raises UnsupportedProblem for a split operator that also has an alternative.
        """
        stage = plan.stages[position]
        refuse_alternatives(stage)
        costs = self._costs(stage)
        samples = self.local_samples(stage)
        operators = [costs[self.graph.index[name]] for name in stage.operators]
        chosen = [
            operator.alternative(identifier)
            for operator, identifier in zip(operators, stage.choice, strict=False)
            if identifier
        ]
        replicas = stage.data_parallel * plan.all_pipelines
        if is_sharded(stage):
            state = self._sharded_stage(stage).weight_state(self.formula, replicas)
        else:
            state = state_bytes(self.formula, self._parts(stage, replicas))
        return self.formula.memory(
            Holdings(
                state_bytes=state,
                saved_bytes=self.saved_bytes(stage),
                input_bytes=self._input_bytes(stage, position, edges),
                buffer_bytes=self._buffer_bytes(plan, position, edges),
                workspace_bytes=max((operator.workspace_bytes for operator in operators), default=0),
                fixed_bytes=sum(each.fixed_bytes for each in chosen),
                transient_bytes=max(
                    (whole_bytes(each.transient_bytes_per_sample * samples) for each in chosen), default=0
                ),
                unit_bytes=self._unit_bytes(stage, replicas),
            ),
            stage.recompute,
        )

    def _input_bytes(self, stage: Stage, position: int, edges: Sequence[Message]) -> int:
        """Bytes of the tensors that the stage receives and of the model's inputs that it reads, for one
        micro-batch.
        """
        if stage.recompute == "none":
            return 0
        read = {
            self.graph.tensor_index[tensor]
            for name in stage.operators
            for tensor in self.graph.operators[self.graph.index[name]].inputs
        }
        kept = {m.tensor for m in edges if m.target == position}
        kept |= {tensor for tensor in read if self.graph.producers[tensor] < 0}
        samples = self.local_samples(stage)
        return sum(self.tensor_bytes(tensor, samples) for tensor in kept)

    def _buffer_bytes(self, plan: Plan, position: int, edges: Sequence[Message]) -> int:
        """Bytes that one device reserves for one message and gradient message of each tensor in and out."""
        stage = plan.stages[position]
        largest: dict[tuple[bool, int], tuple[int, int]] = {}
        for m in edges:
            if position not in (m.source, m.target):
                continue
            source, target = plan.stages[m.source], plan.stages[m.target]
            if m.target == position or not in_place(source, target):
                key = m.target == position, m.tensor
                forward, backward = largest.get(key, (0, 0))
                largest[key] = max(forward, source.micro_batch), max(backward, target.micro_batch)
        return sum(
            self.tensor_bytes(tensor, -(-forward // stage.sharers))
            + self.gradient_bytes(tensor, -(-backward // stage.sharers))
            for (_, tensor), (forward, backward) in largest.items()
        )

    def tensor_bytes(self, tensor: int, samples: int) -> int:
        """Bytes of one message of a tensor."""
        described = self.graph.tensors[tensor]
        return whole_bytes(described.forward_bytes_per_sample * samples) + described.fixed_bytes

    def gradient_bytes(self, tensor: int, samples: int) -> int:
        """Bytes of one message of a tensor's gradient."""
        return whole_bytes(self.graph.tensors[tensor].gradient_bytes_per_sample * samples)

    def messages(self, plan: Plan) -> tuple[Message, ...]:
        """The messages of a plan."""
        return messages(self.graph, plan)

    def message_ns(self, plan: Plan, message: Message, backward: bool = False, turn: int = 0) -> int:
        """The time of one message in ns, in the copy of the pipeline where it takes longest.

        It carries the tensor at the source's micro-batch; with `backward` the gradient at the target's
        micro-batch. turn: the number of a micro-batch, which says between which replicas it goes.
        Stages on the same devices pass tensors in place, which takes no time.
        """
        source, target = plan.stages[message.source], plan.stages[message.target]
        if in_place(source, target):
            return 0
        cluster = self.problem.cluster
        ends = in_farthest_copy(cluster, plan, (*source.devices_of(turn), *target.devices_of(turn)))
        sent = (
            self.gradient_bytes(message.tensor, target.micro_batch)
            if backward
            else self.tensor_bytes(message.tensor, source.micro_batch)
        )
        ranks = [stage.sharers * self._message_shares(stage) for stage in (source, target)]
        return Formula.message_ns(slowest(cluster, min(ends), max(ends)), sent, *ranks)

    def _message_shares(self, stage: Stage) -> int:
        """Into how many parts the ranks of a replica share out what they send: one where each sends the whole."""
        step = self.problem.regime.step
        return stage.tensor_parallel if step is not None and step.splits_messages else 1
