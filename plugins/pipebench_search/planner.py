"""The planner `local-search`."""

from pipebench.algorithms.coarse import require_whole_operators
from pipebench.bounds import memory_bound, time_bound
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.workload import typed_pins
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_search.descent import LocalSearch
from pipebench_search.every_draft import is_small
from pipebench_search.incumbent import TIME_IS_OVER
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import Scorer


def plan(problem: Problem, context: Context) -> PlanResult:
    """Local search and annealing from plans that were handed over and rows of stages; the best plan, in its order.

    It ends when the gap to the proven bound is reached, after so many plans as the options say, or with the time.
    Of equal seeds and a number of plans it is the same from run to run.
    Raises UnsupportedProblem for devices of several types, InfeasibleProblem where no plan to start from fits.
    """
    options = context.options
    assert isinstance(options, SearchOptions)
    require_whole_operators(problem, "local-search")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1 and not context.seeds:
        raise UnsupportedProblem(f"local-search plans for devices of one type, these are {', '.join(kinds)}")
    _require_devices(problem)
    needs = memory_bound(problem).value
    if needs > max(kind.memory_bytes for kind in problem.cluster.types):
        raise InfeasibleProblem(f"every plan needs {needs} bytes on a device")
    bound_ns = context.bound_ns or time_bound(problem).ns
    search = LocalSearch(context, Scorer(problem, context, is_small(problem)), bound_ns, options)
    search.run(list(context.seeds))
    if search.known.best is None:
        if search.known.ended == TIME_IS_OVER:
            raise DeadlineReached("the time limit was reached")
        raise InfeasibleProblem("none of the plans that it starts from fits")
    return search.known.result()


def _require_devices(problem: Problem) -> None:
    """Raise InfeasibleProblem where the device sets of one pipeline alone are more than there are devices."""
    pins, size = problem.pins, problem.cluster.size
    needed = (pins.pipeline or 1) * (pins.tensor_parallel or 1)
    if needed > size:
        said = typed_pins(pins, "tensor_parallel", "pipeline")
        raise InfeasibleProblem(f"{said} ask for {needed} devices, there are {size}", f"-n {needed}, or pin less")
