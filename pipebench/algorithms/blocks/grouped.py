"""A problem with groups of operators for operators: plans are compared on tens of them, not on thousands."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S, whole_bytes
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile


def group_name(group: int) -> str:
    """The operator of a group in the grouped problem."""
    return f"group {group}"


def grouped_problem(model: CostModel, groups: Sequence[Iterable[int]], samples: Iterable[int]) -> Problem | None:
    """The same problem, group by group, for plans whose stages hold whole groups.

    groups: positions of all operators; the groups must have an order in which none reads from a later one. Equal
    at these samples: times, messages, weights; saved bytes are rounded up for each operator and sample, so that
    what fits here fits there. Without alternatives. None where groups share an operator (clones of a constant),
    whose cost would count twice in a stage of both.
    """
    problem, graph = model.problem, model.graph
    group_of: dict[int, int] = {}
    for group, members in enumerate(groups):
        for op in members:
            if group_of.setdefault(op, group) != group:
                return None
    count = len(groups)
    sizes = tuple(sorted(set(samples)))
    of = np.array([group_of[op] for op in range(len(graph.operators))])
    times = np.zeros((2, count, len(sizes)), np.int64)
    for column, size in enumerate(sizes):
        for way, each in enumerate(model.times.at(size)):
            np.add.at(times[way, :, column], of, each)
    costs = model.times.costs.operators
    saved, workspace = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(saved, of, [whole_bytes(each.saved_bytes_per_sample) for each in costs])
    np.maximum.at(workspace, of, [each.workspace_bytes for each in costs])
    seconds = (times / NS_PER_S).tolist()
    operators = tuple(
        OperatorCosts(
            operator=group_name(group),
            forward_s=tuple(seconds[0][group]),
            backward_s=tuple(seconds[1][group]),
            saved_bytes_per_sample=float(saved[group]),
            workspace_bytes=int(workspace[group]),
        )
        for group in range(count)
    )
    on = DeviceCosts(device_type=problem.cluster.devices[0], micro_batches=sizes, operators=operators)
    shells = [Operator(name=group_name(group), kind="group") for group in range(count)]
    made = replace(joined_graph(graph, shells, of.tolist()), name="groups")
    profile = Profile(name="groups", graph=made, precision=problem.profile.precision, costs=(on,))
    return replace(problem, profile=profile)


def ungrouped_plan(plan: Plan, names: Sequence[Sequence[str]]) -> Plan:
    """A plan for the grouped problem as one for the problem itself. names: of each group's operators."""
    by_group = {group_name(group): each for group, each in enumerate(names)}
    return replace(
        plan,
        stages=tuple(
            replace(stage, operators=tuple(name for group in stage.operators for name in by_group[group]))
            for stage in plan.stages
        ),
    )


def joined_graph(graph: OperatorGraph, groups: Sequence[Operator], group_of: Sequence[int]) -> OperatorGraph:
    """The graph with groups for operators. A tensor that is read within its group alone is gone.

    groups: how each is called and what it is; what it reads is filled in, each tensor and parameter once.
    group_of: for each operator its group.
    """
    kept: list[Tensor] = []
    inputs: list[dict[str, None]] = [{} for _ in groups]
    for tensor, (producer, readers) in enumerate(zip(graph.producers, graph.consumers, strict=True)):
        maker = group_of[producer] if producer >= 0 else -1
        outside = {group_of[reader] for reader in readers} - {maker}
        if outside or not readers:
            described = graph.tensors[tensor]
            kept.append(replace(described, producer=groups[maker].name if maker >= 0 else None))
            for group in outside:
                inputs[group][described.name] = None
    weights: list[dict[str, None]] = [{} for _ in groups]
    for op, operator in enumerate(graph.operators):
        weights[group_of[op]].update(dict.fromkeys(operator.parameters))
    used = dict.fromkeys(name for each in weights for name in each)
    by_name = {parameter.name: parameter for parameter in graph.parameters}
    return OperatorGraph(
        name=graph.name,
        operators=tuple(
            replace(shell, inputs=tuple(reads), parameters=tuple(needs))
            for shell, reads, needs in zip(groups, inputs, weights, strict=True)
        ),
        tensors=tuple(kept),
        parameters=tuple(by_name[name] for name in used),
        context_parallel=graph.context_parallel,
    )


PLAIN = "(plain)"
"""The id of a way that stands for an operator's plain one."""


def plain_way(graph: OperatorGraph, costs: OperatorCosts) -> Alternative:
    """The plain way to run an operator, as an alternative."""
    operator = graph.operators[graph.index[costs.operator]]
    return Alternative(
        id=PLAIN,
        forward_s=costs.forward_s,
        backward_s=costs.backward_s,
        parameter_bytes=sum(graph.parameter_bytes[name] for name in set(operator.parameters)),
        saved_bytes_per_sample=costs.saved_bytes_per_sample,
        expert_bytes=sum(graph.expert_bytes[name] for name in set(operator.parameters)),
    )


def joined_way(
    graph: OperatorGraph,
    identifier: str,
    inside: Sequence[OperatorCosts],
    together: Sequence[Alternative],
    crossing: set[str],
) -> Alternative:
    """One way for a group of operators.

    inside: their costs. together: how each of them runs. crossing: names of tensors that leave or enter a group.

    Times are sums, in ns; saved bytes are sums, each rounded up to whole bytes.
    """
    sharing: dict[tuple[str, ...], tuple[int, int]] = {}
    weights = experts = 0
    for each, way in zip(inside, together, strict=True):
        used = tuple(sorted(graph.operators[graph.index[each.operator]].parameters))
        if used:
            alike, shared = sharing.get(used, (0, 0))
            sharing[used] = (
                max(alike, way.parameter_bytes - way.expert_bytes),
                max(shared, way.expert_bytes),
            )
        else:
            weights += way.parameter_bytes
            experts += way.expert_bytes
    boundary: dict[str, tuple[float, float]] = {}
    for way in together:
        for tensor, (forward, backward) in way.boundary_bytes.items():
            if tensor in crossing:
                before = boundary.get(tensor, (0.0, 0.0))
                boundary[tensor] = before[0] + forward, before[1] + backward
    return Alternative(
        id=identifier,
        tensor_parallel=together[0].tensor_parallel,
        recompute=together[0].recompute,
        selective=together[0].selective,
        forward_s=summed_s([way.forward_s for way in together]),
        backward_s=summed_s([way.backward_s for way in together]),
        parameter_bytes=weights + sum(map(sum, sharing.values())),
        saved_bytes_per_sample=float(sum(whole_bytes(way.saved_bytes_per_sample) for way in together)),
        fixed_bytes=sum(way.fixed_bytes for way in together),
        collective_bytes=sum(way.collective_bytes for way in together),
        boundary_bytes=boundary,
        transient_bytes_per_sample=max(way.transient_bytes_per_sample for way in together),
        forward_collective_s=summed_where_said([way.forward_collective_s for way in together]),
        backward_collective_s=summed_where_said([way.backward_collective_s for way in together]),
        expert_bytes=experts + sum(held for _, held in sharing.values()),
    )


def summed_where_said(times_s: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The sum over those that say their seconds; empty where none does."""
    return summed_s([each for each in times_s if each])


def summed_s(times_s: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Seconds at each size, as sums of whole ns."""
    return tuple(
        sum(round(second * NS_PER_S) for second in column) / NS_PER_S for column in zip(*times_s, strict=True)
    )
