"""The measured times of profiles, each with the kernels that it is the time of.

Only profiles of graphs whose operators have dims can teach rates: FLOP and bytes follow from them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pipebench.domain.calibration import Direction
from pipebench.domain.document import decode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import ELEMENT_BYTES, OperatorCosts, Precision, Profile
from pipebench_analytic.fit import Point
from pipebench_analytic.kinds import kind_of
from pipebench_analytic.roofline import Kernel
from pipebench_analytic.work import Kernels, Work, graph_work

SEPARATOR = ":"
Key = tuple[str, bool, Direction]
"""Kind (empty: all), whether it is a contraction, direction."""


@dataclass(frozen=True, slots=True)
class Source:
    """A measured profile. name: of its model, or the path where two have the same."""

    path: str
    name: str
    profile: Profile

    def sum_at(self, size: int) -> str:
        """How the sum over its operators at a size is called."""
        return f"{self.name} at micro-batch {size}"


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured time: its point, the kind it teaches, and the sum that it is part of."""

    kind: str
    direction: Direction
    point: Point
    part_of: str

    @property
    def keys(self) -> tuple[Key, Key]:
        """Of its own kind and of all kinds like it."""
        contraction = any(kernel.rows for kernel in self.point.kernels)
        return (self.kind, contraction, self.direction), ("", contraction, self.direction)


def read_sources(text: str) -> list[Source]:
    """The profiles in files separated by colons. Raises PipebenchError for one that cannot be read."""
    found = []
    for path in filter(None, text.split(SEPARATOR)):
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise PipebenchError(f"calibrate: cannot read {path!r}: {reason}", "name a measured profile") from None
        found.append((path, cast(Profile, decode(data, "profile", path))))
    names = [profile.name for _, profile in found]
    return [Source(path, each.name if names.count(each.name) == 1 else path, each) for path, each in found]


def refuse_unfit(sources: Sequence[Source], device_type: str, precision: Precision) -> None:
    """Raises PipebenchError for another precision, no costs on the device type, operators without dims."""
    for source in sources:
        profile = source.profile
        if profile.precision != precision:
            raise PipebenchError(f"{source.path} was measured in {profile.precision}, not {precision}")
        if device_type not in profile.device_types:
            raise PipebenchError(
                f"{source.path} was measured on {', '.join(profile.device_types)}, not on {device_type!r}",
                f"say --device {profile.device_types[0]!r}, or name a cluster of such devices",
            )
        if profile.provenance.model:
            raise PipebenchError(
                f"{source.path}: operators of a captured module have no dims, so FLOP and bytes are not known",
                "profile one of `pipebench list models` with the profiler torch",
            )


def measured_times(source: Source, device_type: str, *, by_size: bool) -> list[Measured]:
    """All times above zero that a kernel is known for. by_size: those of a size are left out together.

    Raises PipebenchError for a kind that is not known, or an operator without the dims of its kind.
    """
    profile = source.profile
    work = graph_work(profile.graph, ELEMENT_BYTES[profile.precision])
    costs = profile.on(device_type)
    found = []
    for each, spent in zip(work, costs.operators, strict=True):
        kernels = _kernels(each, source.path)
        for position, size in enumerate(costs.micro_batches):
            group = f"micro-batch {size}" if by_size else source.path
            for direction, parts, seconds in _times(kernels, spent, position):
                if parts and seconds > 0:
                    point = Point(parts, size, seconds, group)
                    found.append(Measured(each.operator.kind, direction, point, source.sum_at(size)))
    return found


def _kernels(work: Work, path: str) -> Kernels:
    try:
        bare = kind_of(work.operator).contraction and not work.operator.dims
        kernels = work.kernels()
    except PipebenchError as error:
        raise PipebenchError(f"{path}: {error.message}", error.hint) from None
    except KeyError as error:
        raise PipebenchError(f"{path}: operator {work.operator.name!r} has no dim {error}") from None
    if bare:
        raise PipebenchError(f"{path}: operator {work.operator.name!r} has no dims, its FLOP are not known")
    return kernels


def _times(
    kernels: Kernels, spent: OperatorCosts, position: int
) -> Iterable[tuple[Direction, tuple[Kernel, ...], float]]:
    yield "forward", _there(kernels.forward), spent.forward_s[position]
    back = spent.backward_s[position]
    if spent.weight_gradient_s and kernels.weight_gradient is not None:
        weights = spent.weight_gradient_s[position]
        yield "backward", _there(kernels.weight_gradient), weights
        yield "backward", _there(kernels.input_gradient), back - weights
    else:
        yield "backward", _there(kernels.input_gradient, kernels.weight_gradient), back


def _there(*kernels: Kernel | None) -> tuple[Kernel, ...]:
    return tuple(kernel for kernel in kernels if kernel is not None)
