"""How a plan may cut the mini-batch for one stage: micro-batches, replicas, samples on each device."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage runs `runs` micro-batches for one mini-batch on `replicas` replicas, those of all pipelines and
    copies counted, each computing `samples` samples of a micro-batch.
    """

    runs: int
    samples: int
    replicas: int


def cuts(problem: Problem) -> tuple[Cut, ...]:
    """Every cut that may be best for some operator.

    A stage with micro-batch b and d replicas in each of c pipelines, those of all copies counted, runs B / (c b)
    micro-batches with ceil(b / d) samples on each of c d replicas; c b divides B, d <= b, c d <= devices: stages
    that hold the same operators stand on different device sets in all pipelines and copies. The stage with
    micro-batch c b and c d replicas in one pipeline has the same three figures, so c = 1 stands for all unless
    the micro-batch is pinned. All that the bounds use grows with the replicas when runs and samples are
    fixed, so only the fewest replicas with given samples matter. The pin data_parallel fixes the replicas.

    Raises InfeasibleProblem when no cut honours the pins.
    """
    found = tuple(dict.fromkeys(_all(problem)))
    if not found:
        raise InfeasibleProblem(_no_cut(problem))
    return found


def _no_cut(problem: Problem) -> str:
    """Why nothing honours data_parallel, the one pin that can rule out every cut."""
    pinned, size = problem.pins.data_parallel, problem.cluster.size
    if pinned is not None and pinned > size:
        return f"data_parallel is pinned to {pinned}, there are {size} devices"
    micro_batch = problem.pins.micro_batch
    samples = str(problem.mini_batch) if micro_batch is None else f"{problem.mini_batch} by {micro_batch}"
    return f"data_parallel is pinned to {pinned}, a mini-batch of {samples} has no share for so many replicas"


def _all(problem: Problem) -> Iterator[Cut]:
    devices, samples, pins = problem.cluster.size, problem.mini_batch, problem.pins
    if pins.micro_batch is None:
        for micro_batch in divisors(samples):
            for replicas in _replicas(micro_batch, devices, pins.data_parallel):
                yield Cut(samples // micro_batch, -(-micro_batch // replicas), replicas)
        return
    size = pins.micro_batch
    for copies in divisors(samples // size):
        if pins.data_parallel is not None and pins.data_parallel % copies:
            continue
        pinned = None if pins.data_parallel is None else pins.data_parallel // copies
        for replicas in _replicas(size, devices // copies, pinned):
            yield Cut(samples // size // copies, -(-size // replicas), copies * replicas)


def _replicas(micro_batch: int, most: int, pinned: int | None) -> Iterator[int]:
    """The pinned number, or for each value of ceil(micro_batch / d) the smallest d <= most that gives it."""
    if pinned is not None:
        if pinned <= min(micro_batch, most):
            yield pinned
        return
    replicas = 1
    while replicas <= min(micro_batch, most):
        yield replicas
        samples = -(-micro_batch // replicas)
        if samples == 1:
            return
        replicas = -(-micro_batch // (samples - 1))


def most_replicas(problem: Problem) -> int:
    """The most replicas of any stage, all pipelines and copies counted: bounded by devices, samples
    (c d <= c b <= B), the pin.
    """
    most = min(problem.cluster.size, problem.mini_batch)
    return min(most, problem.pins.data_parallel or most)


def divisors(number: int) -> list[int]:
    """Divisors, ascending."""
    low = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})


def devices_of_a_plan(problem: Problem) -> int:
    """The most devices that a plan uses: all, or those that the pins say when they fix all three degrees.

    With pipeline, data_parallel and tensor_parallel pinned, each of the pipeline's device sets holds
    data_parallel x tensor_parallel devices, copies counted. Several pipelines share the device sets: replicas of a
    stage are on several of them, and the plan uses fewer devices.
    """
    return min(problem.cluster.size, pinned_devices(problem) or problem.cluster.size)


def pinned_devices(problem: Problem) -> int | None:
    """The devices of a plan of one pipeline with the pinned degrees, None where one of the three is left open."""
    pins = problem.pins
    if pins.pipeline is None or pins.data_parallel is None or pins.tensor_parallel is None:
        return None
    return pins.pipeline * pins.data_parallel * pins.tensor_parallel
