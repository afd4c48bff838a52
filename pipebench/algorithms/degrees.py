"""One way to run every operator at the same tensor-parallel degree, recomputed or not."""

from collections.abc import Iterator
from dataclasses import dataclass

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

    def chosen(self, operators: tuple[int, ...]) -> tuple[str, ...]:
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
