"""A plan of stages in a row with the same degrees on all, and the one way to run every operator at a degree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipebench.costs.placement import place
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Recompute
from pipebench.domain.profile import OperatorCosts


@dataclass(frozen=True, slots=True)
class Way:
    """choice: for each operator of the graph the id of an alternative ('' the plain one). recompute: of whole
    stages, where operators offer no recomputation of their own.
    """

    tensor_parallel: int
    choice: tuple[str, ...]
    recompute: Recompute = "none"
    again: bool = False

    def choice_of(self, operators: tuple[int, ...]) -> tuple[str, ...]:
        """The choice of some operators (positions), empty where all are plain."""
        made = tuple(self.choice[operator] for operator in operators)
        return made if any(made) else ()


def plain(problem: Problem, recompute: Recompute = "none") -> Way:
    """Every operator whole; recomputation of whole stages."""
    return Way(1, ("",) * len(problem.profile.graph.operators), recompute)


def degrees(problem: Problem) -> tuple[int, ...]:
    """Tensor-parallel degrees that some operator offers, 1 among them, ascending."""
    offered = {a.tensor_parallel for costs in _operators(problem) for a in costs.alternatives}
    return tuple(sorted({1} | offered))


def way(problem: Problem, tensor_parallel: int, recompute: bool) -> Way | None:
    """Every operator at that degree; one that offers none above 1 runs whole on each device. None: not offered."""
    if tensor_parallel not in degrees(problem):
        return None
    operators = _operators(problem)
    own = recompute and any(list(_matching(costs, tensor_parallel, True)) for costs in operators)
    choice = []
    for costs in operators:
        wanted = [*(_matching(costs, tensor_parallel, True) if own else ()), *_plain(costs, tensor_parallel)]
        if not wanted:
            return None
        choice.append(wanted[0])
    return Way(tensor_parallel, tuple(choice), "stage" if recompute and not own else "none", recompute)


def _plain(costs: OperatorCosts, degree: int) -> Iterator[str]:
    if degree == 1 or not any(a.tensor_parallel > 1 for a in costs.alternatives):
        yield ""
    yield from _matching(costs, degree, False)


def _matching(costs: OperatorCosts, degree: int, recompute: bool) -> Iterator[str]:
    return (a.id for a in costs.alternatives if a.tensor_parallel == degree and a.recompute == recompute)


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
