"""The judges on rows made by hand: each claim can hold, fail and depend, and infeasible cells are counted."""

import random

from pipebench.domain.artefact import Finding, Result
from pipebench.hooks.reproduction import Reproduction
from pipebench_madpipe.figures.fig6 import PeriodsByMemory
from pipebench_madpipe.figures.fig7 import PeriodsOverMadPipe
from pipebench_madpipe.figures.fig8 import SpeedupsByDevices
from tests.plugins.madpipe.figures.periods import along_memory, result, results

FIGURES: tuple[Reproduction, ...] = (PeriodsByMemory(), PeriodsOverMadPipe(), SpeedupsByDevices())


def judged(
    figure: PeriodsByMemory | PeriodsOverMadPipe | SpeedupsByDevices, made: list[Result]
) -> dict[str, Finding]:
    return {finding.claim.name: finding for finding in figure.judge(made)}


def test_routinely_is_half_of_the_cells() -> None:
    made = results(along_memory(released=[3.0, 2.4, 1.1, 1.0], improved=[2.0, 2.0, 1.0, 1.0]))
    found = judged(PeriodsByMemory(), made)["routinely 20 % larger"]
    assert (found.judgement, found.value) == ("holds", 0.5)
    less = results(along_memory(released=[3.0, 2.3, 1.1, 1.0], improved=[2.0, 2.0, 1.0, 1.0]))
    found = judged(PeriodsByMemory(), less)["routinely 20 % larger"]
    assert (found.judgement, found.value) == ("does not hold", 0.25)


def test_a_claim_that_holds_for_one_reading_only_depends_and_says_on_which() -> None:
    made = results(along_memory(released=[4.0, 4.0], decreasing=[2.0, 2.0], improved=[2.0, 2.0]))
    found = judged(PeriodsByMemory(), made)["up to two or three times"]
    assert found.judgement == "depends"
    holds, _, not_ = found.reason.partition("not for")
    assert "released (E2)" in holds
    assert "decreasing (E1)" in not_
    assert found.value == 1.0


def test_where_one_has_no_schedule_the_ratio_leaves_it_out_and_the_count_does_not() -> None:
    made = results(along_memory(released=[None, None, 3.0], improved=[2.0, None, 2.0]))
    (line,) = judged(PeriodsByMemory(), made)["routinely 20 % larger"].measured
    assert "(1 cells, 1 of them >= 1.2, largest 1.50; 1 more infeasible)" in line


def test_what_cannot_be_scheduled_at_all_is_told_beside_the_optimism() -> None:
    made = results(along_memory(released=[None, 3.0], improved=[2.0, 2.0]))
    at: dict[str, str | float] = {"network": "resnet50", "devices": 4.0, "memory_gb": 4.0, "bandwidth_gb_s": 12.0}
    made = [each for each in made if each.cell.at != at | {"series": "released"}]
    made.append(result(at | {"series": "released"}, None, 0.5))
    found = judged(PeriodsByMemory(), made)["PipeDream's estimate is optimistic"]
    assert found.judgement == "holds"
    assert found.measured == (
        "PipeDream, memory released (E2): 2.00 (1 cells; 1 more cannot be scheduled at all)",
    )


def test_estimates_that_rise_with_memory_are_found() -> None:
    made = results(along_memory(released=[4.0, 3.0, 3.5], improved=[2.0, 2.0, 2.0]))
    found = judged(PeriodsByMemory(), made)
    assert found["estimates never rise with memory"].judgement == "does not hold"
    assert found["PipeDream's schedules are the more erratic"].judgement == "holds"
    calm = judged(PeriodsByMemory(), results(along_memory(released=[4.0, 3.0, 3.0], improved=[2.0, 2.0, 2.5])))
    assert calm["estimates never rise with memory"].judgement == "holds"
    assert calm["PipeDream's schedules are the more erratic"].judgement == "does not hold"


def test_madpipe_s_own_estimate_needs_the_paper_s_variant() -> None:
    name = "MadPipe expects more and gets less"
    without = judged(PeriodsByMemory(), results(along_memory(released=[4.0], improved=[2.0])))[name]
    assert (without.judgement, without.measured) == ("claim only", ())
    place = ("resnet50", 4, 4.0, 12.0)
    made = results({place: {"released": (4.0, 1.0), "paper": (3.0, 2.0)}})
    assert judged(PeriodsByMemory(), made)[name].judgement == "holds"
    made = results({place: {"released": (4.0, 1.0), "paper": (5.0, 2.0)}})
    assert judged(PeriodsByMemory(), made)[name].judgement == "does not hold"


