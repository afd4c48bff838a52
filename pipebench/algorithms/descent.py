"""Robust least squares with bounds, for few coefficients.

Levenberg and Marquardt's steps on logarithms of coefficients. Residuals far from zero count by their size, not by
their square. Where there are many valleys, some seeded jumps look for a better one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Residuals = Callable[[Floats], Floats]

STEPS = 40
TRIES = 8
LONGEST_STEP = 0.5
DIFFERENCE = 1e-3
"""Of a logarithm, for slopes: wide, as waves make small stairs."""
FLAT = 1e-5
"""A step that gains less than this share of the loss ends the descent."""


@dataclass(frozen=True, slots=True)
class Box:
    """Start and bounds of each coefficient, as logarithms. Where both bounds are equal the coefficient stays."""

    start: Floats
    low: Floats
    high: Floats


def fit_in_box(
    residuals: Residuals,
    box: Box,
    *,
    near: float,
    jumps: int = 0,
    steps: int = STEPS,
    flat: float = FLAT,
) -> Floats:
    """The coefficients with the least loss that was found, as logarithms.

    near: residuals below it count by their square. jumps: how often a descent starts again beside the best.
    steps: of a descent, at most. flat: a step that gains less than this share of the loss ends it.
    """
    chance = np.random.default_rng(0)
    best, least = _descend(residuals, box, box.start, near, steps, flat)
    for _ in range(jumps):
        beside = np.clip(best + chance.normal(0.0, 0.25, len(best)), box.low, box.high)
        found, loss = _descend(residuals, box, beside, near, steps, flat)
        if loss < least:
            best, least = found, loss
    return best


def _loss(errors: Floats, near: float) -> float:
    return float((np.sqrt(1 + (errors / near) ** 2) - 1).sum())


def _descend(
    residuals: Residuals, box: Box, start: Floats, near: float, steps: int, flat: float
) -> tuple[Floats, float]:
    point, errors = start, residuals(start)
    loss, damping = _loss(errors, near), 1e-2
    free = np.flatnonzero(box.high > box.low)
    for _ in range(steps):
        slopes = np.stack([_slope(residuals, box, point, errors, int(each)) for each in free], axis=1)
        weights = 1 / np.sqrt(1 + (errors / near) ** 2)
        square = slopes.T @ (weights[:, None] * slopes)
        downhill = -slopes.T @ (weights * errors)
        own = np.diag(square)
        ridge = own + 1e-3 * own.mean() + 1e-12
        for _ in range(TRIES):
            step = np.linalg.solve(square + damping * np.diag(ridge), downhill)
            there = point.copy()
            there[free] += np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            there = np.clip(there, box.low, box.high)
            found = residuals(there)
            after = _loss(found, near)
            if after < loss:
                break
            damping *= 4
        else:
            return point, loss
        gain = (loss - after) / loss if loss > 0 else 0.0
        point, errors, loss, damping = there, found, after, max(damping / 5, 1e-7)
        if gain < flat:
            break
    return point, loss


def _slope(residuals: Residuals, box: Box, point: Floats, errors: Floats, number: int) -> Floats:
    """By a difference upwards; at the upper bound downwards."""
    beside = point.copy()
    step = DIFFERENCE if point[number] + DIFFERENCE <= box.high[number] else -DIFFERENCE
    beside[number] += step
    return (residuals(beside) - errors) / step
