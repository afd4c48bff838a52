"""A plan in 80 columns: nothing wraps, operators beside the figures or below them."""

import io
import re

import msgspec
import pytest
from rich.console import Console

from pipebench.check import check_plan, check_schedule
from pipebench.domain.problem import Problem
from pipebench.report.text.plans import print_plan, print_score, split_rows
from tests.builders import chain_problem, cluster, stages_plan
from tests.check.orders import finite, gpipe
from tests.report.printed import printed
from tests.report.rows import row

PLAN = stages_plan([[0, 1, 2], [3]])


def named(prefix: str) -> Problem:
    """Four operators with long names."""
    text = msgspec.json.encode(chain_problem([1] * 4, [2] * 4, cluster(2), mode="sync", saved=[10**6] * 4))
    return msgspec.json.decode(re.sub(rb'"op(?=\d)', b'"' + prefix.encode(), text), type=Problem)


@pytest.mark.parametrize(("prefix", "width", "beside"), [("op", 90, True), ("branches.0.layers.", 80, False)])
def test_operators_are_named_by_first_last_and_number(prefix: str, width: int, beside: bool) -> None:
    problem = named(prefix)
    plan = msgspec.structs.replace(
        PLAN,
        stages=tuple(
            msgspec.structs.replace(s, operators=tuple(name.replace("op", prefix) for name in s.operators))
            for s in PLAN.stages
        ),
    )
    out = io.StringIO()
    verdict = check_schedule(problem, plan, finite(plan, [gpipe(1)] * 2))
    assert verdict.status == "valid"
    print_plan(Console(file=out, width=width), problem, plan, verdict)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(lines) == (3 if beside else 6)
    assert max(map(len, lines)) <= width
    assert [line.endswith(f"  {prefix}0 … {prefix}2 (3)") for line in lines].count(True) == 1
    assert lines[-1].endswith(f"  {prefix}3")
    assert "3.00 MB" in lines[1]


def test_each_split_stands_once_with_its_operators() -> None:
    problem = chain_problem([4] * 4, [8] * 4, cluster(2), mode="sync", mini_batch=4)
    (whole,) = stages_plan([[0, 1, 2, 3]], micro_batch=4).stages
    cut, other = {"batch": 2}, {"batch": 2, "none": 1}
    stage = msgspec.structs.replace(whole, devices=(0, 1), tensor_parallel=2, sharding=(cut, {}, cut, other))
    plan = msgspec.structs.replace(PLAN, stages=(stage,))
    assert split_rows(plan) == [["0", "batch/2", "op0 … op3 (3)"], ["0", "whole", "op1"]]
    stage = msgspec.structs.replace(stage, sharding=(cut, {}, cut, cut))
    plan = msgspec.structs.replace(PLAN, stages=(stage,))
    out = io.StringIO()
    verdict = check_schedule(problem, plan, finite(plan, [gpipe(1)]))
    print_plan(Console(file=out, width=80), problem, plan, verdict)
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[2:] == ["stage split operators", "0 batch/2 op0 … op3 (3)", "0 whole op1"]
    unsplit = io.StringIO()
    print_plan(Console(file=unsplit, width=80), problem, stages_plan([[0, 1, 2, 3]], micro_batch=4), verdict)
    assert "split" not in unsplit.getvalue()


def test_replicas_in_turn_are_named() -> None:
    problem = chain_problem([4] * 2, [8] * 2, cluster(3), mode="sync", mini_batch=4)
    plan = stages_plan([[0], [1]], replicas=[2, 1])
    plan = msgspec.structs.replace(
        plan, stages=(msgspec.structs.replace(plan.stages[0], replicas="round_robin"), plan.stages[1])
    )
    out = io.StringIO()
    print_plan(Console(file=out, width=100), problem, plan, check_plan(problem, plan))
    assert out.getvalue().splitlines()[-1] == "replicas of stage 0 take whole micro-batches in turn"


def test_only_order_edges_that_no_tensor_takes_are_named() -> None:
    problem = chain_problem([4] * 3, [8] * 3, cluster(3), mode="sync")
    for edges, named in (([(0, 1), (1, 2)], False), ([(0, 1), (0, 2)], True)):
        plan = stages_plan([[0], [1], [2]], order_edges=edges)
        out = io.StringIO()
        print_plan(Console(file=out, width=100), problem, plan, check_plan(problem, plan))
        assert ("0>2" in out.getvalue()) == named
        assert "0>1" not in out.getvalue()


def test_words_about_a_plan_go_on_below_where_they_began() -> None:
    text = printed(print_score, row("a", notices=("every step of the search in turn " * 4,)), width=50)
    *_, first, second, third, fourth = text.splitlines()
    assert first.startswith("notice     every step")
    for line in (second, third, fourth):
        assert re.match(r" {11}\S", line)
    assert max(map(len, text.splitlines())) <= 50


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"search_cpu_s": 0.05, "search_cold_s": 2.0}, "50.0 ms CPU, 2.00 s the first time"),
        ({"search_cpu_s": None}, "-"),
    ],
)
def test_a_search_that_nobody_timed_has_no_figure(times: dict[str, float | None], said: str) -> None:
    lines = printed(print_score, row("a", **times)).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if "search" in line] == [said]


def test_on_a_narrow_console_no_operator_is_cut_and_a_line_says_which_stage_it_is() -> None:
    prefix = "branches.0.layers.attention."
    problem = named(prefix)
    stages = tuple(
        msgspec.structs.replace(each, operators=tuple(name.replace("op", prefix) for name in each.operators))
        for each in PLAN.stages
    )
    plan = msgspec.structs.replace(PLAN, stages=stages)
    out = io.StringIO()
    verdict = check_schedule(problem, plan, finite(plan, [gpipe(1)] * 2))
    print_plan(Console(file=out, width=40), problem, plan, verdict)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert "stage 0" in lines
    assert f"{prefix}0 … {prefix}2 (3)".replace(" ", "") in "".join("".join(lines).split())
    assert max(map(len, lines)) <= 40
