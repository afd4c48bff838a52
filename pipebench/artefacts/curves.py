"""Curves of a chart: one contender's figure along an axis of the places."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Curve

P = TypeVar("P")


def curve(
    who: Contender,
    places: Sequence[P],
    x: Callable[[P], float],
    y: Callable[[P], float | None],
    missing: Callable[[P], bool] = lambda _: False,
    *,
    label: str = "",
    kind: Literal["estimate", "schedule"] = "schedule",
) -> Curve:
    """A point for each place that has a figure.

    x: where a place stands on the axis.
    y: the figure there, None where there is none.
    missing: whether the contender has no plan there, which is marked at the chart's edge.
    label: in the legend, where it is not the contender's own.
    """
    return Curve(
        label=label or who.label,
        kind=kind,
        colour=who.colour,
        points=tuple((float(x(place)), value) for place in places if (value := y(place)) is not None),
        infeasible=tuple(float(x(place)) for place in places if missing(place)),
    )


def with_points(curves: Iterable[Curve]) -> tuple[Curve, ...]:
    """The curves that have a point."""
    return tuple(each for each in curves if each.points)


def with_marks(curves: Iterable[Curve]) -> tuple[Curve, ...]:
    """The curves that have a point, or a mark where there is no plan."""
    return tuple(each for each in curves if each.points or each.infeasible)
