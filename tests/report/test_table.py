"""The comparison table: a block for each problem, both regimes side by side, notices once, failures, widths."""

import io
import re
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from pipebench.domain.row import Row
from pipebench.report.problem_blocks import ProblemBlock, cut_words, problem_blocks
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.comparison import failures, heading, print_rows
from tests.report.rows import row

LONG = "tensors that skip stages are passed on from stage to stage"


def lines_of(*rows: Row) -> list[str]:
    return lines_at(120, *rows)


def lines_at(width: int, *rows: Row) -> list[str]:
    out = io.StringIO()
    print_rows(Console(file=out, width=width, highlight=False), rows)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def sync_and_async(name: str, sync: float, other: float, **fields: Any) -> list[Row]:
    """The rows of one planner on one problem, of these samples/s; 200 are the bound."""
    return [
        row(
            name,
            regime=regime,
            problem_id=regime,
            throughput=speed,
            simulated_s=128 / speed,
            gap=200 / speed - 1,
            bound_s=0.64,
            **fields,
        )
        for regime, speed in (("sync", sync), ("async", other))
    ]


def heading_of(block: ProblemBlock) -> str:
    """The heading of a block that stands alone."""
    return heading(block, ProblemNames(block.rows))


@pytest.mark.parametrize(
    ("model", "profile", "shown"),
    [
        ("mmt", "mmt", "mmt on"),
        ("mmt[branches=8]", "mmt", "mmt[branches=8] on"),
        ("resnet50", "measured", "measured of resnet50 on"),
    ],
)
def test_the_heading_names_the_model_where_the_profile_does_not(model: str, profile: str, shown: str) -> None:
    (block,) = problem_blocks([row("a", model=model, profile=profile)])
    assert heading_of(block) == f"{shown} 8 x summit, mini-batch 128: no plan beats 256 samples/s (work)"


def test_the_heading_says_what_memory_is_lacking_where_no_plan_fits() -> None:
    lacking = {"status": "infeasible", "device_memory_bytes": 100_000_000, "bound_memory_bytes": 481_292_048}
    (block,) = problem_blocks([row("madpipe", **lacking), row("uniform", **lacking)])
    assert heading_of(block).endswith("mini-batch 128: every plan needs 0.481 GB on some device")
    (block,) = problem_blocks([row("madpipe", **lacking), row("uniform")])
    assert heading_of(block).endswith("no plan beats 256 samples/s (work)")


def test_sync_stands_first_whatever_row_is_first() -> None:
    (block,) = problem_blocks([row("madpipe", regime="async"), row("graphpipe", bound_s=1.0)])
    assert heading_of(block).endswith("no plan beats 128 samples/s (work) in sync, 256 samples/s (work) in async")


def test_the_heading_has_a_bound_for_each_regime_where_they_differ() -> None:
    rows = [row("a", bound_s=1.0, bound_kind="path"), row("a", regime="async", problem_id="q", bound_s=0.5)]
    (block,) = problem_blocks(rows)
    assert heading_of(block).endswith(
        ": no plan beats 128 samples/s (path) in sync, 256 samples/s (work) in async"
    )


def test_a_problem_is_one_block_and_a_planner_one_line_with_both_regimes() -> None:
    rows = [*sync_and_async("a", 150, 180), *sync_and_async("b", 160, 100)]
    other = [replace(each, workload_id="x", problem_id=f"x {each.regime}") for each in rows[:2]]
    lines = lines_at(100, *rows, *other)
    assert [line.split(" on ")[0] for line in lines if "no plan beats" in line] == ["mmt", "mmt"]
    words = [[word for word in line.split() if "█" not in word] for line in lines]
    assert [line[2:6] for line in words if line[:1] == ["a"]] == [["150", "75.0", "180", "90.0"]] * 2
    assert [line[2:6] for line in words if line[:1] == ["b"]] == [["160", "80.0", "100", "50.0"]]
    (best,) = [line for line in words if line[:1] == ["best:"]]
    assert best[1:9] == ["b", "|", "a", "-", "160", "80.0", "180", "90.0"]
    assert sum("not ranked against each other" in line for line in lines) == 1


