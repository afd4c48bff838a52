"""The iteration lines of Megatron-LM's log, and which of them count.

They read `iteration  10/ 100 | … | elapsed time per iteration (ms): 5243.1 | … | global batch size:  16 | …`, as
`training_log` of Megatron-LM prints them. BigScience's Megatron-DeepSpeed writes seconds (`(s): 105.22`), AMD's
Primus the mean of the last ones behind the time (`5243.1/5250.0`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_SECONDS

ELAPSED = "elapsed time per iteration ("
WARM_UP = 2
"""Iteration lines that are dropped at the start, where at least as many are left."""
_ITERATION = re.compile(
    r"\biteration +(\d{1,12})/ *\d{1,12} *\|.{0,400}?"
    r"elapsed time per iteration \((ms|s)\): *([0-9.]{1,20})(?:/[0-9.]{1,20})? *\|"
)
"""Up to the bar behind the time: a line that was cut inside its digits is none."""
_BATCH = re.compile(r"global batch size: *(\d{1,12}) *\|")
_TOKENS = re.compile(r"(?:actual|curriculum) seqlen: *(\d{1,12}) *\|")
"""Of Megatron-DeepSpeed, where a curriculum starts with short samples."""
_SKIPPED = re.compile(r"number of skipped iterations: *0*[1-9]")
_UNITS = {"ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class _Iteration:
    """seconds: that it took. whole: whether it had all samples and tokens. skipped: whether its update was left
    out, as gradients had overflowed.
    """

    seconds: float
    whole: bool
    skipped: bool


def has_iteration(line: str) -> bool:
    """Whether it is an iteration line."""
    return _match(line) is not None


def iteration_times(
    lines: Sequence[str], first: int, source: str, batch: int, sequence: int
) -> tuple[list[float], list[str]]:
    """Seconds of the iterations that count, and of each other why it does not.

    first: the number of the first line. batch: samples of the mini-batch; an iteration of fewer
    (`rampup_batch_size`) does not count. sequence: tokens of a sample; nor does one of fewer. One without its
    update counts where there is no other. Several lines of one iteration are several ranks': the last counts.
    Raises PipebenchError for a log without an iteration that could count, and, with the line, for a time that is
    none.
    """
    found: dict[int, _Iteration] = {}
    for number, line in enumerate(lines, first):
        match = _match(line)
        if match is None:
            continue
        whole = all(
            (said := pattern.search(line)) is None or int(said[1]) == size
            for pattern, size in ((_BATCH, batch), (_TOKENS, sequence))
        )
        seconds = _seconds(match[3], match[2], f"{source}: line {number}")
        found[int(match[1])] = _Iteration(seconds, whole, _SKIPPED.search(line) is not None)
    if not found:
        raise PipebenchError(
            f"{source}: there is no iteration line", "it says `elapsed time per iteration (ms): … |`"
        )
    iterations = [found[number] for number in sorted(found)]
    if not any(iteration.whole for iteration in iterations):
        raise PipebenchError(
            f"{source}: no iteration line has the whole mini-batch of {batch} samples of {sequence} tokens",
            "the batch or the samples were still growing: give the log of a later part of the training",
        )
    late = iterations[WARM_UP:] if len(iterations) >= 2 * WARM_UP else iterations[-1:]
    whole_ones = [iteration for iteration in late if iteration.whole] or [
        iteration for iteration in iterations if iteration.whole
    ]
    kept = [iteration for iteration in whole_ones if not iteration.skipped] or whole_ones
    dropped = ["dropped"] * (len(iterations) - len(late))
    dropped += ["of a smaller batch"] * sum(not iteration.whole for iteration in late)
    dropped += ["without an update"] * (len(whole_ones) - len(kept))
    return [iteration.seconds for iteration in kept], dropped


def _match(line: str) -> re.Match[str] | None:
    return _ITERATION.search(line) if ELAPSED in line else None


def _seconds(digits: str, unit: str, where: str) -> float:
    try:
        seconds = float(digits) * _UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_SECONDS:
        name = "milliseconds" if unit == "ms" else "seconds"
        raise PipebenchError(f"{where}: {digits!r} is not a time in {name}")
    return seconds
