"""Plans that schedulers and executors meet, each on its problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.testing import problems
from pipebench.testing.building import chain_edges, problem

CASES = ("one-stage", "chain", "branches", "replicas", "shared", "mixed-sizes")
PARTS = ((0, 1), (2, 3), (4,), (5,))


@dataclass(frozen=True, slots=True)
class Planned:
    """A problem and a valid plan of it. needs: the capability that it takes, None for what everyone can."""

    problem: Problem
    plan: Plan
    needs: str | None = None


def case(name: str, mode: RegimeMode) -> Planned:
    """One of CASES."""
    chain = problems.chain(mode)
    match name:
        case "one-stage":
            return Planned(chain, stages([range(6)]))
        case "branches":
            return Planned(problems.dag(mode), stages([(0,), (1, 2), (3, 4), (5,)]), "stage_graphs")
        case "replicas":
            return Planned(chain, stages([(0, 1, 2), (3, 4, 5)], sizes=(2, 2), replicas=2), "replicas")
        case "shared":
            return Planned(chain, stages([(0, 1), (2, 3), (4, 5)], devices=(0, 1, 0)), "shared_devices")
        case "mixed-sizes":
            return Planned(chain, stages([(0, 1, 2), (3, 4, 5)], sizes=(1, 2)), "per_stage_micro_batch")
    return Planned(chain, stages(PARTS))


def slow(mode: RegimeMode) -> Planned:
    """The chain with operators of a second: eight micro-batches take longer than anyone waits."""
    long = problem("slow", mode, 4, [10**6] * 6, chain_edges(6))
    return Planned(long, stages(PARTS))


def stages(
    groups: Sequence[Sequence[int]],
    *,
    sizes: Sequence[int] = (),
    devices: Sequence[int] = (),
    replicas: int = 1,
) -> Plan:
    """One stage for each group of operator numbers, on devices in turn unless they are given."""
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(f"op{operator}" for operator in group),
                devices=tuple(range(device * replicas, device * replicas + replicas)),
                data_parallel=replicas,
                micro_batch=sizes[position] if sizes else 1,
            )
            for position, group in enumerate(groups)
            for device in [devices[position] if devices else position]
        ),
        placement=placement_kind_of([(device,) for device in devices or range(len(groups))]),
    )
