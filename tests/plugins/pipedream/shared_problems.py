"""Problems from PipeDream's published profiles: one micro-batch of the profiled mini-batch, on 1 GB/s."""

from msgspec.structs import replace

from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.formats.profiles.files import read_profile
from tests.builders import cluster
from tests.shared_data import shared_data

NO_LIMIT = 2**61


def shared_problem(
    model: str,
    devices: int,
    memory: int = NO_LIMIT,
    mode: RegimeMode = "async",
    levels: tuple[tuple[int, float], ...] = (),
) -> Problem:
    """levels: group size and bandwidth of each link level, the innermost first; none: flat."""
    profile = read_profile(str(shared_data(f"pipedream/{model}.txt")))
    name = profile.device_types[0]
    flat = cluster(devices, memory)
    made = replace(flat, types=(replace(flat.types[0], name=name),), devices=(name,) * devices)
    if levels:
        made = replace(
            made,
            levels=tuple(
                LinkLevel(name=f"level{position}", group=group, bandwidth_bytes_s=rate)
                for position, (group, rate) in enumerate(levels)
            ),
        )
    return Problem(
        profile=profile, cluster=made, mini_batch=profile.costs[0].micro_batches[0], regime=Regime(mode=mode)
    )
