"""Why no shape of `layout` goes with the pins, and the nearest numbers that do."""

from math import prod

from pipebench.algorithms.micro_batches import divisors
from pipebench.domain.errors import InfeasibleProblem, nearest_numbers
from pipebench.domain.problem import Problem
from pipebench.domain.workload import typed_pins

DEGREES = "tensor_parallel", "data_parallel", "pipeline"


def no_degrees(problem: Problem, items: int) -> InfeasibleProblem:
    """Where degrees do not go with the devices or the layers. items: the most stages of the model."""
    pins, size = problem.pins, problem.cluster.size
    pinned = [degree for name in DEGREES if (degree := getattr(pins, name))]
    product, stages = prod(pinned), (pins.pipeline or 1) * (pins.virtual_stages or 1)
    said = typed_pins(pins, *DEGREES)
    if stages > items:
        return InfeasibleProblem(
            f"{typed_pins(pins, 'pipeline', 'virtual_stages')} ask for {stages} stages, the model has layers for "
            f"at most {items}",
            f"pin at most {items} stages",
        )
    if product > size or (size % product and len(pinned) < len(DEGREES)):
        ranks = problem.cluster.rank_count
        near = nearest_numbers(size * ranks, (ranks * number for number in _multiples(product, size)))
        made = "" if len(pinned) == 1 else f" make {product}, which"
        wrong = "is more than" if product > size else "does not divide"
        return InfeasibleProblem(
            f"{said}{made} {wrong} the {size} devices",
            f"the nearest numbers of devices: -n {near}; or pin other degrees",
        )
    return InfeasibleProblem(
        f"{all_pins(problem)} do not go with {size} devices and a model of at most {items} stages: "
        "degrees must divide the number of devices, stages be at most as many as layers, "
        "and several stages a device need several devices in a row"
    )


def no_micro_batch(problem: Problem) -> InfeasibleProblem:
    """Where no micro-batch goes with the replicas and the mini-batch."""
    pins, samples = problem.pins, problem.mini_batch
    replicas, each = pins.data_parallel or 1, pins.micro_batch_size or 1
    said = typed_pins(pins, "data_parallel", "micro_batch_size")
    if samples % replicas:
        return InfeasibleProblem(
            f"{typed_pins(pins, 'data_parallel')} does not divide the mini-batch of {samples} samples",
            f"the nearest mini-batches: {nearest_numbers(samples, _multiples(replicas, samples))}; "
            f"the nearest --dp: {nearest_numbers(replicas, divisors(samples, samples))}",
        )
    share = samples // replicas
    if share % each:
        return InfeasibleProblem(
            f"{said}: a replica has {share} of {samples} samples, which micro-batches of {each} do not divide",
            f"the nearest --micro-batch-size: {nearest_numbers(each, divisors(share, share))}",
        )
    return InfeasibleProblem(
        f"no micro-batch goes with {all_pins(problem)} on {problem.cluster.size} devices and mini-batch "
        f"{samples}: it holds the samples of all replicas, which must divide it, and it must "
        "divide the mini-batch; with several stages a device, into a multiple of pp micro-batches",
        "pin another --micro-batch or --micro-batch-size, --dp, --vpp or --mini-batch, or fewer of them",
    )


def _multiples(of: int, near: int) -> list[int]:
    """The multiples next to a number that is none."""
    below = near // of * of
    return [number for number in (below, below + of) if number]


def all_pins(problem: Problem) -> str:
    """The pins that bear on a shape, as options."""
    names = *DEGREES, "virtual_stages", "micro_batch", "micro_batch_size"
    return typed_pins(problem.pins, *names) or "no pins"
