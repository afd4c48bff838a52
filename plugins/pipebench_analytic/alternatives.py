"""Other ways to run an operator: on several devices, or with its forward run again before its backward."""

from collections.abc import Iterator, Sequence

from pipebench.domain.graph import Operator
from pipebench.domain.profile import Alternative
from pipebench_analytic.kinds import kind_of
from pipebench_analytic.roofline import Roofline
from pipebench_analytic.rounding import significant
from pipebench_analytic.saved import Saved
from pipebench_analytic.splits import Split
from pipebench_analytic.work import Kernels, Work

RECOMPUTE_PAYS = 1.0
"""Recomputing is offered where an operator keeps its inputs and at least this many times as much besides."""


def tensor_parallel(
    work: Work, split: Split, saved: Saved, roofline: Roofline, sizes: Sequence[int], ways: int
) -> Alternative:
    """The operator on `ways` devices; the time of its collectives is inside its times."""
    kernels = work.kernels(ways, split_inputs=split.split_inputs, split_outputs=split.split_outputs)
    forward = [
        roofline.seconds(kernels.forward, size)
        + roofline.all_gather_seconds(split.gathered_forward, size, ways)
        + roofline.all_reduce_seconds(split.reduced_forward, size, ways)
        for size in sizes
    ]
    backward = [
        _backward_seconds(roofline, kernels, size)
        + roofline.all_reduce_seconds(split.reduced_backward, size, ways)
        for size in sizes
    ]
    kept_inputs = saved.inputs / ways if split.split_inputs else saved.inputs
    # An all-gather moves half of what an all-reduce moves; the mean of both directions.
    collective = (split.gathered_forward / 2 + split.reduced_forward + split.reduced_backward) / 2
    return Alternative(
        id=f"tp{ways}",
        tensor_parallel=ways,
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(map(significant, backward)),
        parameter_bytes=-(-work.weight_bytes // ways),
        saved_bytes_per_sample=significant(kept_inputs + saved.own / ways),
        collective_bytes=significant(collective),
    )


def recomputed(work: Work, saved: Saved, roofline: Roofline, sizes: Sequence[int]) -> Alternative | None:
    """Only the inputs are kept and the forward runs again before the backward; None where little is won."""
    if not kind_of(work.operator).reads_inputs or saved.own < RECOMPUTE_PAYS * work.input_bytes:
        return None
    kernels = work.kernels()
    forward = [roofline.seconds(kernels.forward, size) for size in sizes]
    backward = [_backward_seconds(roofline, kernels, size) for size in sizes]
    return Alternative(
        id="recompute",
        recompute=True,
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(significant(b + f) for f, b in zip(forward, backward, strict=True)),
        parameter_bytes=work.weight_bytes,
        saved_bytes_per_sample=significant(saved.inputs),
    )


def degrees(operator: Operator, split: Split, largest: int) -> Iterator[int]:
    """Powers of two from 2 to `largest` that divide the dim that is cut, or all those of its region."""
    ways = 2
    while ways <= largest:
        if (split.parts or operator.dims[split.dim]) % ways == 0:
            yield ways
        ways *= 2


def _backward_seconds(roofline: Roofline, kernels: Kernels, samples: int) -> float:
    return roofline.seconds(kernels.input_gradient, samples) + roofline.seconds(kernels.weight_gradient, samples)
