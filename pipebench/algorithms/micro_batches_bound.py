"""A proven least pipeline period at a micro-batch size: sizes that cannot win need no search."""

from collections.abc import Sequence

import numpy as np

from pipebench.costs.model import CostModel


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
