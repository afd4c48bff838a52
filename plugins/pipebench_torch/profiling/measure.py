"""Times of operators inside whole passes of a model, and of the model in one piece, at one micro-batch size."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import torch

from pipebench_torch.modules.models import Model
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.profiling.passes import passes_of
from pipebench_torch.profiling.saved_storages import SavedStorages
from pipebench_torch.profiling.timed_pass import TimedPass

MOST_PASSES = 200


@dataclass(slots=True)
class Measured:
    """Seconds by operator, means over the middle half of the passes, and their relative spread.

    saved, workspace: bytes by operator. whole: seconds of the whole model's forward and backward, measured apart.
    """

    forward: list[float]
    backward: list[float]
    spread: float
    saved: list[int]
    workspace: list[int]
    whole: tuple[float, float]


def measure(model: Model, samples: int, options: ProfilerOptions, device: torch.device) -> Measured:
    """Means over the middle half of the passes after `warmup`, in turn with passes of the model in one piece.

    Passes are ordered by their sum, forward and backward apart. A median of each operator would leave out
    disturbances that hit now one operator and now another, and the sum would be less than any pass took. There are
    `repeats` passes, and more until they have taken `least_s` (at most MOST_PASSES).
    Gradients of weights are added to those that are there, as those of all micro-batches but the first are.
    """
    ready = passes_of(model, samples, device)
    storages = SavedStorages(len(model.graph.operators), ready.weights.values(), device)
    ready.timed().run(storages)
    passes: list[TimedPass] = []
    wholes: list[tuple[float, float]] = []
    number, until_s = 0, 0.0
    warmup, least = options.warmup, options.warmup + options.repeats
    while number < least or (time.monotonic() < until_s and number < warmup + MOST_PASSES):
        if number == warmup:
            until_s = time.monotonic() + options.least_s
        one = ready.timed()
        one.run()
        spent = ready.whole()
        if number >= warmup:
            passes.append(one)
            wholes.append(spent)
        number += 1
    forward, backward = [one.forward for one in passes], [one.backward for one in passes]
    return Measured(
        forward=middle_mean(forward),
        backward=middle_mean(backward),
        spread=_spread([*zip(*forward, strict=True), *zip(*backward, strict=True)]),
        saved=storages.saved,
        workspace=storages.workspace,
        whole=(middle_mean([[spent[0]] for spent in wholes])[0], middle_mean([[spent[1]] for spent in wholes])[0]),
    )


def middle_mean(passes: Sequence[Sequence[float]]) -> list[float]:
    """By position: the mean over the half of the passes whose sums are in the middle."""
    cut = len(passes) // 4
    kept = sorted(passes, key=sum)[cut : len(passes) - cut]
    return [fmean(times) for times in zip(*kept, strict=True)]


def _spread(every: Sequence[Sequence[float]]) -> float:
    """Half the range of the middle half of the repeats over the median, weighted by the median."""
    total = sum(median(times) for times in every)
    width = 0.0
    for times in every:
        ordered, cut = sorted(times), len(times) // 4
        width += (ordered[-1 - cut] - ordered[cut]) / 2
    return width / total if total else 0.0
