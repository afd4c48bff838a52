"""Rates of each operator kind from measured profiles, and their error on what was fitted and what was held out."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pipebench.domain.calibration import Calibration, Errors, FittedRates
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Precision
from pipebench.domain.value import digest
from pipebench_analytic.fit import Point, fitted, scaled
from pipebench_analytic.measured_times import Key, Measured, Source, measured_times, read_sources, refuse_unfit
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.roofline import Kernel, Rates
from pipebench_analytic.rounding import significant

FEW = 6
"""Kinds with fewer measured times take the curve of all kinds like them, scaled."""


class FittedKinds:
    """Rates by kind and direction."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        points: dict[Key, list[Point]] = {}
        for each in measured:
            for key in each.keys:
                points.setdefault(key, []).append(each.point)
        self.rates: dict[Key, Rates] = {key: _rounded(fitted(own)) for key, own in points.items() if not key[0]}
        for key, own in points.items():
            if key[0]:
                few = len(own) < FEW
                self.rates[key] = _rounded(scaled(own, self.rates["", key[1], key[2]]) if few else fitted(own))

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
        fits=tuple(_described(kinds, measured, predicted, held)),
        sums=_sums(measured, predicted, totals),
        left_out=None if not held else "model" if several else "micro-batch",
        held_out_sums=_sums(measured, held, totals) if held else {},
    )


def _predictions(kinds: FittedKinds, measured: Iterable[Measured]) -> dict[int, float]:
    return {id(each): each.point.predicted(kinds.rates_of(each.point.kernels[0])) for each in measured}


def _held_out(measured: Sequence[Measured]) -> dict[int, float]:
    """Each time as rates say that were fitted without its group; none where all belong to one group."""
    groups = sorted({each.point.group for each in measured})
    found: dict[int, float] = {}
    for group in groups if len(groups) > 1 else ():
        others = FittedKinds([each for each in measured if each.point.group != group])
        found |= _predictions(others, (each for each in measured if each.point.group == group))
    return found


def _totals(sources: Sequence[Source], device_type: str) -> dict[str, float]:
    found = {}
    for source in sources:
        costs = source.profile.on(device_type)
        for position, size in enumerate(costs.micro_batches):
            spent = sum(each.forward_s[position] + each.backward_s[position] for each in costs.operators)
            found[source.sum_at(size)] = spent
    return found


def _described(
    kinds: FittedKinds, measured: Sequence[Measured], predicted: Mapping[int, float], held: Mapping[int, float]
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


def _errors(measured: Sequence[Measured], predicted: Mapping[int, float]) -> Errors:
    apart = [abs(predicted[id(each)] / each.point.seconds - 1) for each in measured]
    return Errors(median=_short(np.quantile(apart, 0.5)), p90=_short(np.quantile(apart, 0.9)))


def _sums(
    measured: Sequence[Measured], predicted: Mapping[int, float], totals: Mapping[str, float]
) -> dict[str, float]:
    """Signed errors of whole sums; operators for which no kernel is known count as nothing."""
    made = dict.fromkeys(totals, 0.0)
    for each in measured:
        made[each.part_of] += predicted[id(each)]
    return {name: _short(made[name] / total - 1) for name, total in totals.items() if total > 0}


def _short(number: float) -> float:
    return float(f"{number:.4g}") if abs(number) > 1e-9 else 0.0


def _rounded(rates: Rates) -> Rates:
    return Rates(*(significant(getattr(rates, name)) for name in Rates.__slots__))