def test_the_best_of_each_regime_is_bold() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=100)
    print_rows(console, [*sync_and_async("a", 150, 180), *sync_and_async("b", 160, 100)])
    bold = re.findall(r"\x1b\[1m *([\d.]+)", out.getvalue())
    assert [figure for figure in bold if figure in ("150", "180", "160", "100")] == ["180", "160", "160", "180"]


def test_the_yardstick_stands_last_and_is_never_the_best() -> None:
    lines = lines_at(100, *sync_and_async("a", 150, 180), *sync_and_async("y", 199, 199, yardstick=True))
    assert next(line for line in lines if line.startswith("y")).split()[:2] == ["y", "†"]
    assert not any(line.startswith("best") for line in lines)  # one planner is compared
    several = lines_at(
        100,
        *sync_and_async("a", 150, 180),
        *sync_and_async("b", 1, 1),
        *sync_and_async("y", 199, 199, yardstick=True),
    )
    assert [line.split()[0] for line in several if line[:1] in ("a", "b", "y")] == ["a", "b", "y", "best:"]
    assert "best: a" in "\n".join(several)


def test_what_failed_says_so_in_its_cell_and_why_below() -> None:
    failed = {"status": "infeasible", "reason": "it needs 25378230784 bytes", "throughput": None, "gap": None}
    lines = lines_of(
        row("a", **failed),
        row("a", regime="async", problem_id="q"),
        row("b", status="crashed", reason="boom"),
        row("c", **failed),
        row("d", status="unsupported", reason="never"),
    )
    cells = {line.split()[0]: line.split()[1:] for line in lines if line[:1] in ("a", "b", "c", "d")}
    assert cells["a"][:3] == ["-", "infeasible", "140"]
    assert cells["b"][:4] == ["-", "crashed", "not", "run"]
    assert cells["d"][:4] == ["-", "n/a", "not", "run"]
    assert [line for line in lines if line.startswith("  ")][-3:] == [
        "  a, c: it needs 25.4 GB",
        "  b: boom",
        "  d: never",
    ]


def test_a_trial_that_was_not_run_says_so_and_the_best_is_that_of_the_rows_that_are_there() -> None:
    a, b = sync_and_async("a", 150, 180), sync_and_async("b", 160, 100)
    shown = {line.split()[0]: line.split() for line in lines_at(60, *a, b[0]) if line[:1] in ("a", "b")}
    assert shown["b"][1:5] == ["160", "80.0", "not", "run"]
    assert shown["best:"][1:8] == ["b", "|", "a", "160", "80.0", "180", "90.0"]


def test_the_best_of_a_regime_without_a_plan_is_none() -> None:
    crashed = [row(name, regime="async", problem_id="async", status="crashed") for name in ("a", "b")]
    lines = lines_at(60, row("a", simulated_s=1.0), row("b", simulated_s=1.0), *crashed)
    (best,) = [line.split() for line in lines if line.startswith("best:")]
    assert best[:8] == ["best:", "a", "|", "-", "-", "140", "90.9", "-"]


def test_who_fails_for_two_reasons_has_each_with_its_regime() -> None:
    failed = {"status": "infeasible", "throughput": None, "gap": None}
    lines = lines_of(
        row("a", **failed, reason="too much"),
        row("a", **failed, reason="far too much", regime="async", problem_id="q"),
        row("b", **failed, reason="too much"),
    )
    assert [line for line in lines if line.startswith("  ")][-2:] == [
        "  a in sync, b: too much",
        "  a in async: far too much",
    ]


