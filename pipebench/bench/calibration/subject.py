"""The runs that a calibration is fitted to: of one device type under one framework, a sample of many."""

import random
from collections.abc import Mapping, Sequence

from pipebench.bench.accuracy.assumptions import NotExpressed
from pipebench.bench.accuracy.errand import predict_all
from pipebench.bench.accuracy.expression import ExpressedRun, express
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.vocabulary import vocabulary_by_source
from pipebench.bench.calibration.sources import TracedRun
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.manager import Host

MOST_FITTED = 50
"""Runs; of more a sample is drawn, with a fixed seed, unless somebody says another number."""
SEED = 0


class MeasuredRun(Value, frozen=True, kw_only=True):
    """A run that is fitted. shape: of its model's layers: width and tokens. before_s: simulated with the usual
    constants. traced: what a trace of it says, None without one.
    """

    expressed: ExpressedRun
    measured_s: float
    shape: str
    before_s: float
    traced: TracedRun | None = None


class Subject(Value, frozen=True, kw_only=True):
    """What a calibration is of. runs: that are fitted. others: outside the sample; a fit without their shape
    predicts them as well. left: by reason, how many runs are not fitted.
    """

    device: str
    framework: str
    runs: tuple[MeasuredRun, ...]
    others: tuple[MeasuredRun, ...] = ()
    left: dict[str, int]


def subject_of(
    host: Host,
    runs: Sequence[Run],
    device: str | None = None,
    framework: str | None = None,
    jobs: int = 1,
    traced: Mapping[str, TracedRun] | None = None,
    most: int = MOST_FITTED,
) -> Subject:
    """The runs of one device type and framework. device, framework: where the runs are of several. traced: what
    traces say, by the id of a run. most: runs; of more a sample is drawn.

    Raises PipebenchError where they are of several and none is named, and where no run can be predicted.
    """
    left: dict[str, int] = {}

    def leave(reason: str, count: int = 1) -> None:
        if count:
            left[reason] = left.get(reason, 0) + count

    vocabularies = vocabulary_by_source(runs)
    known: list[tuple[Run, ExpressedRun]] = []
    for run in runs:
        try:
            known.append((run, express(run, vocabulary=vocabularies[run.source])))
        except NotExpressed as error:
            leave(error.reason)
        except PipebenchError as error:
            leave(error.message)
    for what, name, of in (("device", device, _device), ("framework", framework, _framework)):
        there = sorted({of(each) for _, each in known})
        if name is None and len(there) > 1:
            raise PipebenchError(
                f"the runs are of {len(there)} {what}s, constants are of one: {', '.join(there)}",
                f"name one with --{what}",
            )
        kept = [(run, each) for run, each in known if name is None or of(each) == name]
        if known and not kept:
            raise PipebenchError(f"no run is of the {what} {name!r}", f"the runs have {', '.join(there)}")
        leave(f"another {what}", len(known) - len(kept))
        known = kept
    chosen = set(range(len(known)))
    if len(known) > most:
        leave(f"more than {most} runs: a sample is fitted", len(known) - most)
        chosen = set(random.Random(SEED).sample(range(len(known)), most))
    predicted = predict_all(host, [each for _, each in known], jobs)
    fitted: list[MeasuredRun] = []
    others: list[MeasuredRun] = []
    for number, ((run, each), made) in enumerate(zip(known, predicted, strict=True)):
        if made.simulated is None:
            leave(made.reason or "no prediction")
        else:
            before_s = made.simulated.simulated_s
            (fitted if number in chosen else others).append(
                MeasuredRun(
                    expressed=each,
                    measured_s=run.iter_s,
                    shape=_shape(run, each),
                    before_s=before_s,
                    traced=(traced or {}).get(run.id),
                )
            )
    if not fitted:
        reasons = "; ".join(f"{reason} ({count})" for reason, count in left.items())
        raise PipebenchError(f"none of {len(runs)} runs can be fitted: {reasons}", exit_code=ExitCode.NOTHING_RAN)
    first = fitted[0].expressed
    return Subject(
        device=_device(first), framework=_framework(first), runs=tuple(fitted), others=tuple(others), left=left
    )


def _device(run: ExpressedRun) -> str:
    return run.cluster.types[0].name


def _framework(run: ExpressedRun) -> str:
    assert run.spec.framework is not None
    return run.spec.framework


def _shape(run: Run, expressed: ExpressedRun) -> str:
    """Width and tokens: layers of one width launch the same kernels, however many there are."""
    width = f"{run.hidden} wide, " if run.hidden else f"{sum(expressed.layers_by_stage)} layers, "
    return f"{width}{run.seq} tokens"
