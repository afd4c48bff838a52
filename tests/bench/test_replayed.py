"""The error of a simulation is parted: with the measured times of tasks, what is left is not the profile's."""

from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench import score
from pipebench.bench.execution import gap
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench.report.text.measurements.runs import execution_lines
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import one_f_one_b_schedule

PROBLEM = chain_problem([3, 3], [5, 5], cluster(4), weights=[40, 40], mode="sync", mini_batch=8)
PLAN = stages_plan([[0], [1]], micro_batch=2, replicas=[2, 2])
SCHEDULE = one_f_one_b_schedule(PROBLEM, PLAN)
SIMULATED_S, REPLAYED_S, MEASURED_S = 80e-9, 160e-9, 200e-9
"""(4 + 1) tasks of 8 ns each way and a ring of 40 ns; the same with tasks that take three times as long."""


def measured() -> Trace:
    """Tasks take three times as long, the mini-batch 200 ns."""
    trace = simulate(PROBLEM, PLAN, SCHEDULE)
    ends = tuple(3 * end - 2 * start for start, end in zip(trace.start_ns, trace.end_ns, strict=True))
    return replace(trace, origin="measured", end_ns=ends, total_ns=200)


class Services:
    """An executor that has run the plan."""

    def execute(self, name: str, *_: object) -> Trace:
        return measured() if name == "real" else simulate(PROBLEM, PLAN, SCHEDULE)


def scored(executors: tuple[str, ...] = ("simulate", "real")) -> tuple[dict[str, object], list[str]]:
    """The fields of a row, and notices."""
    fields, _, notices = score.time_fields(
        Services(),  # type: ignore[arg-type]
        PROBLEM,
        PLAN,
        SCHEDULE,
        executors,
        {"bound_s": None},
    )
    return fields, notices


def figures() -> dict[str, object]:
    fields, _ = scored()
    return {name: fields.get(name) for name in ("simulated_s", "replayed_s", "measured_s")}


BOTH_ORDERS = pytest.mark.parametrize("executors", [("simulate", "real"), ("real", "simulate")])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"total_ns": 0}, "total_ns is 0, its tasks take "),
        ({"total_ns": 10}, "total_ns is 10, its tasks take "),
        (
            {"lane": (), "stage": (), "micro_batch": (), "kinds": "", "start_ns": (), "end_ns": ()},
            "B of stage 0, micro-batch 0 ran 0 times",
        ),
    ],
)
def test_a_trace_that_shows_no_such_run_counts_for_nothing(
    change: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor is a plugin: what it did not run, or ran in no time, is no measurement."""
    monkeypatch.setattr(Services, "execute", lambda *_: replace(measured(), **change))
    fields, notices = scored(("real",))
    assert "measured_s" not in fields
    (notice,) = notices
    assert notice.startswith(f"executor real: its trace is of no such run: {why}")


def test_a_row_has_all_three() -> None:
    assert figures() == pytest.approx(
        {"simulated_s": SIMULATED_S, "replayed_s": REPLAYED_S, "measured_s": MEASURED_S}
    )


@BOTH_ORDERS
def test_a_run_that_others_disturbed_has_no_error(
    executors: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured stays, and who disturbed it is said."""
    monkeypatch.setattr(score, "disturbance", lambda *_: ["others used 1.0 of 2 cores"])
    fields, notices = scored(executors)
    assert fields["measured_s"] == pytest.approx(MEASURED_S)
    assert fields.get("measured_error") is None
    assert fields.get("replayed_s") is None
    assert notices == ["executor real: others used 1.0 of 2 cores"]


@BOTH_ORDERS
def test_an_undisturbed_run_has_its_error(executors: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "disturbance", lambda *_: [])
    fields, _ = scored(executors)
    assert fields["measured_error"] == pytest.approx(-0.6)


def test_a_plan_that_only_runs_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> Trace:
        raise UnsupportedProblem("not simulated")

    monkeypatch.setattr(score, "simulate", refused)
    monkeypatch.setattr(score, "replayed_s", refused)
    found = figures()
    assert found["measured_s"] == pytest.approx(MEASURED_S)
    assert found["replayed_s"] is None


def test_an_execution_has_both_errors() -> None:
    made = gap(
        PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=SCHEDULE),
        SCHEDULE,
        simulate(PROBLEM, PLAN, SCHEDULE),
        measured(),
    )
    assert (made.error, made.replayed_error) == pytest.approx((-0.6, -0.2))
    assert [(each.stage, each.simulated_s, each.measured_s) for each in made.all_reduces] == [
        (0, pytest.approx(40e-9), pytest.approx(120e-9)),
        (1, pytest.approx(40e-9), pytest.approx(120e-9)),
    ]


def test_the_most_memory_of_each_device_stands_beside_the_plan_s() -> None:
    """A device that the run did not watch is left out; so is a run that measured nothing."""
    simulated = simulate(PROBLEM, PLAN, SCHEDULE)
    (planned,) = [each.peak_bytes for each in simulated.memory if each.device == 1]
    watched = MemoryTimeline(device=1, time_ns=(0, 5, 9), bytes=(1, 2 * planned, planned))
    empty = MemoryTimeline(device=0, time_ns=(0,), bytes=(0,))
    made = gap(
        PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=SCHEDULE),
        SCHEDULE,
        simulated,
        replace(measured(), memory=(empty, watched)),
    )
    assert [(each.device, each.simulated_bytes, each.measured_bytes) for each in made.memory] == [
        (1, planned, 2 * planned)
    ]
    (line,) = [line for line in execution_lines(made, 80) if line.startswith("gpu1: at most")]
    assert line.endswith("measured, -50.0 %")


def test_a_disturbed_execution_has_none() -> None:
    made = gap(
        PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=SCHEDULE),
        SCHEDULE,
        simulate(PROBLEM, PLAN, SCHEDULE),
        measured(),
        ("of the executor",),
        ("others used 1.0 of 2 cores",),
    )
    assert (made.error, made.replayed_error) == (None, None)
    assert made.notices == ("of the executor", "others used 1.0 of 2 cores")
    text = "\n".join(execution_lines(made, 80))
    assert "off" not in text.splitlines()[0]
    assert "None" not in text
    assert "others used 1.0 of 2 cores" in text
