"""The head of the page of hooks: a whole plugin, and where what a plugin needs is imported from."""

from collections.abc import Iterator

from pipebench.domain import errors, graph, plan, profile, result, schedule, trace, value
from pipebench.hooks import API_VERSION, context, descriptors

EXAMPLE = f"""
# one_device.py
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.result import PlanResult
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = {API_VERSION}


@hookimpl
def pipebench_planners():
    return [Planner(name="one-device", summary="all operators on one device", load="one_device:plan")]


def plan(problem, context):
    graph = problem.profile.graph
    names = tuple(graph.operators[position].name for position in graph.topological)
    return PlanResult(plan=Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),)))
"""
ENTRY = """
[project.entry-points.pipebench]
one-device = "one_device"
"""
CONSTANTS = {
    "PIPEBENCH_API": f"the version of the hook API that it was written for: {API_VERSION}. Required.",
    "PIPEBENCH_SAMPLES": '`{"name of a format": "package:path"}`: a small file of each format, for the kit.',
    "PIPEBENCH_WAIVED": '`{"component:check": "reason"}`: checks of the kit that do not hold.',
}
"""What a plugin's module binds."""
DOCUMENTED = (
    result.PlanResult,
    plan.Plan,
    plan.Stage,
    schedule.FiniteSchedule,
    schedule.PeriodicSchedule,
    trace.Trace,
    profile.Profile,
    graph.OperatorGraph,
)
"""Of the values that plugins make, those whose fields the page of documents has."""
DESCRIPTORS = (*descriptors.SLOTS.values(), context.Context, context.ProfileRequest)
"""Those that stand on the page itself."""
ERRORS = (
    errors.InfeasibleProblem,
    errors.UnsupportedProblem,
    errors.PipebenchError,
    context.DeadlineReached,
)


def head() -> Iterator[str]:
    """A plugin that works, and a table of names with their modules."""
    yield "## A whole plugin\n\nA module, and an entry point of the group `pipebench` that names it:"
    yield f"```python\n{EXAMPLE.strip()}\n```"
    yield f"```toml\n# pyproject.toml\n{ENTRY.strip()}\n```"
    yield (
        "`pipebench plugin new NAME` writes such a package with tests; [how](../how-to/publish-a-plugin.md). "
        "Heavy imports belong into the module that `load` names: the plugin's own is imported by every command."
    )
    lines = ["## Where to import from", "", "| name | from | what it has |", "|---|---|---|"]
    lines.append("| `hookimpl` | `pipebench.hooks` | marks a hook |")
    for kind in DESCRIPTORS:
        lines.append(f"| `{kind.__name__}` | `{kind.__module__}` | [fields](#{kind.__name__.lower()}) |")
    for kind in DOCUMENTED:
        link = f"documents.md#{kind.__name__.lower()}"
        lines.append(f"| `{kind.__name__}` | `{kind.__module__}` | [fields]({link}) |")
    lines.append(f"| `Schedule` | `{schedule.__name__}` | a `FiniteSchedule` or a `PeriodicSchedule` |")
    lines.append(f"| `Value` | `{value.Value.__module__}` | the base of a class of options |")
    for kind in ERRORS:
        summary = (kind.__doc__ or "").strip().partition("\n")[0]
        lines.append(f"| `{kind.__name__}` | `{kind.__module__}` | to raise: {summary} |")
    yield "\n".join(lines)
    bound = [f"| `{name}` | {text} |" for name, text in CONSTANTS.items()]
    yield "\n".join(
        ["A plugin's module binds, and imports from nowhere:", "", "| name | what |", "|---|---|", *bound]
    )
