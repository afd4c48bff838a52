"""The planner `madpipe`: its variants."""

from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_madpipe.plugin import MadPipeOptions


def plan(problem: Problem, context: Context) -> PlanResult:
    """The plan of the variant that the options name (see exact and paper)."""
    options = context.options
    assert isinstance(options, MadPipeOptions)
    if options.variant == "paper":
        from pipebench_madpipe.paper import plan_paper

        return plan_paper(problem, context)
    from pipebench_madpipe.exact import plan_exact

    return plan_exact(problem, context)
