"""A calibration: the fit to all runs, and folds that say how far to trust it on runs that it did not see."""

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pipebench import __version__
from pipebench.bench.accuracy.errand import Told
from pipebench.bench.accuracy.metrics import Errors, errors_of, percentile
from pipebench.bench.accuracy.summary import Variant, usual_variants
from pipebench.bench.calibration.errand import Fold, FoldFit, FoldTask, KernelSum, fit_folds
from pipebench.bench.calibration.sources import TracedRun
from pipebench.bench.calibration.subject import SEED, MeasuredRun, Subject
from pipebench.bench.prediction_interval import residuals_of
from pipebench.domain.framework import FEWEST_RESIDUALS, Spread
from pipebench.domain.tuning import CONSTANTS, Tuning, usual_constants
from pipebench.domain.value import Value
from pipebench.formats.calibrations import CalibrationFile, CalibrationRun, calibration_text
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.manager import Host

MOST_FOLDS = 16
"""With more runs they are left out in FOLDS groups, drawn with a fixed seed, in place of one at a time."""
FOLDS = 8
FEWEST_SHAPES = 3
LeaveOut = Literal["runs", "shapes", "both"]


class FittedConstant(Value, frozen=True, kw_only=True):
    """One constant. usual: without calibration. value: fitted. moved: whether the runs can tell it. least,
    largest: over the folds; None without folds.
    """

    name: str
    usual: float
    value: float
    moved: bool
    least: float | None = None
    largest: float | None = None


class FittedRun(Value, frozen=True, kw_only=True):
    """One run. before_s: with the usual constants. after_s: with the fitted ones. unseen_s: with those of a fit
    that did not see the run; None without folds. traced: what a trace of it says; of kernels kernels_before_s and
    kernels_after_s are what is simulated.
    """

    id: str
    measured_s: float
    before_s: float
    after_s: float
    unseen_s: float | None = None
    traced: TracedRun | None = None
    kernels_before_s: float | None = None
    kernels_after_s: float | None = None


class LeftOut(Value, frozen=True, kw_only=True):
    """Runs that are predicted by fits that saw none of their shape. name: the shape, or the group of runs whose
    interval they make. errors: theirs. low, high: the quantiles of measured over predicted time at 5 and at 95 per
    cent.
    """

    name: str
    errors: Errors
    low: float
    high: float


class Outcome(Value, frozen=True, kw_only=True):
    """A calibration and how good it is.

    before, after: errors with the usual and with the fitted constants, on the runs that were fitted.
    unseen: of each run by a fit without it; None for one run, and where shapes alone are left out.
    unseen_shapes: of each run, those outside the sample among them, by a fit without any of its shape; None for
    fewer than three shapes, and where runs alone are left out.
    left: runs that are not fitted, by reason.
    groups: how many groups of runs were left out in turn.
    left_out: for each shape, what is seen of its runs by a fit without it.
    interval_groups: the same for each group of runs that `prediction_interval` tells apart.
    variants: what the sources do not say and how it was taken, with the errors of `before`.
    spread: what predictions with the constants carry as their interval; None where fewer than FEWEST_RESIDUALS
    runs were left out.
    """

    device: str
    framework: str
    constants: tuple[FittedConstant, ...]
    runs: tuple[FittedRun, ...]
    before: Errors
    after: Errors
    unseen: Errors | None
    unseen_shapes: Errors | None
    groups: int
    shapes: int
    left: dict[str, int]
    left_out: tuple[LeftOut, ...] = ()
    interval_groups: tuple[LeftOut, ...] = ()
    variants: tuple[Variant, ...] = ()
    spread: Spread | None = None

    @property
    def better(self) -> bool:
        """Whether runs that a fit has not seen are predicted better than with the usual constants, by more than
        chance: the mean gain is above its standard error. Runs of shapes that it has not seen are better on
        average; where shapes alone were left out, that decides.
        """
        if self.unseen is None and self.unseen_shapes is not None:
            return self.unseen_shapes.mean_absolute < self.before.mean_absolute
        gains = [
            (abs(run.before_s - run.measured_s) - abs(run.unseen_s - run.measured_s)) / run.measured_s
            for run in self.runs
            if run.unseen_s is not None
        ]
        if len(gains) < 2 or statistics.fmean(gains) <= statistics.stdev(gains) / math.sqrt(len(gains)):
            return False
        return self.unseen_shapes is None or self.unseen_shapes.mean_absolute < self.before.mean_absolute

    @property
    def tuning(self) -> Tuning:
        """The constants that were moved."""
        moved = {each.name: each.value for each in self.constants if each.moved}
        return Tuning(device=self.device, framework=self.framework, constants=moved, spread=self.spread)


