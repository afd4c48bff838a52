"""Record a night: look at the history first, measure, confirm what looks suspicious, add one line."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pipebench import __version__
from pipebench.bench.trials.comparison import Request
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.hooks.manager import Host
from pipebench.system.endings import requests_interrupt
from pipebench.track.judgement.speeds import suspicion
from pipebench.track.measurement.benchmark_json import BenchmarkFile
from pipebench.track.measurement.measurement import Measurement, NightWatcher
from pipebench.track.nights.conditions import load_counters, machine_load, this_machine
from pipebench.track.nights.history import (
    History,
    add_night,
    open_history,
    require_after,
    require_new_benchmarks,
    writable_history,
)
from pipebench.track.nights.night import CLOCKS, Night, SubjectNight


def prepare(folder: Path, now: datetime, imported: BenchmarkFile | None = None) -> History:
    """The history that a night is to be added to, checked before anything is measured.

    Raises PipebenchError: as `open_history`, a clock behind the last night, benchmarks that are there already.
    """
    history = open_history(folder)
    nights = history.of_class(this_machine())
    if nights:
        require_after(nights[-1], now, CLOCKS)
    if imported is not None:
        require_new_benchmarks(nights, imported.at)
    return history


def record(
    host: Host,
    request: Request | None,
    history: History,
    budget_s: float,
    revision: str = "",
    imported: BenchmarkFile | None = None,
    watcher: NightWatcher | None = None,
) -> Night:
    """Measure a night (request None: import only) and add it to the history.

    Raises PipebenchError when it cannot be written, which is tried before anything is measured. A measurement that
    fails or is interrupted, by a request to end as well, raises too, but only after the night was added with what
    there is: benchmarks, and the subjects that ran. Where it cannot be added in the end, the watcher has it.
    """
    machine, began = this_machine(), load_counters()
    measured: tuple[SubjectNight, ...] = ()
    plans: list[Plan] = []
    notices: list[str] = []
    failure: PipebenchError | KeyboardInterrupt | None = None
    spent_s = 0.0
    if request is not None:
        writable_history(history.folder)
        measurement = Measurement(host, request, budget_s, watcher)
        failure = _measure(measurement, history.of_class(machine))
        measured, spent_s = measurement.subject_nights(), measurement.spent_s
        notices = [*_left_out(host), *measurement.notices, *_unsteady(measured)]
        if failure is not None:
            notices.append(f"the measurement ended early: {str(failure) or 'interrupted'}")
        plans = measurement.plans
    night = Night(
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        revision=revision,
        pipebench=__version__,
        seed=request.seed if request else 0,
        budget_s=budget_s,
        spent_s=round(spent_s, 1),
        weather=machine_load(began, load_counters()),
        measured=measured,
        benchmarks=imported.benchmarks if imported else (),
        benchmarks_at=imported.at if imported else "",
        notices=(*notices, *(imported.notices if imported else ())),
    )
    try:
        night = add_night(history.folder, machine, night, plans, measured=True)
    except PipebenchError:
        if watcher is not None:
            watcher.not_added(night)
        raise
    if failure is not None:
        raise failure
    return night


def _measure(measurement: Measurement, before: Sequence[Night]) -> PipebenchError | KeyboardInterrupt | None:
    """All phases of a night; what ended them early, so that what was measured until then can be kept."""
    try:
        with requests_interrupt():
            measurement.first_pass()
            measurement.rounds()
            measurement.confirm(suspicion(before))
    except (PipebenchError, KeyboardInterrupt) as error:
        return error
    return None


def _left_out(host: Host) -> list[str]:
    """Plugins that do not load: their planners are missing tonight where none was asked for by name."""
    lost = (each for each in host.troubles if each.kind in ("plugin", "hook", "component"))
    return [f"plugin {each.provider} is left out: {each.why}" for each in lost]


def _unsteady(measured: Sequence[SubjectNight]) -> list[str]:
    """A planner that does not repeat itself cannot be tracked exactly: said."""
    return [
        f"{each.subject.label}: two runs of this night differ in {', '.join(each.unsteady)}"
        for each in measured
        if each.unsteady
    ]
