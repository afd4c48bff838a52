"""The fit of a few constants to a few runs: which of them they can tell, and the values that explain them.

Errors are logarithms of simulated over measured time. Each constant has a coordinate: its logarithm, or the value
itself where 0 is among its values. A pull towards the default counts as an error of NEAR for each half of the
stated range, so that a constant moves only as far as the runs ask for.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pipebench.algorithms.descent import Box, Floats, fit_in_box
from pipebench.domain.tuning import CONSTANTS, Constant
from pipebench.domain.value import Value

Simulation = Callable[[int, Mapping[str, float]], float]
"""Seconds of a run by its number under constants."""
NEAR = 0.05
"""Errors below it count by their square, larger ones by their size."""
PULLS = 2
"""Pulls of NEAR over a whole range."""
LEAST_EFFECT = 0.01
"""A constant is fitted where moving it half-way to an end of its range changes the runs' times by at least so
much, in the root mean square, beyond what the constants before it can do."""
RUNS_PER_CONSTANT = 2
STEPS, FLAT = 6, 3e-3


class Fit(Value, frozen=True, kw_only=True):
    """constants: all of them, fitted or as they were. moved: names of those that the runs can tell."""

    constants: dict[str, float]
    moved: tuple[str, ...]


def fit_constants(
    runs: Sequence[int],
    measured_s: Mapping[int, float],
    usual: Mapping[str, float],
    simulate: Simulation,
    afresh: bool = False,
) -> Fit:
    """The constants that explain runs best. measured_s: by the number of a run; only those of `runs` are read.

    usual: where constants start, and what pulls them. afresh: they start in the middle of their ranges and nothing
    pulls them, as if nobody had fitted them before. Deterministic.
    """
    usual = {name: within(CONSTANTS[name], usual[name]) for name in CONSTANTS}
    start = {name: middle_value(each) for name, each in CONSTANTS.items()} if afresh else usual
    if not runs:
        return Fit(constants=dict(usual), moved=())

    def errors(constants: Mapping[str, float]) -> Floats:
        return np.array([math.log(simulate(run, constants) / measured_s[run]) for run in runs])

    names, halfway = _identifiable(errors, start, max(1, len(runs) // RUNS_PER_CONSTANT))
    if not names:
        return Fit(constants=dict(usual), moved=())
    listed = [CONSTANTS[name] for name in names]
    middle = np.array([coordinate(each, start[each.name]) for each in listed])
    low = np.array([coordinate(each, each.low) for each in listed])
    high = np.array([coordinate(each, each.high) for each in listed])

    def values(point: Floats) -> dict[str, float]:
        moved = {each.name: value_at(each, float(at)) for each, at in zip(listed, point, strict=True)}
        return {**usual, **moved}

    def residuals(point: Floats) -> Floats:
        point = np.clip(point, low, high)
        pull = NEAR * PULLS * (point - middle) / (high - low)
        return errors(values(point)) if afresh else np.concatenate([errors(values(point)), pull])

    starts = [middle]
    for number, each in enumerate(listed):
        for value in halfway[each.name]:
            beside = middle.copy()
            beside[number] = coordinate(each, value)
            starts.append(beside)
    best = min(starts, key=lambda point: _loss(residuals(point)))
    box = Box(start=best, low=low, high=high)
    found = fit_in_box(residuals, box, near=NEAR, steps=STEPS, flat=FLAT)
    fitted = values(np.clip(found, low, high))
    return Fit(constants={name: fitted[name] if name in names else usual[name] for name in CONSTANTS}, moved=names)


def within(constant: Constant, number: float) -> float:
    """The number, or the end of the stated range that is nearest to it."""
    return min(max(number, constant.low), constant.high)


def coordinate(constant: Constant, number: float) -> float:
    """Where a value lies in the fit."""
    return number if constant.linear else math.log(number)


def middle_value(constant: Constant) -> float:
    """The value in the middle of the stated range."""
    return value_at(constant, (coordinate(constant, constant.low) + coordinate(constant, constant.high)) / 2)


def value_at(constant: Constant, at: float) -> float:
    """The value at a coordinate, to six digits and inside the range."""
    number = at if constant.linear else math.exp(at)
    return within(constant, float(f"{number:.6g}"))


def _loss(errors: Floats) -> float:
    return float((np.sqrt(1 + (errors / NEAR) ** 2) - 1).sum())


def _identifiable(
    errors: Callable[[Mapping[str, float]], Floats], start: Mapping[str, float], most: int
) -> tuple[tuple[str, ...], dict[str, list[float]]]:
    """Names of the constants that runs can tell, at most `most`; and of each the values half-way to its ends.

    The one that changes times most comes first; of the others only the part counts that those before it cannot
    imitate.
    """
    usual = errors(start)
    halfway: dict[str, list[float]] = {}
    effects: dict[str, Floats] = {}
    for name, constant in CONSTANTS.items():
        at = coordinate(constant, start[name])
        ends = (coordinate(constant, constant.low), coordinate(constant, constant.high))
        halfway[name] = [value_at(constant, (at + end) / 2) for end in ends if abs(end - at) > 1e-9]
        each = [errors({**start, name: value}) - usual for value in halfway[name]]
        effects[name] = max(each, key=_size)
    chosen: list[str] = []
    while len(chosen) < most and effects:
        name = max(effects, key=lambda name: _size(effects[name]))
        if _size(effects[name]) < LEAST_EFFECT:
            break
        along = effects.pop(name)
        along = along / np.linalg.norm(along)
        effects = {other: effect - along * float(along @ effect) for other, effect in effects.items()}
        chosen.append(name)
    return tuple(name for name in CONSTANTS if name in chosen), halfway


def _size(effect: Floats) -> float:
    return float(np.sqrt(np.mean(effect**2)))
