"""Rates of each operator kind from measured profiles, and their error on what was fitted and what was held out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from pipebench.documents.decoding import require_size
from pipebench.documents.document import decode
from pipebench.domain.calibration import Calibration, Direction, Errors, FittedRates
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_FILE_BYTES
from pipebench.domain.profile import ELEMENT_BYTES, OperatorCosts, Precision, Profile
from pipebench.domain.value import digest
from pipebench.system.files import open_regular
from pipebench_analytic.fit import TimedPoint, fit_rates, scale_rates
from pipebench_analytic.kinds import kind_of
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.roofline import Kernel, Rates, significant
from pipebench_analytic.work import Kernels, OperatorWork, graph_work

SEPARATOR = ":"
Key = tuple[str, bool, Direction]
"""Kind (empty: all), whether it is a contraction, direction."""


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """A measured profile. name: of its model, or the path where two have the same."""

    path: str
    name: str
    profile: Profile

    def sum_at(self, size: int) -> str:
        """How the sum over its operators at a size is called."""
        return f"{self.name} at micro-batch {size}"


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """One measured time: its point, the kind it teaches, and the sum that it is part of."""

    kind: str
    direction: Direction
    point: TimedPoint
    part_of: str

    @property
    def keys(self) -> tuple[Key, Key]:
        """Of its own kind and of all kinds like it."""
        contraction = any(kernel.rows for kernel in self.point.kernels)
        return (self.kind, contraction, self.direction), ("", contraction, self.direction)


def read_sources(text: str) -> list[ProfileSource]:
    """The profiles in files separated by colons. Raises PipebenchError for one that cannot be read."""
    found = []
    for path in filter(None, text.split(SEPARATOR)):
        try:
            with open_regular(path) as file:
                data = file.read(LARGEST_FILE_BYTES + 1)
        except OSError as error:
            reason = error.strerror or str(error)
            raise PipebenchError(f"calibrate: cannot read {path!r}: {reason}", "name a measured profile") from None
        require_size(data, LARGEST_FILE_BYTES, path)
        found.append((path, cast(Profile, decode(data, "profile", path))))
    names = [profile.name for _, profile in found]
    return [ProfileSource(path, each.name if names.count(each.name) == 1 else path, each) for path, each in found]


def refuse_unfit(sources: Sequence[ProfileSource], device_type: str, precision: Precision) -> None:
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


def measured_times(source: ProfileSource, device_type: str, *, by_size: bool) -> list[MeasuredTime]:
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
                    point = TimedPoint(parts, size, seconds, group)
                    found.append(MeasuredTime(each.operator.kind, direction, point, source.sum_at(size)))
    return found


def _kernels(work: OperatorWork, path: str) -> Kernels:
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


FEW = 6
"""Kinds with fewer measured times take the curve of all kinds like them, scaled."""


class FittedKinds:
    """Rates by kind and direction."""

    def __init__(self, measured: Sequence[MeasuredTime]) -> None:
        points: dict[Key, list[TimedPoint]] = {}
        for each in measured:
            for key in each.keys:
                points.setdefault(key, []).append(each.point)
        self.rates: dict[Key, Rates] = {
            key: _round_rates(fit_rates(own)) for key, own in points.items() if not key[0]
        }
        for key, own in points.items():
            if key[0]:
                few = len(own) < FEW
                self.rates[key] = _round_rates(
                    scale_rates(own, self.rates["", key[1], key[2]]) if few else fit_rates(own)
                )

    def rates_of(self, kernel: Kernel) -> Rates:
        """Of its kind, else of all kinds like it. Raises PipebenchError where there is none."""
        contraction = kernel.rows > 0
        for key in ((kernel.kind, contraction, kernel.direction), ("", contraction, kernel.direction)):
            if key in self.rates:
                return self.rates[key]
        for (kind, like, _), rates in self.rates.items():
            if not kind and like == contraction:
                return rates
        what = "contraction (conv2d, linear, …)" if contraction else "kind that is no contraction (relu, add, …)"
        raise PipebenchError(f"the measured profile has no {what} to learn from, kind {kernel.kind!r} needs it")


def device_types(options: AnalyticOptions) -> tuple[str, ...]:
    """Device types that the measured profiles have costs for; none where nothing is calibrated."""
    known = [source.profile.device_types for source in read_sources(options.calibrate)]
    return tuple(name for name in known[0] if all(name in names for names in known)) if known else ()


def calibration(
    options: AnalyticOptions, device_type: str, precision: Precision
) -> tuple[FittedKinds, Calibration]:
    """The rates on one device type and what is to be said of them. Raises PipebenchError for unfit profiles."""
    sources = read_sources(options.calibrate)
    refuse_unfit(sources, device_type, precision)
    several = len(sources) > 1
    measured = [each for source in sources for each in measured_times(source, device_type, by_size=not several)]
    if not measured:
        raise PipebenchError(f"{options.calibrate}: nothing in it took time")
    kinds = FittedKinds(measured)
    predicted = _predictions(kinds, measured)
    held = _held_out(measured)
    totals = _totals(sources, device_type)
    return kinds, Calibration(
        profiles={source.path: digest(source.profile) for source in sources},
        device_type=device_type,
        fits=tuple(_calibration_report(kinds, measured, predicted, held)),
        sums=_sums(measured, predicted, totals),
        left_out=None if not held else "model" if several else "micro-batch",
        held_out_sums=_sums(measured, held, totals) if held else {},
    )


def _predictions(kinds: FittedKinds, measured: Iterable[MeasuredTime]) -> dict[int, float]:
    return {id(each): each.point.seconds_at(kinds.rates_of(each.point.kernels[0])) for each in measured}


def _held_out(measured: Sequence[MeasuredTime]) -> dict[int, float]:
    """Each time as rates say that were fitted without its group; none where all belong to one group."""
    groups = sorted({each.point.group for each in measured})
    found: dict[int, float] = {}
    for group in groups if len(groups) > 1 else ():
        others = FittedKinds([each for each in measured if each.point.group != group])
        found |= _predictions(others, (each for each in measured if each.point.group == group))
    return found


def _totals(sources: Sequence[ProfileSource], device_type: str) -> dict[str, float]:
    found = {}
    for source in sources:
        costs = source.profile.on(device_type)
        for position, size in enumerate(costs.micro_batches):
            spent = sum(each.forward_s[position] + each.backward_s[position] for each in costs.operators)
            found[source.sum_at(size)] = spent
    return found


def _calibration_report(
    kinds: FittedKinds, measured: Sequence[MeasuredTime], predicted: Mapping[int, float], held: Mapping[int, float]
) -> Iterable[FittedRates]:
    order = sorted(kinds.rates, key=lambda key: (not key[0], key[0], not key[1], key[2] == "backward"))
    for key in order:
        rates = kinds.rates[key]
        own = [each for each in measured if key in each.keys]
        yield FittedRates(
            kind=key[0],
            direction=key[2],
            contraction=key[1],
            flops_per_s=rates.flops_per_s if key[1] else None,
            r_half=rates.r_half,
            bytes_per_s=rates.bytes_per_s,
            launch_s=rates.launch_s,
            points=len(own),
            errors=_errors(own, predicted),
            held_out=_errors(own, held) if held else None,
        )


def _errors(measured: Sequence[MeasuredTime], predicted: Mapping[int, float]) -> Errors:
    apart = [abs(predicted[id(each)] / each.point.seconds - 1) for each in measured]
    return Errors(median=_short(np.quantile(apart, 0.5)), p90=_short(np.quantile(apart, 0.9)))


def _sums(
    measured: Sequence[MeasuredTime], predicted: Mapping[int, float], totals: Mapping[str, float]
) -> dict[str, float]:
    """Signed errors of whole sums; operators for which no kernel is known count as nothing."""
    made = dict.fromkeys(totals, 0.0)
    for each in measured:
        made[each.part_of] += predicted[id(each)]
    return {name: _short(made[name] / total - 1) for name, total in totals.items() if total > 0}


def _short(number: float) -> float:
    return float(f"{number:.4g}") if abs(number) > 1e-9 else 0.0


def _round_rates(rates: Rates) -> Rates:
    return Rates(*(significant(getattr(rates, name)) for name in Rates.__slots__))