def calibrate(
    host: Host,
    subject: Subject,
    jobs: int = 1,
    told: Told | None = None,
    *,
    leave_out: LeaveOut = "both",
    afresh: bool = False,
) -> Outcome:
    """The calibration of a subject. jobs: processes side by side. told: how many fits are done.

    leave_out: what is left out of fits to see how good they are: single runs, shapes, or both in turn. afresh: see
    `fit_constants`.
    """
    usual = usual_constants(load_framework(subject.framework))
    everything = tuple(range(len(subject.runs)))
    known = (*subject.runs, *subject.others)
    groups = _groups(len(subject.runs)) if leave_out != "shapes" else ()
    shapes = _shapes(known) if leave_out != "runs" else ()
    folds = [Fold(fitted=everything, predicted=everything)]
    folds += [
        Fold(fitted=tuple(number for number in everything if number not in out), predicted=out)
        for out in (*groups, *shapes)
    ]
    task = FoldTask(
        device=subject.device,
        framework=subject.framework,
        runs=tuple(run.expressed for run in known),
        measured_s=tuple(run.measured_s for run in known),
        usual=usual,
        folds=tuple(folds),
        kernels=tuple(
            KernelSum(run=number, rank=run.traced.rank, measured_s=run.traced.kernels_s)
            for number, run in enumerate(subject.runs)
            if run.traced is not None
        ),
        afresh=afresh,
    )
    whole, *left_out = fit_folds(host, task, jobs, told)
    by_run = _unseen(groups, left_out[: len(groups)])
    by_shape = _unseen(shapes, left_out[len(groups) :])
    measured = dict(enumerate(task.measured_s))
    return Outcome(
        device=subject.device,
        framework=subject.framework,
        constants=tuple(_fitted(name, usual[name], whole, left_out) for name in CONSTANTS),
        runs=tuple(
            FittedRun(
                id=run.expressed.id,
                measured_s=run.measured_s,
                before_s=run.before_s,
                after_s=whole.predicted_s[number],
                unseen_s=by_run.get(number),
                traced=run.traced,
                kernels_before_s=whole.kernels_s.get(number, (None, None))[0],
                kernels_after_s=whole.kernels_s.get(number, (None, None))[1],
            )
            for number, run in enumerate(subject.runs)
        ),
        before=_errors({number: run.before_s for number, run in enumerate(subject.runs)}, measured),
        after=_errors(dict(enumerate(whole.predicted_s)), measured),
        unseen=_errors(by_run, measured) if by_run else None,
        unseen_shapes=_errors(by_shape, measured) if by_shape else None,
        groups=len(groups),
        shapes=len({run.shape for run in known}),
        left=subject.left,
        left_out=_left_out(known, by_shape, lambda run: run.shape),
        interval_groups=_left_out(known, by_shape, _interval_group),
        variants=tuple(
            usual_variants((run.expressed.assumptions, run.before_s, run.measured_s) for run in subject.runs)
        ),
        spread=spread_of(by_shape, by_run, measured),
    )


def spread_of(
    by_shape: Mapping[int, float], by_run: Mapping[int, float], measured_s: Mapping[int, float]
) -> Spread | None:
    """The spread of runs that a fit did not see, None for fewer than FEWEST_RESIDUALS of them.

    by_shape, by_run: their predicted seconds by fits without their shape, and without them alone. The first counts
    where it is there: a prediction may be of another model.
    """
    listed: tuple[tuple[Literal["shapes", "runs"], Mapping[int, float]], ...] = (
        ("shapes", by_shape),
        ("runs", by_run),
    )
    for left_out, predicted_s in listed:
        if len(predicted_s) >= FEWEST_RESIDUALS:
            low, high = _quantiles([measured_s[number] / seconds for number, seconds in predicted_s.items()])
            return Spread(low=low, high=high, count=len(predicted_s), left_out=left_out)
    return None