def test_consistently_is_every_network_and_every_memory_below_10_gb() -> None:
    cells = {
        (network, devices, memory, 12.0): {"released": (ratio, 1.0), "improved": (1.0, 1.0)}
        for network, devices, memory, ratio in (
            ("resnet50", 2, 4.0, 2.0),
            ("resnet50", 4, 4.0, 0.8),
            ("resnet50", 2, 8.0, 1.3),
            ("densenet121", 2, 8.0, 1.25),
            ("resnet50", 2, 12.0, 1.1),
        )
    }
    found = judged(PeriodsOverMadPipe(), results(cells))["over 20 % below 10 GB"]
    assert found.judgement == "holds"
    assert found.value == 1.25
    worse = {**cells, ("densenet121", 4, 8.0, 12.0): {"released": (1.0, 1.0), "improved": (1.0, 1.0)}}
    found = judged(PeriodsOverMadPipe(), results(worse))["over 20 % below 10 GB"]
    assert found.judgement == "does not hold"
    assert "densenet121, 8 GB" in found.measured[0]


def test_a_gain_that_grows_with_memory_is_not_what_the_paper_says() -> None:
    name = "a gain in a wide range, more so with little memory"
    for low, high, judgement in ((1.5, 1.2, "holds"), (1.2, 1.5, "does not hold"), (0.9, 0.8, "does not hold")):
        made = results(along_memory(released=[low, low, high, high], improved=[1.0] * 4))
        assert judged(PeriodsOverMadPipe(), made)[name].judgement == judgement


def test_speedups_of_figure_8() -> None:
    cells = {
        ("resnet50", devices, memory, bandwidth): {
            "improved": (8.0 / devices * (2.0 if memory < 12 else 1.0), 1.0),
            "released": (8.0 / devices * 3, 1.0),
        }
        for devices in (2, 4, 8)
        for memory in (6.0, 12.0)
        for bandwidth in (12.0, 24.0)
    }
    found = judged(SpeedupsByDevices(), results(cells, {"resnet50": 8.0}))
    good = found["good scalability with large memory"]
    assert (good.judgement, good.value) == ("holds", 1.0)
    assert found["MadPipe scales better than PipeDream"].judgement == "holds"
    assert found["less memory, less speedup"].judgement == "depends"
    assert found["bandwidth changes little"].judgement == "holds"
    (panel, *_) = SpeedupsByDevices().series(results(cells, {"resnet50": 8.0})).panels
    curve = next(curve for curve in panel.curves if curve.label == "MadPipe, improved")
    assert curve.points == ((2.0, 1.0), (4.0, 2.0), (8.0, 4.0))
    slower = {**cells, ("resnet50", 8, 12.0, 12.0): {"improved": (9.0, 9.0)}}
    found = judged(SpeedupsByDevices(), results(slower, {"resnet50": 8.0}))
    assert found["good scalability with large memory"].judgement == "does not hold"


def test_nothing_run_is_claim_only_for_all() -> None:
    for figure in FIGURES:
        assert [f.claim for f in figure.judge([])] == list(figure.claims)
        assert {f.judgement for f in figure.judge([])} == {"claim only"}
        assert figure.series([]).panels == ()


def test_a_judge_is_pure_and_does_not_mind_the_order() -> None:
    made = results(along_memory(released=[4.0, 3.0, None], decreasing=[2.0, 2.2, 2.0], improved=[2.0, 1.0, 1.0]))
    mixed = made[:]
    random.Random(0).shuffle(mixed)
    for figure in FIGURES:
        assert figure.judge(made) == figure.judge(mixed) == figure.judge(made)


def test_trouble_is_told_and_is_not_taken_for_infeasible() -> None:
    made = results(along_memory(released=[3.0], improved=[2.0]))
    at: dict[str, str | float] = {"network": "resnet50", "devices": 4.0, "memory_gb": 8.0, "bandwidth_gb_s": 12.0}
    made.append(result(at | {"series": "paper"}, None, None, "timeout"))
    figure = PeriodsByMemory().series(made)
    assert figure.notes == ("1 x paper: timeout: does not fit",)
    assert sum(len(curve.infeasible) for panel in figure.panels for curve in panel.curves) == 0


def test_figure_6_draws_estimates_dashed_and_counts_what_is_infeasible() -> None:
    made = results(along_memory(released=[None, 3.0], improved=[2.0, 1.0]))
    (panel,) = PeriodsByMemory().series(made).panels
    assert [(c.label, c.kind, c.points, c.infeasible) for c in panel.curves] == [
        ("PipeDream, memory released (E2): estimate", "estimate", ((8.0, 1500.0),), ()),
        ("PipeDream, memory released (E2)", "schedule", ((8.0, 3000.0),), (4.0,)),
        ("MadPipe, improved", "schedule", ((4.0, 2000.0), (8.0, 1000.0)), ()),
    ]
    assert panel.curves[0].colour == panel.curves[1].colour != panel.curves[2].colour


def test_figure_7_keeps_a_contender_that_is_never_feasible() -> None:
    made = results(along_memory(p=[None, None], released=[3.0, 2.0], improved=[2.0, 1.0]))
    (panel,) = PeriodsOverMadPipe().series(made).panels
    assert [(c.points, c.infeasible) for c in panel.curves] == [
        ((), (4.0, 8.0)),
        (((4.0, 1.5), (8.0, 2.0)), ()),
    ]
