"""Parts of a profile: one device type, one micro-batch size, another setting."""

from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile, Setting


def only(profile: Profile, device: str | None, micro_batch: int | None) -> Profile:
    """The profile on one device type, at one profiled size; None keeps all.

    Raises InvalidValue for a device type, PipebenchError for a size that the profile does not have.
    """
    costs = profile.costs if device is None else (profile.on(device),)
    if micro_batch is not None:
        costs = tuple(_at_size(each, micro_batch) for each in costs)
    return replace(profile, costs=costs)


def with_setting(
    profile: Profile,
    *,
    devices: int | None = None,
    memory_bytes: int | None = None,
    bandwidth_bytes_s: float | None = None,
    mini_batch: int | None = None,
) -> Profile:
    """The profile with what is said here in place of what its file says."""
    said = {
        name: value
        for name, value in (
            ("devices", devices),
            ("memory_bytes", memory_bytes),
            ("bandwidth_bytes_s", bandwidth_bytes_s),
            ("mini_batch", mini_batch),
        )
        if value is not None
    }
    if not said:
        return profile
    made = replace(profile.provenance.setting or Setting(), **said)
    return replace(profile, provenance=replace(profile.provenance, setting=made))


def _at_size(costs: DeviceCosts, micro_batch: int) -> DeviceCosts:
    if micro_batch not in costs.micro_batches:
        sizes = ", ".join(map(str, costs.micro_batches))
        raise PipebenchError(
            f"no micro-batch of {micro_batch} was profiled on {costs.device_type}", f"there are {sizes}"
        )
    at = costs.micro_batches.index(micro_batch)
    return replace(
        costs, micro_batches=(micro_batch,), operators=tuple(_one(each, at) for each in costs.operators)
    )


def _one(costs: OperatorCosts, at: int) -> OperatorCosts:
    return replace(
        costs,
        forward_s=(costs.forward_s[at],),
        backward_s=(costs.backward_s[at],),
        weight_gradient_s=costs.weight_gradient_s[at : at + 1],
        alternatives=tuple(_one_way(way, at) for way in costs.alternatives),
    )


def _one_way(way: Alternative, at: int) -> Alternative:
    return replace(
        way,
        forward_s=(way.forward_s[at],),
        backward_s=(way.backward_s[at],),
        forward_collective_s=way.forward_collective_s[at : at + 1],
        backward_collective_s=way.backward_collective_s[at : at + 1],
    )
