"""Which micro-batch sizes and replica counts a planner may choose from, and which sizes cannot win.

Two pins fix them: `micro_batch` the samples of all replicas, `micro_batch_size` those of one replica.
"""

from collections.abc import Sequence
from math import isqrt

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem

MOST_STEPS = 2**19
"""sync: stages times micro-batches of a mini-batch for which schedules are made and simulated in memory."""
ONE_SIZE = (
    "micro-batch: the only one that was profiled; others would take times in proportion and were not tried "
    "(pin one to do so)"
)
"""What a planner says of its choice in async; of a plan that is adapted to sync it is not true."""


def micro_batch_candidates(problem: Problem, replicas: Sequence[int] = (1,)) -> tuple[int, ...]:
    """Ascending sizes that divide the mini-batch; just those that honour the pins where one is pinned.

    replicas: the numbers of replicas that may share a micro-batch; 1 alone where replicas take turns. A size is
    offered when one of them leaves each replica a size whose times are known: a profiled one; in sync, where one
    size was profiled, any power of two (times are proportional), but in async that size alone, because a smaller
    one would cost nothing and prove nothing. The mini-batch itself where nothing else divides it.
    Raises UnsupportedProblem when even the largest size makes too many micro-batches for a schedule (sync), or
    when micro_batch_size is pinned so that a micro-batch needs replicas and there can be none. Raises
    InfeasibleProblem when no number of replicas gives a micro-batch of that size.
    """
    sizes = _sizes(problem, replicas)
    if not sizes:
        raise _no_size(problem, replicas)
    most = _most_micro_batches(problem)
    few = tuple(size for size in sizes if problem.mini_batch // size <= most)
    if not few:
        raise UnsupportedProblem(
            f"a mini-batch of {problem.mini_batch} samples is {problem.mini_batch // sizes[-1]} micro-batches of "
            f"{sizes[-1]}, the largest to choose from; a schedule on {problem.cluster.size} devices holds at most "
            f"{most}",
            "use a smaller mini-batch or a larger micro-batch",
        )
    return few


def micro_batch_notices(problem: Problem, replicas: Sequence[int] = (1,)) -> tuple[str, ...]:
    """What limits the candidates besides the profile: nothing divides, one size only, too many micro-batches."""
    if problem.pins.micro_batch is not None or problem.pins.micro_batch_size is not None:
        return ()
    sizes, few = _sizes(problem, replicas), micro_batch_candidates(problem, replicas)
    profiled = _profiled_sizes(problem)
    notices = []
    if not any(_has_known_times(problem, size, replicas) for size in sizes):
        notices.append("the micro-batch is the mini-batch: no profiled size divides it")
    elif len(profiled) == 1 and problem.regime.mode == "async":
        notices.append(ONE_SIZE)
    if len(few) < len(sizes):
        notices.append("the smallest micro-batches were left out: a mini-batch would have too many of them")
    return tuple(notices)


def proportional_notices(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """Where one size was profiled, the samples of one replica in the plan that are others."""
    others: dict[int, set[int]] = {}
    for stage in plan.stages:
        size = -(-stage.micro_batch // stage.sharers)
        for name in {problem.cluster.devices[device] for device in stage.devices}:
            known = problem.profile.on(name).micro_batches
            if known != (size,) and len(known) == 1:
                others.setdefault(known[0], set()).add(size)
    return tuple(
        f"micro-batch size {', '.join(map(str, sorted(sizes)))} was not profiled (only {known}): "
        "times are taken in proportion"
        for known, sizes in sorted(others.items())
    )


def divisors(number: int, most: int) -> list[int]:
    """Divisors of `number` up to `most`, ascending."""
    low = [divisor for divisor in range(1, min(isqrt(number), most) + 1) if number % divisor == 0]
    return sorted({*low, *(number // divisor for divisor in low if number // divisor <= most)})


def _sizes(problem: Problem, replicas: Sequence[int]) -> tuple[int, ...]:
    pinned, mini_batch = pinned_sizes(problem, replicas), problem.mini_batch
    if pinned is not None:
        return pinned
    largest = mini_batch if _doubling(problem) else _profiled_sizes(problem)[-1] * max(replicas)
    offered = (size for size in divisors(mini_batch, largest) if _has_known_times(problem, size, replicas))
    return tuple(offered) or (mini_batch,)


def pinned_sizes(problem: Problem, replicas: Sequence[int] = (1,)) -> tuple[int, ...] | None:
    """The micro-batches that honour the pins, ascending; None where neither is pinned.

    replicas: as above. Empty where none of these numbers gives a replica the samples that are pinned.
    """
    total, each = problem.pins.micro_batch, problem.pins.micro_batch_size
    if each is None:
        return None if total is None else (total,)
    sizes = sorted({each * count for count in replicas})
    return tuple(size for size in sizes if problem.mini_batch % size == 0 and total in (None, size))


def honours_size(problem: Problem, micro_batch: int, sharers: int) -> bool:
    """Whether so many replicas have the pinned samples of a micro-batch each; true where none are pinned."""
    each = problem.pins.micro_batch_size
    return each is None or micro_batch == each * sharers


def refuse_micro_batch_size(planner: str, problem: Problem) -> None:
    """Raise UnsupportedProblem for planners that do not honour pinned samples of one replica."""
    each = problem.pins.micro_batch_size
    if each is not None:
        raise UnsupportedProblem(
            f"{planner} does not plan for a micro-batch size of one replica, {each} is pinned",
            "pin --micro-batch, the samples of all replicas",
        )


def _no_size(problem: Problem, replicas: Sequence[int]) -> InfeasibleProblem | UnsupportedProblem:
    """Why no number of replicas goes with the pinned samples of one."""
    total, each = problem.pins.micro_batch, problem.pins.micro_batch_size
    if max(replicas, default=1) == 1:
        return UnsupportedProblem(
            f"a micro-batch of {total} samples, {each} of each replica, needs replicas that share it, and none do",
            "pin --micro-batch-size alone",
        )
    counts = f"{replicas[0]}" if len(replicas) == 1 else f"at most {max(replicas)}"
    whole = (
        f"the micro-batch {total}" if total else f"a micro-batch that divides the mini-batch {problem.mini_batch}"
    )
    return InfeasibleProblem(
        f"{counts} replicas with {each} samples each do not make {whole}",
        "pin another --micro-batch-size, --dp or --mini-batch",
    )


def _has_known_times(problem: Problem, size: int, replicas: Sequence[int]) -> bool:
    """Whether some number of replicas gives each of them a size whose times are known."""
    each = {-(-size // count) for count in replicas if count <= size}
    if _doubling(problem):
        return any(samples & (samples - 1) == 0 for samples in each)
    return not each.isdisjoint(_profiled_sizes(problem))


def _profiled_sizes(problem: Problem) -> tuple[int, ...]:
    return problem.profile.on(problem.cluster.devices[0]).micro_batches


def _doubling(problem: Problem) -> bool:
    return len(_profiled_sizes(problem)) == 1 and problem.regime.mode == "sync"


def _most_micro_batches(problem: Problem) -> int:
    """Of a mini-batch, so that a schedule of as many stages as there can be is of bearable size."""
    if problem.regime.mode == "async":
        return problem.mini_batch
    return max(1, MOST_STEPS // min(problem.cluster.size, len(problem.profile.graph.operators)))


def least_period_ns(model: CostModel, micro_batch: int, replicas: Sequence[int], devices: int) -> int:
    """No plan of replicated stages has a smaller bottleneck, in ns.

    A stage on d devices has a period of at least its operators' time at ceil(b / d) samples. So the sum of d
    times the period over all stages, at most `devices` times the bottleneck, is at least the sum over all
    operators of the smallest d times their time at ceil(b / d). mini_batch / micro_batch such periods are a
    lower bound on the mini-batch: the device of the busiest stage runs nothing else meanwhile.
    """
    device_ns = []
    for used in replicas:
        forward, backward = model.times.at(-(-micro_batch // used))
        device_ns.append(used * (forward + backward))
    return -(-int(np.min(device_ns, axis=0).sum()) // devices)


def replica_counts(devices: int) -> tuple[int, ...]:
    """Powers of two up to the number of devices, and its divisors; ascending.

    Powers of two divide micro-batches and nodes, divisors share out all devices.
    """
    powers = (2**power for power in range(devices.bit_length()))
    return tuple(sorted({*powers, *divisors(devices, devices)}))


def near_profiled(problem: Problem, micro_batch: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Those of `counts` that leave each replica no more samples than the largest profiled micro-batch.

    All of them where none does, and where one size was profiled (times are proportional) or the micro-batch
    is pinned. Where the samples of one replica are pinned, the counts that give it them; there may be none.
    """
    if problem.pins.micro_batch_size is not None:
        return tuple(count for count in counts if honours_size(problem, micro_batch, count))
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    if len(profiled) == 1 or problem.pins.micro_batch is not None:
        return tuple(counts)
    near = tuple(count for count in counts if -(-micro_batch // count) <= profiled[-1])
    return near or tuple(counts)
