"""Predictions beside measured runs: every run expressed, predicted and set beside what was measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from pipebench.bench.accuracy.assumptions import NotExpressed
from pipebench.bench.accuracy.errand import Prediction, Told, predict_all
from pipebench.bench.accuracy.expression import LESS_MEMORY, MICRO_BATCH, RECOMPUTE, ExpressedRun, express
from pipebench.bench.accuracy.machine import memory_bytes
from pipebench.bench.accuracy.metrics import errors_of
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.summary import Accuracy, AccuracyRow, Variant, group_name, summary, usual_variants
from pipebench.bench.accuracy.vocabulary import vocabulary_by_source
from pipebench.bench.score import prediction_error
from pipebench.domain.errors import PipebenchError
from pipebench.domain.tuning import Tuning
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A run as it is expressed with some values replaced, or the reason why it is not."""

    run: Run
    replaced: Mapping[str, str]
    expressed: ExpressedRun | None
    reason: str = ""
    detail: str = ""


def held_against(
    host: Host,
    runs: Sequence[Run],
    *,
    jobs: int = 1,
    alternatives: bool = False,
    tuning: Tuning | None = None,
    told: Told | None = None,
) -> Accuracy:
    """The accuracy over runs. jobs: processes. alternatives: also with every other value of what is assumed.

    tuning: calibrated constants; runs on other devices or under other frameworks are then not predicted.
    told: how many runs are predicted, alternatives among them.
    """
    express_run = partial(_attempt, vocabularies=vocabulary_by_source(runs), tuning=tuning)
    tried = [express_run(run, {}) for run in runs]
    before = 0

    def predict(attempts: Sequence[_Attempt]) -> list[Prediction]:
        nonlocal before
        made = _predictions(host, attempts, jobs, told and (lambda done: told(before + done)))
        before += sum(attempt.expressed is not None for attempt in attempts)
        return made

    predicted = predict(tried)
    _recompute_until_it_fits(tried, predicted, express_run, predict)
    uppers = _upper_ends(tried, predicted, express_run, predict)
    others = _alternatives(tried, express_run) if alternatives else {}
    left = iter(predict([each for listed in others.values() for each in listed]))
    rows = [_row(*each) for each in zip(tried, predicted, uppers, strict=True)]
    usual = usual_variants((row.assumptions, row.simulated_s, row.measured_s) for row in rows)
    ran = [
        _variant(field, value, listed, [next(left) for _ in listed]) for (field, value), listed in others.items()
    ]
    return summary(runs, rows, sorted((*usual, *ran), key=lambda each: (each.field, not each.usual, each.value)))


Expression = Callable[[Run, Mapping[str, str]], _Attempt]


def _attempt(
    run: Run, replaced: Mapping[str, str], vocabularies: Mapping[str, int], tuning: Tuning | None
) -> _Attempt:
    try:
        expressed = express(run, replaced, vocabularies[run.source])
        return _Attempt(run, replaced, replace(expressed, tuning=tuning))
    except NotExpressed as error:
        return _Attempt(run, replaced, None, error.reason, error.detail)
    except PipebenchError as error:
        return _Attempt(run, replaced, None, error.message, error.hint or "")


def _recompute_until_it_fits(
    tried: list[_Attempt],
    predicted: list[Prediction],
    express_run: Expression,
    predict: Callable[[Sequence[_Attempt]], Sequence[Prediction]],
) -> None:
    """Replace attempts, and what is predicted, where the source does not say what is recomputed.

    A run that was measured fitted its device. The first recomputation with which it does is taken; the usual
    assumption stays where it does with none of them.
    """
    open_runs = [at for at, made in enumerate(predicted) if _is_refuted(tried[at], made)]
    for words in LESS_MEMORY:
        again = [express_run(tried[at].run, {RECOMPUTE: words}) for at in open_runs]
        made = predict(again)
        for at, attempt, prediction in zip(open_runs, again, made, strict=True):
            if prediction.simulated is not None and not prediction.simulated.too_large:
                tried[at], predicted[at] = attempt, prediction
        open_runs = [at for at in open_runs if _is_refuted(tried[at], predicted[at])]


