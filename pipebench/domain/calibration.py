"""Rates fitted to a measured profile, and how far they are from it: part of a profile's provenance."""

from typing import Literal

from pipebench.domain.value import Value

Direction = Literal["forward", "backward"]


class Errors(Value, frozen=True, kw_only=True):
    """Relative errors, |predicted - measured| / measured.

    median: the median.
    p90: the 90th percentile.
    """

    median: float
    p90: float


class FittedRates(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What kernels of one operator kind reach in one direction.

    kind: empty for the rates of all contractions, or of all other kinds, together.
    direction: of the pass that was timed.
    contraction: whether the kind multiplies matrices.
    flops_per_s: with endless rows (None: not a contraction).
    r_half: rows at which half of it is reached.
    bytes_per_s: memory traffic that is reached.
    launch_s: seconds for each kernel, whatever its size.
    points: measured times that were fitted.
    errors: over these points.
    held_out: over the same points, each predicted by rates fitted without the micro-batch size (or the model) it
    belongs to.
    """

    kind: str
    direction: Direction
    contraction: bool
    flops_per_s: float | None = None
    r_half: float = 0.0
    bytes_per_s: float
    launch_s: float
    points: int
    errors: Errors
    held_out: Errors | None = None


class Calibration(Value, frozen=True, kw_only=True, omit_defaults=True):
    """A fit: measured profiles by name and content, and the errors of sums over all operators of a model.

    profiles: name of a measured profile to the hash of its content.
    device_type: that was measured.
    fits: the rates, by kind and direction.
    sums: signed relative errors of predicted forward plus backward, by model and micro-batch size.
    left_out: what held_out_sums were predicted without; None where there was one size of one model only.
    held_out_sums: as sums, predicted without what `left_out` says.
    """

    profiles: dict[str, str]
    device_type: str
    fits: tuple[FittedRates, ...]
    sums: dict[str, float]
    left_out: Literal["micro-batch", "model"] | None = None
    held_out_sums: dict[str, float] = {}
