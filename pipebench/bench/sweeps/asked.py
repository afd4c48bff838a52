"""From what was asked for to a request: every name is looked up before anything runs."""

from collections.abc import Sequence

from pipebench.bench.components import ready_executor, ready_planner, ready_scheduler
from pipebench.bench.foreign import ready_layout
from pipebench.bench.planned import ready_plan
from pipebench.bench.problems.workload import Workload
from pipebench.bench.suites import Settings
from pipebench.bench.trials.comparison import Request
from pipebench.bench.trials.trial import SEARCH_MEMORY_BYTES
from pipebench.defaults import EXAMPLE_PLANNERS, SIMULATOR
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.formats.frameworks.imports import is_foreign, read_layout
from pipebench.formats.native import read_plan
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_references

TIMEOUT_S = 300.0


def requested(
    host: Host, workloads: Sequence[Workload], settings: Settings, plans: Sequence[str] = (), rounds: int = 1
) -> Request:
    """The request of a command line and its suites. plans: plan files and layouts of frameworks, scored beside the
    planners'.

    Raises PipebenchError for a name, an option or a file that is wrong, and where there is no planner at all.
    """
    planners = [ready_planner(host, reference) for reference in parse_references(settings.planners)]
    planners += [
        ready_layout(read_layout(path)) if is_foreign(path) else ready_plan(path, read_plan(path))
        for path in plans
    ]
    if not planners:
        hint = f"give --planners, such as --planners {','.join(EXAMPLE_PLANNERS)}"
        raise PipebenchError("no planner was named", hint, ExitCode.NOTHING_RAN)
    for name in settings.schedulers:
        ready_scheduler(host, name)
    executors = settings.executors or (SIMULATOR,)
    for name in executors:
        ready_executor(host, name)
    return Request(
        workloads=workloads,
        planners=planners,
        regimes=settings.regimes,
        schedulers=settings.schedulers,
        executors=executors,
        repeat=settings.repeat or 1,
        rounds=rounds,
        timeout_s=TIMEOUT_S if settings.timeout_s is None else settings.timeout_s,
        memory_bytes=SEARCH_MEMORY_BYTES if settings.memory_bytes is None else settings.memory_bytes,
        seed=settings.seed or 0,
    )
