"""One stage of a plan in one process: forward, backward in one piece or two, gradients by mini-batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench_torch.modules.models import StageableModel, learnt_from, loss_to_walk_back
from pipebench_torch.modules.walk import Walk
from pipebench_torch.placing.messages import TOKEN, Traffic
from pipebench_torch.running.exchange import zeros_in_buckets


@dataclass(slots=True)
class Live:
    """A micro-batch between its forward and its backward.

    outputs: tensors whose gradients come from other stages.
    losses: of the model's outputs that the stage makes.
    """

    inputs: dict[int, Tensor]
    outputs: dict[int, Tensor]
    losses: list[Tensor]
    version: int
    first: int


class StageRun:
    """The operators of one stage and their weights, by version; the latest version is the last.

    gradients: by mini-batch and name.
    buckets: by mini-batch, where the stage is replicated: the long tensors of which its gradients are parts, as
        DistributedDataParallel keeps them, so that nothing is copied to sum them.
    """

    def __init__(
        self, model: StageableModel, problem: Problem, plan: Plan, position: int, traffic: Traffic
    ) -> None:
        self.model = model
        self.stage = plan.stages[position]
        self.mini_batch = problem.mini_batch
        graph = model.graph
        self.operators = _in_order(graph, self.stage.operators)
        moved = {(p.sender, p.receiver, p.tensor) for p in traffic.pieces if p.kind == "F" and p.tensor != TOKEN}
        self.received = sorted({tensor for _, receiver, tensor in moved if receiver == position})
        self.sent = sorted({tensor for sender, _, tensor in moved if sender == position})
        held = set(self.operators)
        read = {graph.tensor_index[name] for op in held for name in graph.operators[op].inputs}
        self.model_inputs = sorted(tensor for tensor in read if graph.producers[tensor] < 0)
        self.sinks = sorted(
            tensor
            for op in held
            for tensor in graph.outputs[op]
            if not graph.consumers[tensor] and not graph.operators[op].constant
        )
        self.parameters = list(
            dict.fromkeys(name for op in self.operators for name in graph.operators[op].parameters)
        )
        self.versions: dict[int, dict[str, Tensor]] = {}
        self.gradients: dict[int, dict[str, Tensor]] = {}
        self.buckets: dict[int, list[Tensor]] = {}
        self.replicated = False
        self.live: dict[int, Live] = {}
        self._pending: dict[int, tuple[list[Tensor], list[Tensor], Live]] = {}
        self._checkpointed = self._recomputed_operators(problem)
        self._operators_walk = Walk(graph, self.operators, kept=self.sent)

    def _recomputed_operators(self, problem: Problem) -> frozenset[int]:
        graph, found = self.model.graph, set()
        costs = problem.profile.on(problem.cluster.devices[self.stage.devices[0]]).operators
        for name, choice in zip(self.stage.operators, self.stage.choice, strict=False):
            if choice and costs[graph.index[name]].alternative(choice).recompute:
                found.add(graph.index[name])
        return frozenset(found)

    def forward(
        self, micro_batch: int, inputs: dict[int, Tensor], version: int, first: int, groups: Sequence[int]
    ) -> dict[int, Tensor]:
        """Run the forward and keep what the backward needs. Returns the tensors that others wait for."""
        for tensor, value in inputs.items():
            if learnt_from(self.model.graph, tensor, value):
                value.requires_grad_()
        keep = self.stage.recompute == "none"
        with torch.set_grad_enabled(keep):
            outputs, losses = self.compute(inputs, version, first, groups)
        self.live[micro_batch] = Live(inputs, outputs if keep else {}, losses if keep else [], version, first)
        return {tensor: value.detach() for tensor, value in outputs.items()}

    def compute(
        self, inputs: Mapping[int, Tensor], version: int, first: int, groups: Sequence[int]
    ) -> tuple[dict[int, Tensor], list[Tensor]]:
        """Run the operators. Returns the tensors to send, and losses of the model's outputs in this stage."""
        weights = self.versions[version]

        def run(operator: int, read: dict[int, Tensor]) -> dict[int, Tensor]:
            if operator in self._checkpointed:
                return self._checkpoint(operator, read, weights, first, groups)
            return self.model.run(operator, read, weights, first, groups)

        values = self._operators_walk.run(inputs, run)
        sinks = [values[tensor] for tensor in self.sinks if values[tensor].is_floating_point()]
        losses = [loss_to_walk_back(value, self.mini_batch) for value in sinks]
        return {tensor: values[tensor] for tensor in self.sent}, losses

    def _checkpoint(
        self,
        operator: int,
        values: Mapping[int, Tensor],
        weights: Mapping[str, Tensor],
        first: int,
        groups: Sequence[int],
    ) -> dict[int, Tensor]:
        from torch.utils.checkpoint import checkpoint

        made: dict[int, Tensor] = checkpoint(
            self.model.run, operator, values, weights, first, groups, use_reentrant=False
        )
        return made

    def backward(
        self, micro_batch: int, received: dict[int, Tensor], kind: str, round_: int, groups: Sequence[int]
    ) -> dict[int, Tensor]:
        """Run B, or I and W. Returns the gradients to send, and adds those of the weights to the round's."""
        if kind == "W":
            outputs, gradients, live = self._pending.pop(micro_batch)
            self._walk_back(outputs, gradients, [], live, round_)
            return {}
        live = self.live.pop(micro_batch)
        if self.stage.recompute == "stage":
            with torch.enable_grad():
                live.outputs, live.losses = self.compute(live.inputs, live.version, live.first, groups)
        learning = [(t, value) for t, value in live.outputs.items() if t in received and value.requires_grad]
        losses = [loss for loss in live.losses if loss.requires_grad]
        outputs = [value for _, value in learning] + losses
        gradients = [received[tensor] for tensor, _ in learning] + [torch.ones_like(loss) for loss in losses]
        live.outputs, live.losses = {}, []
        wanted = [tensor for tensor, value in live.inputs.items() if value.requires_grad]
        sources = [live.inputs[tensor] for tensor in wanted]
        self._walk_back(outputs, gradients, sources, live, None if kind == "I" else round_)
        if kind == "I":
            self._pending[micro_batch] = (outputs, gradients, live)
        back = {}
        for tensor, value in zip(wanted, sources, strict=True):
            if tensor in self.received:
                back[tensor] = torch.zeros_like(value) if value.grad is None else value.grad
            value.grad = None  # it may be the input of another stage of this process too
        return back

    def _walk_back(
        self,
        outputs: Sequence[Tensor],
        gradients: Sequence[Tensor],
        sources: Sequence[Tensor],
        live: Live,
        round_: int | None,
    ) -> None:
        """Walk the graph back once, to these sources and, but where round_ is None, to the weights.

        Gradients of weights are added where autograd makes them, as in a training loop, so that no second set of
        them is held.
        """
        weights = {} if round_ is None else {name: self.versions[live.version][name] for name in self.parameters}
        held = {} if round_ is None else self.gradients_of(round_)
        leaves = [*sources, *weights.values()]
        if not outputs or not leaves:
            return
        for name, weight in weights.items():
            weight.grad = held.get(name)
        torch.autograd.backward(outputs, gradients, inputs=leaves, retain_graph=round_ is None)
        for name, weight in weights.items():
            if weight.grad is not None:
                held[name] = weight.grad
            weight.grad = None

    def gradients_of(self, round_: int) -> dict[str, Tensor]:
        """Of the weights over one mini-batch, so far: zeros at first where the stage is replicated, else none."""
        if round_ not in self.gradients:
            weights = self.versions[0]
            self.buckets[round_], self.gradients[round_] = (
                zeros_in_buckets(weights, self.parameters) if self.replicated else ([], {})
            )
        return self.gradients[round_]

    def forget(self, round_: int) -> None:
        """Drop the gradients of a mini-batch."""
        self.gradients.pop(round_, None)
        self.buckets.pop(round_, None)


def _in_order(graph: OperatorGraph, names: tuple[str, ...]) -> list[int]:
    held = {graph.index[name] for name in names}
    return [operator for operator in graph.topological if operator in held]