def test_a_notice_is_printed_once_with_whom_it_concerns() -> None:
    lines = lines_at(
        200,
        row("madpipe", notices=(LONG, "only contiguous")),
        row("uniform"),
        row("madpipe", problem_id="q", workload_id="v", notices=(LONG,)),
        row("exact", problem_id="q", workload_id="v", notices=(LONG,)),
        row("uniform", problem_id="r", workload_id="u"),
    )
    assert lines[-2:] == [f"1  madpipe, exact: {LONG}", "2  madpipe: only contiguous"]
    marks = [(line.split()[0], line.split()[-1]) for line in lines if line[:4] in ("madp", "exac")]
    assert marks == [("madpipe", "1,2"), ("madpipe", "1"), ("exact", "1")]


def test_notices_that_differ_in_figures_alone_are_one_without_them() -> None:
    lines = lines_at(
        200,
        row("a", notices=("12 layers for 16 devices of resnet50 (1f1b*)",)),
        row("b", notices=("7 layers for 8 devices of resnet50 (1f1b*)",)),
        row("c", notices=("only once: 3 layers",)),
    )
    assert lines[-2:] == [
        "1  a, b: … layers for … devices of resnet50 (1f1b*)",
        "2  c: only once: 3 layers",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_no_line_is_too_long_and_no_word_is_split(width: int) -> None:
    name = "a-planner[of=which,more=is-said]"
    rows = [*sync_and_async(name, 150, 180, notices=(LONG,)), *sync_and_async("graphpipe", 99, 98)]
    lines = lines_at(width, *rows, *sync_and_async("data-parallel", 77, 78, yardstick=True))
    assert max(map(len, lines)) <= width
    words = set(" ".join(lines).split())
    assert {"graphpipe", "data-parallel", "150", "180", "98.0", "77.0", *LONG.split()} <= words | {"98.0", "77.0"}
    assert {"[of=which,more=is-said]", "a-planner"} <= words or name in words


def test_more_columns_where_there_is_room_and_the_others_are_named() -> None:
    rows = sync_and_async("a", 150, 180, memory_bytes=8_010_000_000, device_memory_bytes=16 * 10**9, bubble=0.1,
                          class_bound_s=0.8, class_bound_scope="mine", claimed_s=1.0, stages=8, width=4,
                          replicas=(1,) * 8, devices_used=8)  # fmt: skip
    wide, narrow = lines_at(200, *rows), lines_at(60, *rows)
    line = next(line for line in wide if line.startswith("a"))
    assert "8 stages, 4 branches" in line
    assert "8.01" in line
    assert "10.0 %" in line
    assert "GB of 16.0" in wide[2]
    assert "6.7 %" not in line  # of async, below its class bound: none of its figures is negative
    assert "0.0 %" in line
    assert not any("no room for" in each for each in wide)
    assert "no room for cut, memory, bubble, class gap, claimed, scheduler:" in " ".join(" ".join(narrow).split())


@pytest.mark.parametrize(("recomputes", "mark"), [(None, " ‡"), (False, "")])
def test_a_gap_to_a_bound_of_the_planner_is_told_from_one_of_the_suite(recomputes: bool | None, mark: str) -> None:
    """Nobody has looked at a planner's proof."""
    given = {"throughput": 100.0, "simulated_s": 1.28, "class_bound_s": 1.024, "class_bound_scope": "all plans"}
    lines = lines_at(200, row("a", **given, class_bound_recomputes=recomputes))
    (line,) = (each for each in lines if each.startswith("a "))
    assert f"25.0 %{mark} " in line
    said = "‡ above a bound that the planner says it proved; the suite has not checked it"
    assert (said in lines) == bool(mark)


def test_each_class_of_plans_has_a_line_with_its_bound() -> None:
    plain, again = (
        row(
            name,
            simulated_s=1.0,
            class_bound_s=bound_s,
            class_bound_kind="pipeline",
            class_bound_recomputes=recomputes,
        )
        for name, bound_s, recomputes in (("a", 0.8, False), ("b", 0.64, True))
    )
    planners = row("c", simulated_s=1.0, class_bound_s=0.9, class_bound_scope="mine")
    lines = lines_of(plain, again, planners)
    assert [line for line in lines if "stages in a row" in line] == [
        "  no plan of stages in a row beats 200 samples/s (pipeline)",
        "  no plan of stages in a row without recomputation beats 160 samples/s (pipeline)",
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"stages": 1, "replicas": (8,), "devices_used": 8}, "1 stage x 8"),
        ({"stages": 8, "replicas": (1,) * 8, "width": 4, "devices_used": 8}, "8 stages, 4 branches"),
        ({"stages": 3, "replicas": (5, 2, 1), "devices_used": 8}, "3 stages x 1-5"),
        ({"stages": 9, "replicas": (1,) * 9, "devices_used": 8}, "9 stages on 8 devices"),
        ({"stages": 6, "replicas": (1,) * 6, "devices_used": 6}, "6 stages, 2 idle"),
        ({"stages": 8, "replicas": (1,) * 8, "devices_used": 4}, "8 stages on 4 devices, 4 idle"),
        ({}, "-"),
    ],
)
def test_a_cut_in_words(fields: dict[str, Any], words: str) -> None:
    assert cut_words(row("a", **fields)) == words


