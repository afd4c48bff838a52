"""What a framework's step costs on a cluster: the facts of the framework at the rates of the devices."""

from msgspec.structs import replace

from pipebench.documents.units import readable_bytes
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Framework, StepCosts
from pipebench.domain.profile import ELEMENT_BYTES, Precision
from pipebench.domain.tuning import USUAL_REACH, Reach


def stream_bytes_s(cluster: Cluster, reach: Reach) -> float:
    """Bytes/s that a stream through the memory of the slowest device reaches. Raises PipebenchError for none."""
    rates = {cluster.type_by_name[name].memory_bandwidth_bytes_s for name in cluster.devices}
    if min(rates) <= 0:
        raise PipebenchError(
            f"cluster {cluster.name!r}: the memory bandwidth of its devices is not known",
            "a framework's step needs it; name a device of the table, or leave out --framework",
        )
    return reach.stream_share * min(rates)


def with_tensor_memory(cluster: Cluster, framework: Framework) -> Cluster:
    """The cluster whose devices have the memory that is left to tensors.

    Context, libraries and communicators take theirs first; of what remains the allocator keeps a share besides.
    Planners, check and bounds see no other limit. Raises PipebenchError where nothing is left.
    """
    types = []
    for each in cluster.types:
        left_bytes = int((each.memory_bytes - framework.context_bytes) / (1 + framework.slack))
        if left_bytes <= 0:
            whole = readable_bytes(each.memory_bytes)
            raise PipebenchError(
                f"device type {each.name!r}: {framework.name} leaves none of its {whole} to tensors",
                "use a device with more memory, or leave out --framework",
            )
        types.append(replace(each, memory_bytes=left_bytes))
    return replace(cluster, types=tuple(types))


def step_costs(
    framework: Framework,
    cluster: Cluster,
    gradient_precision: Precision,
    optimizer: str,
    reach: Reach = USUAL_REACH,
) -> StepCosts:
    """The step of a problem: without an optimizer only gradients are gone over."""
    rate = stream_bytes_s(cluster, reach)
    each = framework.optimizer_bytes if optimizer != "none" else 0.0
    return StepCosts(
        framework=framework.name,
        optimizer_s_per_element=each / rate,
        gradient_s_per_element=framework.gradient_passes * ELEMENT_BYTES[gradient_precision] / rate,
        reduce_overlap=framework.reduce_overlap,
        splits_messages=framework.splits_messages,
    )