def _is_refuted(attempt: _Attempt, made: Prediction) -> bool:
    """Whether the run, as it is assumed to recompute, is too large for the device that it ran on."""
    open_fields = [each.field for each in attempt.expressed.assumptions] if attempt.expressed else []
    return made.simulated is not None and made.simulated.too_large and RECOMPUTE in open_fields


def _upper_ends(
    tried: Sequence[_Attempt],
    predicted: Sequence[Prediction],
    express_run: Expression,
    predict: Callable[[Sequence[_Attempt]], Sequence[Prediction]],
) -> list[int | None]:
    """Upper ends of the memory of each run.

    A source that says no micro-batch may have run a larger one than is assumed. It fitted the device, so the end
    is that of the largest whose end does.
    """
    ends = [made.simulated.memory_high_bytes if made.simulated else None for made in predicted]
    larger = [
        (at, express_run(attempt.run, {**attempt.replaced, MICRO_BATCH: value}))
        for at, attempt in enumerate(tried)
        for each in (attempt.expressed.assumptions if attempt.expressed else ())
        if each.field == MICRO_BATCH
        for value in each.alternatives
        if int(value) > int(each.value)
    ]
    for (at, attempt), made in zip(larger, predict([each for _, each in larger]), strict=True):
        if made.simulated is not None and attempt.expressed is not None:
            limit = _device_memory_bytes(attempt.run, attempt.expressed)
            end = made.simulated.memory_high_bytes
            if end is not None and end <= limit:
                ends[at] = max(end, ends[at] or 0)
    return ends


def _device_memory_bytes(run: Run, expressed: ExpressedRun) -> int:
    return min(memory_bytes(run, device) for device in expressed.cluster.types)


def _alternatives(tried: Sequence[_Attempt], express_run: Expression) -> dict[tuple[str, str], list[_Attempt]]:
    """By field and value, the runs where the field is assumed and could have that value."""
    found: dict[tuple[str, str], list[_Attempt]] = {}
    for attempt in tried:
        for assumption in attempt.expressed.assumptions if attempt.expressed else ():
            for value in assumption.alternatives:
                again = express_run(attempt.run, {**attempt.replaced, assumption.field: value})
                found.setdefault((assumption.field, value), []).append(again)
    return found


def _predictions(host: Host, tried: Sequence[_Attempt], jobs: int, told: Told | None) -> list[Prediction]:
    expressed = [attempt.expressed for attempt in tried if attempt.expressed is not None]
    made = iter(predict_all(host, expressed, jobs, told))
    return [Prediction(reason=attempt.reason) if attempt.expressed is None else next(made) for attempt in tried]


def _row(attempt: _Attempt, made: Prediction, memory_high_bytes: int | None) -> AccuracyRow:
    run, simulated = attempt.run, made.simulated
    row = AccuracyRow(
        id=run.id,
        group=group_name(run),
        measured_s=run.iter_s,
        measured_memory_bytes=run.measured_memory_bytes,
        assumptions=attempt.expressed.assumptions if attempt.expressed else (),
    )
    if simulated is None or attempt.expressed is None:
        return replace(row, reason=made.reason or "no prediction", detail=attempt.detail)
    memory = _device_memory_bytes(run, attempt.expressed)
    return replace(
        row,
        simulated_s=simulated.simulated_s,
        low_s=simulated.low_s,
        high_s=simulated.high_s,
        error=prediction_error(simulated.simulated_s, run.iter_s),
        memory_bytes=simulated.memory_bytes,
        memory_high_bytes=memory_high_bytes,
        device_memory_bytes=memory,
        fit="does not fit" if (memory_high_bytes or simulated.memory_bytes) > memory else "fits",
    )


def _variant(field: str, value: str, tried: Sequence[_Attempt], made: Sequence[Prediction]) -> Variant:
    pairs = [
        (each.simulated.simulated_s, attempt.run.iter_s)
        for attempt, each in zip(tried, made, strict=True)
        if each.simulated is not None
    ]
    return Variant(field=field, value=value, usual=False, count=len(tried), errors=errors_of(pairs))