@pytest.mark.parametrize(("measured", "tau"), [((3.0, 2.0, 1.0), "-1.00"), ((1.0, 3.0, 2.0), "0.33")])
def test_rank_agreement_stands_under_a_block_of_three_measured_plans(
    measured: tuple[float, ...], tau: str
) -> None:
    rows = [row(name, simulated_s=1.0 + n, measured_s=measured[n]) for n, name in enumerate("abc")]
    line = f"  rank agreement of simulated and measured times (Kendall's tau-b): {tau}, 3 plans"
    assert line in lines_of(*rows)
    assert not any("rank agreement" in each for each in lines_of(*rows[:2]))
    assert not any("rank agreement" in each for each in lines_of(*(row(name) for name in "abc")))


def test_what_is_left_with_the_measured_times_stands_under_a_block() -> None:
    rows = [
        row("a", simulated_s=1.0, measured_s=2.0, replayed_s=1.9),
        row("b", simulated_s=1.0, measured_s=1.0, replayed_s=1.1),
        row("c", simulated_s=1.0),
    ]
    start, end = "  with the measured times of tasks the simulation is ", " off (messages, all-reduces, idle time)"
    assert f"{start}-5.0 % to 10.0 %{end}" in lines_of(*rows)
    assert f"{start}-5.0 %{end}" in lines_of(rows[0], rows[2])
    assert not any(line.startswith(start) for line in lines_of(rows[2]))


def test_the_best_of_two_planners_has_no_cut_of_its_own_and_that_of_one_has() -> None:
    rows = [
        row("a", stages=8, simulated_s=1.0),
        row("a", regime="async", problem_id="q", stages=9, simulated_s=3.0),
        row("b", stages=2, simulated_s=2.0),
        row("b", regime="async", problem_id="q", stages=4, simulated_s=2.0),
    ]
    (best,) = (line for line in lines_at(140, *rows) if line.startswith("best: a | b"))
    assert "stages" not in best
    assert "8 | 9 stages" in "\n".join(lines_at(140, *rows))
    (best,) = (line for line in lines_at(140, *rows[::2]) if line.startswith("best: a"))
    assert "8 stages" in best


def test_the_name_of_a_planner_stands_once_before_its_reason() -> None:
    lacking = {"status": "infeasible", "reason": "uniform needs 2000000000 bytes on one device"}
    assert failures([row("uniform", **lacking)]) == ["  uniform: needs 2.00 GB on one device"]


def test_columns_are_left_out_before_figures_run_together() -> None:
    rows = sync_and_async("a", 1.0, 2.0, stages=2, memory_bytes=10**9, device_memory_bytes=16 * 10**9, bubble=0.1)
    for width in range(70, 130):
        (header,) = (line for line in lines_at(width, *rows) if line.startswith("planner"))
        assert re.search(r"\S (samples|GB|bubble)", header) is None, header
