"""What this plugin offers."""

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Executor, ExecutorCapabilities

PIPEBENCH_API = 1


@hookimpl
def pipebench_executors() -> tuple[Executor, ...]:
    """simulate."""
    return (
        Executor(
            name="simulate",
            summary="discrete events on devices and links, with the suite's costs",
            load="pipebench_simulate.executor:execute",
            capabilities=ExecutorCapabilities(placements=("listed", "mirrored"), pairs=True, round_robin=True),
        ),
    )
