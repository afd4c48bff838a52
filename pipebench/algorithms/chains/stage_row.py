"""A plan of stages in a row with the same degrees on all, and the one way to run every operator at a degree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipebench.costs.placement import place
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts
from pipebench.domain.recomputation import (
    Recompute,
    RecomputePin,
    Repeated,
    of_layers,
    of_stages,
    repeated,
)


@dataclass(frozen=True, slots=True)
class Way:
    """choice: for each operator of the graph the id of an alternative ('' the plain one). recompute: of whole
    stages, where operators offer no recomputation of their own. again: the word for how it recomputes.
    """

    tensor_parallel: int
    choice: tuple[str, ...]
    recompute: Recompute = "none"
    again: RecomputePin = "none"

    @property
    def one_by_one(self) -> bool:
        """Whether whole stages were meant to run again, and layers or operators of their own do in their place."""
        return self.again == "stage" and self.recompute == "none"

    def choice_of(self, operators: tuple[int, ...]) -> tuple[str, ...]:
        """The choice of some operators (positions), empty where all are plain."""
        made = tuple(self.choice[operator] for operator in operators)
        return made if any(made) else ()


def plain(problem: Problem, recompute: RecomputePin | None = "none") -> Way:
    """Every operator whole; recomputation of whole stages, or of each layer where the pin is about layers.

    Raises UnsupportedProblem where a layer recomputes only where it is split.
    """
    if of_layers(recompute) is None:
        return Way(1, ("",) * len(problem.profile.graph.operators), of_stages(recompute))
    found = way(problem, 1, recompute)
    if found is None:
        raise UnsupportedProblem(
            f"recompute is pinned to {recompute}, which the profile offers for split layers alone",
            "pin a tensor-parallel degree",
        )
    return found


def degrees(problem: Problem) -> tuple[int, ...]:
    """Tensor-parallel degrees that some operator offers, 1 among them, ascending."""
    offered = {a.tensor_parallel for costs in _operators(problem) for a in costs.alternatives}
    return tuple(sorted({1} | offered))


def way(problem: Problem, tensor_parallel: int, recompute: RecomputePin | None) -> Way | None:
    """Every operator at that degree; one that offers none above 1 runs whole on each device. None: not offered.

    recompute: under `stage` operators that offer to run again do so, and where none does the whole stage; under
    `full` and `selective` every layer does. None: nothing recomputes.
    """
    if tensor_parallel not in degrees(problem):
        return None
    operators = _operators(problem)
    asked = of_layers(recompute) or ("full" if recompute == "stage" else "none")
    own = asked != "none" and any(list(_matching(costs, tensor_parallel, asked)) for costs in operators)
    choice = []
    for operator, costs in zip(problem.profile.graph.operators, operators, strict=True):
        again = _matching(costs, tensor_parallel, asked) if own else ()
        must = of_layers(recompute) is not None and operator.layer is not None
        wanted = [*again, *(() if must else _plain(costs, tensor_parallel))]
        if not wanted:
            return None
        choice.append(wanted[0])
    whole: Recompute = "none" if own else of_stages(recompute)
    return Way(tensor_parallel, tuple(choice), whole, recompute or "none")


def recompute_notices(problem: Problem, run: Way) -> tuple[str, ...]:
    """A line where `stage` is pinned and the plan is one of `full`."""
    if problem.pins.recompute != "stage" or not run.one_by_one:
        return ()
    return (
        "recompute stage: what can run again by itself does, each layer from its own input, as with full; no "
        "stage runs again as a whole",
    )


def not_offered(planner: str, problem: Problem, tensor_parallel: int) -> UnsupportedProblem:
    """What `planner` says where `way` has none at a pinned degree."""
    recompute = of_layers(problem.pins.recompute)
    offered = [str(degree) for degree in degrees(problem) if way(problem, degree, recompute) is not None]
    listed = ", ".join(offered) or "none"
    return UnsupportedProblem(
        f"{planner} has tensor parallelism of {listed} here, {tensor_parallel} is pinned"
        + (f" with recompute {recompute}" if recompute else ""),
        f"use one of {listed}",
    )


def _plain(costs: OperatorCosts, degree: int) -> Iterator[str]:
    if degree == 1 or not any(a.tensor_parallel > 1 for a in costs.alternatives):
        yield ""
    yield from _matching(costs, degree, "none")


def _matching(costs: OperatorCosts, degree: int, again: Repeated) -> Iterator[str]:
    return (a.id for a in costs.alternatives if a.tensor_parallel == degree and repeated(a) == again)


def _operators(problem: Problem) -> tuple[OperatorCosts, ...]:
    return problem.profile.on(problem.cluster.devices[0]).operators


def stage_row(
    problem: Problem,
    contents: Sequence[Sequence[int]],
    way: Way,
    *,
    data_parallel: int,
    pipeline: int,
    micro_batch: int,
    placement: PlacementKind = "in-turn",
) -> Plan:
    """contents: operators (positions) of each stage of one pipeline, in the order of execution.

    data_parallel: replicas of a stage in one pipeline. pipeline: device sets. micro_batch: of all these replicas.
    placement: a kind that has a rule; it counts where stages share device sets, as they do in several pipelines.

    Consecutive device ids; with one stage a place what 1F1B keeps in flight, with several that is the scheduler's.
    Raises InfeasibleProblem when the cluster has too few devices, InvalidValue for a number of stages that the
    placement does not have.
    """
    graph = problem.profile.graph
    placed = place([data_parallel * way.tensor_parallel] * pipeline, problem.cluster.size)
    pipelines = pipelines_of_kind(placement) or 1
    rounds = problem.mini_batch // (pipelines * micro_batch)
    several = len(contents) * pipelines > pipeline
    listed = [*contents] * pipelines
    sets = sets_of_stages(placement, pipeline, len(listed)) if several else range(len(listed))
    stages = [
        Stage(
            operators=tuple(graph.operators[op].name for op in operators),
            devices=placed[number],
            data_parallel=data_parallel,
            tensor_parallel=way.tensor_parallel,
            micro_batch=micro_batch,
            in_flight=0 if several else min(len(contents) - position, rounds) * micro_batch,
            choice=way.choice_of(tuple(operators)),
            recompute=way.recompute,
        )
        for position, (operators, number) in enumerate(zip(listed, sets, strict=True))
    ]
    length = len(contents)
    return Plan(
        stages=tuple(stages),
        order_edges=tuple((k, after) for k, after in pairwise(range(len(listed))) if after % length),
        placement=placement if several else "apart",
        pipelines=pipelines if several else 1,
    )
