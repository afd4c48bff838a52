"""The judgement of a whole history: verdict, exit code, what is said about machines, clocks and missing nights."""

from datetime import timedelta
from pathlib import Path

from pipebench.domain.errors import ExitCode
from pipebench.domain.value import digest
from pipebench.track.judgement.acknowledgements import Acknowledgement
from pipebench.track.judgement.judgement import Judgement, judge
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.history import add_night, open_history
from pipebench.track.nights.night import Benchmark, Night
from tests.builders import stages_plan
from tests.track.made_nights import FIRST, MACHINE, OTHER, add_nights, measured, night, paired, subject


def judged(folder: Path, *nights: Night, **options: object) -> Judgement:
    add_nights(folder, MACHINE, nights)
    return judge(open_history(folder), **options)  # type: ignore[arg-type]


def test_nothing_changed_is_steady(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0), night(1))
    assert (found.verdict, found.exit_code, found.nights) == ("steady", ExitCode.OK, 2)


def test_a_worsening_fails_until_it_is_acknowledged(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0), night(1, measured(exact={"work.states": 11})))
    assert (found.verdict, found.exit_code) == ("worse", ExitCode.CONDITION_FAILED)
    known = [Acknowledgement(event=found.events[0].identity, reason="larger class")]
    accepted = judge(open_history(tmp_path), known)
    assert (accepted.verdict, accepted.events[0].state) == ("steady", "acknowledged")
    assert accepted.events[0].reason == "larger class"


def test_an_improvement_does_not_fail(tmp_path: Path) -> None:
    assert judged(tmp_path, night(0), night(1, measured(exact={"work.states": 9}))).verdict == "steady"


def test_a_night_without_measurements_fails_with_its_own_code(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0), night(1, measured=()))
    assert (found.verdict, found.exit_code) == ("nothing measured", ExitCode.NOTHING_RAN)


def test_no_history_measured_nothing(tmp_path: Path) -> None:
    assert judged(tmp_path / "none").exit_code == ExitCode.NOTHING_RAN


def test_an_imprecise_night_is_said_and_does_not_fail(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0, measured(paired=paired(5.0, imprecise=True))))
    assert (found.verdict, found.exit_code) == ("imprecise", ExitCode.OK)


def test_a_machine_not_seen_before_is_said_and_counters_are_judged_all_the_same(tmp_path: Path) -> None:
    add_night(tmp_path, MACHINE, night(0, measured(5.0)))
    add_night(tmp_path, OTHER, night(1, measured(9.0, exact={"work.states": 11})))
    found = judge(open_history(tmp_path))
    assert "a machine not seen before: 4 x Other CPU" in found.notices[0]
    assert found.verdict == "worse"
    assert found.speeds[0].state == "not enough history (0 of 30)"


def test_what_was_not_measured_tonight_is_said(tmp_path: Path) -> None:
    both = measured(), measured(subject=subject("other"))
    found = judged(tmp_path, night(0, *both), night(1, both[0]))
    assert any("not measured tonight" in notice and "other on tiny" in notice for notice in found.notices)


def test_what_is_no_longer_measured_is_said_for_thirty_nights(tmp_path: Path) -> None:
    """A planner that is gone, as its plugin no longer loads, becomes neither slower nor worse: nothing fails."""
    both, said = (
        (measured(), measured(subject=subject("other"))),
        "not measured tonight, last on 2026-01-01: other",
    )
    nights = [night(0, *both), *(night(number, both[0]) for number in range(1, 31))]
    assert any(notice.startswith(said) for notice in judged(tmp_path / "30", *nights).notices)
    assert not any("not measured" in notice for notice in judged(tmp_path / "31", *nights, night(31)).notices)


def test_missing_nights_and_an_old_last_night_are_said(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0), night(3), now=FIRST + timedelta(days=8))
    assert found.notices[0] == "the last night is of 2026-01-04, 5 days ago"
    assert "2 nights are missing between 2026-01-01 and 2026-01-04" in found.notices


def test_a_night_in_the_future_is_said(tmp_path: Path) -> None:
    found = judged(tmp_path, night(3), now=FIRST)
    assert found.notices[0].startswith("two clocks: the last night is dated 2026-01-04")


def test_an_acknowledgement_of_nothing_is_said(tmp_path: Path) -> None:
    found = judged(tmp_path, night(0), known=[Acknowledgement(event="00000000", reason="x")])
    assert found.notices == ("acknowledged.toml names an event that the history does not have: 00000000",)


def test_the_difference_of_two_plans_is_there(tmp_path: Path) -> None:
    plans = stages_plan([[0, 1], [2]]), stages_plan([[0], [1, 2]])
    nights = [
        night(i, measured(exact={"plan": digest(plan), "simulated_ns": 10**9 + 1000 * i}))
        for i, plan in enumerate(plans)
    ]
    add_nights(tmp_path, MACHINE, nights, plans)
    found = judge(open_history(tmp_path))
    assert not found.plans[found.events[0].identity].structure.same


def test_times_of_all_machines_are_judged(tmp_path: Path) -> None:
    third = MachineClass(system="Linux", machine="x86_64", cpu="Third", cpus="4")
    for machine in (MACHINE, third):
        steady = [night(number, measured(5.0 + 0.01 * (number % 3))) for number in range(31)]
        add_nights(tmp_path, machine, [*steady, night(31, measured(7.0, 7.1))])
    found = judge(open_history(tmp_path))
    assert {event.machine for event in found.events} == {MACHINE.name, third.name}
    assert found.verdict == "worse"


def test_wall_time_and_memory_are_information(tmp_path: Path) -> None:
    usual = {"search_wall_s": 1.0, "search_peak_bytes": 1e9}
    nights = [night(i, measured(information=usual)) for i in range(6)]
    far = {"search_wall_s": 1.6, "search_peak_bytes": 1.2e9}
    found = judged(tmp_path, *nights, night(6, measured(information=far)))
    assert len(found.information) == 2
    assert found.verdict == "steady"
    near = {"search_wall_s": 1.4, "search_peak_bytes": 1.05e9}
    assert judged(tmp_path, night(7, measured(information=near))).information == ()


def test_a_benchmark_far_slower_is_information(tmp_path: Path) -> None:
    times = (1.0, 1.1, 1.0, 0.9, 1.0, 1.6)
    nights = [
        night(i, benchmarks=(Benchmark(name="b", seconds={"min": t, "median": t}),)) for i, t in enumerate(times)
    ]
    found = judged(tmp_path, *nights)
    assert found.information == ("b: 1.60 s, usually 1.00 s",)
    assert [(each.name, each.seconds) for each in found.benchmarks] == [("b", times)]
    assert found.verdict == "steady"
