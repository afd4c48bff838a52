"""What this plugin offers."""

from collections.abc import Iterable

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1

QUICK = ("1f1b", "1f1b*", "modulo", "gpipe", "interleaved-1f1b", "zb-h1", "zb-v", "chimera")
"""Schedulers that follow a rule."""
THOROUGH = ("kfkb", "1f1b-rr", "greedy", "periodic-bnb", "finite-bnb")
"""Schedulers that look at several orders."""


class SearchOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `local-search`.

    - gap: end when the time of the best plan is within this share of the proven bound.
    - steps: end after so many plans were scored for each operator of the problem; 0: any number. 512 looks of
      annealing count as one, and 32 of the clock.
    - stall: give up after so many plans without a better one; 0: never.
    - starts: a search that is given up begins again, until so many starts in a row brought no better plan.
    """

    gap: float = 0.0
    steps: int = 10
    stall: int = 0
    starts: int = 1

    def __post_init__(self) -> None:
        require(0 <= self.gap <= 1000, f"gap is {self.gap:g}, it must be from 0 to 1000")
        for name in ("steps", "stall"):
            number = getattr(self, name)
            require(0 <= number <= 10**9, f"{name} is {number}, it must be from 0 to 1000000000")
        require(1 <= self.starts <= 10**9, f"starts is {self.starts}, it must be from 1 to 1000000000")


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `local-search`."""
    return (
        Planner(
            name="local-search",
            summary="local search over all that a plan can say, scored by the suite's schedulers and simulator",
            load="pipebench_search.planner:plan",
            options=SearchOptions,
            kernels="pipebench_search.line.cycles:compile_kernels",
            calls=(*QUICK, *THOROUGH),
            fidelity="",
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync", "async"),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                non_contiguous=True,
                per_stage_micro_batch=True,
                round_robin=True,
                expert_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
        ),
    )