def _quantiles(ratios: Sequence[float]) -> tuple[float, float]:
    """At 5 and at 95 per cent."""
    low, high = (percentile(ratios, share) or 0.0 for share in (0.05, 0.95))
    return low, high


def _left_out(
    runs: Sequence[MeasuredRun], predicted_s: Mapping[int, float], name: Callable[[MeasuredRun], str]
) -> tuple[LeftOut, ...]:
    members: dict[str, list[int]] = {}
    for number in predicted_s:
        members.setdefault(name(runs[number]), []).append(number)
    found = []
    for each, numbers in members.items():
        ratios = [runs[number].measured_s / predicted_s[number] for number in numbers]
        low, high = _quantiles(ratios)
        errors = _errors({n: predicted_s[n] for n in numbers}, {n: runs[n].measured_s for n in numbers})
        found.append(LeftOut(name=each, errors=errors, low=low, high=high))
    return tuple(found)


def _interval_group(run: MeasuredRun) -> str:
    spec, cluster = run.expressed.spec, run.expressed.cluster
    assert spec.framework is not None
    return residuals_of(spec.framework, cluster.types[0].name, cluster.size, spec.tp or 1).what


def _groups(count: int) -> tuple[tuple[int, ...], ...]:
    """Numbers of runs that are left out together: each alone, or FOLDS groups."""
    if count < 2:
        return ()
    order = list(range(count))
    if count <= MOST_FOLDS:
        return tuple((number,) for number in order)
    random.Random(SEED).shuffle(order)
    return tuple(tuple(sorted(order[first::FOLDS])) for first in range(FOLDS))


def _shapes(runs: Sequence[MeasuredRun]) -> tuple[tuple[int, ...], ...]:
    members: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        members.setdefault(run.shape, []).append(number)
    return tuple(map(tuple, members.values())) if len(members) >= FEWEST_SHAPES else ()


def _unseen(groups: Sequence[tuple[int, ...]], made: Sequence[FoldFit]) -> dict[int, float]:
    return {
        number: seconds
        for out, fold in zip(groups, made, strict=True)
        for number, seconds in zip(out, fold.predicted_s, strict=True)
    }


def _errors(predicted_s: dict[int, float], measured_s: dict[int, float]) -> Errors:
    found = errors_of([(seconds, measured_s[number]) for number, seconds in predicted_s.items()])
    assert found is not None
    return found


def _fitted(name: str, usual: float, whole: FoldFit, left_out: Sequence[FoldFit]) -> FittedConstant:
    spread = [fold.fit.constants[name] for fold in left_out]
    return FittedConstant(
        name=name,
        usual=usual,
        value=whole.fit.constants[name],
        moved=name in whole.fit.moved,
        least=min(spread, default=None),
        largest=max(spread, default=None),
    )


def calibration_file(made: Outcome, source: str) -> str:
    """The TOML text of an outcome. source: where its runs are from."""
    checks = {
        "before": made.before,
        "after": made.after,
        "unseen": made.unseen,
        "unseen_shapes": made.unseen_shapes,
    }
    file = CalibrationFile(
        device=made.device,
        framework=made.framework,
        made=time.strftime("%Y-%m-%d", time.gmtime()),
        suite=__version__,
        source=source,
        constants=made.tuning.constants,
        interval=made.spread,
        errors={name: errors.mean_absolute for name, errors in checks.items() if errors is not None},
        runs=tuple(
            CalibrationRun(id=run.id, measured_s=run.measured_s, before_s=run.before_s, after_s=run.after_s)
            for run in made.runs
        ),
    )
    return calibration_text(file, {each.name: _note(each) for each in made.constants})


def _note(constant: FittedConstant) -> str:
    spread = "" if constant.least is None else f"; {constant.least:.4g} to {constant.largest:.4g} over the folds"
    return f"; {constant.usual:.4g} without calibration{spread}"
