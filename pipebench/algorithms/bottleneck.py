"""The smallest bottleneck where a search only answers whether a target can be reached."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Found = TypeVar("Found")
PRECISION = 1e-9
"""Relative distance of the target that was proven out of reach from the bottleneck that was reached."""
NEAR = 0.02
"""Relative distance below which it is asked whether anything better is left at all."""
MOST_DESCENTS = 8
"""Answers to that question in a row, each a little better, after which the distance is halved again."""


@dataclass(frozen=True, slots=True)
class Bracket(Generic[Found]):
    """The best that was found. refused: no target up to it can be reached. stopped: the time was over."""

    best: Found
    refused: float
    stopped: bool


def narrow_bottleneck(
    first: Found,
    refused: float,
    below: Callable[[float], Found | None],
    bottleneck: Callable[[Found], float],
    out_of_time: Callable[[], bool],
) -> Bracket[Found]:
    """The answer to the smallest target that has one, within PRECISION.

    first: any answer. refused: a target below which there is none. below: an answer whose bottleneck is a target
    at most, None where there is none. Bisection; close to the end it is asked whether there is anything better
    than what is known. Most often there is not, and that refusal is the last question.
    """
    best, low, high = first, refused, bottleneck(first)
    descents = 0
    while low < high * (1 - PRECISION):
        if out_of_time():
            return Bracket(best, low, True)
        target = high * (1 - PRECISION) if descents else max(low, (low + high) / 2)
        found = below(target)
        if found is None:
            low = target
        else:
            best, high = found, min(target, bottleneck(found))
        near = high - low < high * NEAR
        descents = descents + 1 if near and descents < MOST_DESCENTS else 0
    return Bracket(best, low, False)
