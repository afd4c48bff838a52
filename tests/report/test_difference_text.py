"""Differences in 80 columns."""

from msgspec.structs import replace

from pipebench.bench.difference.operands import PlanSide, ResultsSide
from pipebench.bench.difference.plans import compare_plans
from pipebench.bench.difference.results import compare_results
from pipebench.report.text.comparisons.differences import print_plan_difference, print_results_difference
from tests.bench.standings.made_rows import row
from tests.builders import chain_problem, cluster, stages_plan
from tests.report.printed import printed

PROBLEM = chain_problem(
    [10_000] * 4, [20_000] * 4, cluster(4), weights=[10**7] * 4, activations=[10**6] * 5, mode="sync"
)


def lines_of(before: PlanSide, after: PlanSide) -> list[str]:
    return printed(print_plan_difference, compare_plans(before, after)).splitlines()


def test_a_split_stage_with_its_times_and_weights() -> None:
    before = PlanSide("a.json", stages_plan([[0, 1], [2, 3]]), PROBLEM, None, "madpipe", "1f1b")
    after = PlanSide("b.json", stages_plan([[0, 1], [2], [3]]), PROBLEM, None, "graphpipe", "1f1b")
    lines = lines_of(before, after)
    assert lines[:2] == ["before  a.json (madpipe x 1f1b)", "after   b.json (graphpipe x 1f1b)"]
    stage = next(line for line in lines if line.startswith("1 "))
    assert " ".join(stage.split()) == "1 60.0 us -> 30.0 us 20.0 MB -> 10.0 MB 2.00 MB -> 1.00 MB"
    assert "  split: stage 1 -> 1, 2" in lines
    assert "  moved: 1 -> 2, 1 operator, 10.0 MB of weights: op3" in lines


def test_the_same_plan_is_said_to_be_the_same() -> None:
    side = PlanSide("a.json", stages_plan([[0, 1], [2, 3]]), PROBLEM)
    assert lines_of(side, side)[-1] == "  the plans are the same"
    listed = PlanSide("b.json", stages_plan([[1, 0], [2, 3]]))
    assert lines_of(side, listed)[-1] == "  the plans are the same, but for the order of operators in a stage"


def test_fields_choices_and_other_problems() -> None:
    plan = stages_plan([[0, 1], [2, 3]], in_flight=[2, 1])
    first = replace(plan.stages[0], devices=(0, 1), data_parallel=2, in_flight=0, choice=("tp2", "tp2"))
    changed = replace(plan, stages=(first, plan.stages[1]), order_edges=((0, 1),), routing="relay")
    lines = lines_of(
        PlanSide("a.json", plan, PROBLEM), PlanSide("b.json", changed, replace(PROBLEM, cluster=cluster(8)))
    )
    assert lines[2:] == [
        "  the problems differ, only structure is compared: devices 4 -> 8",
        "  stage 0: devices 0 -> 0-1, data parallel 1 -> 2, in flight 2 -> auto",
        "  op0, op1: choice plain -> tp2",
        "  plan: routing direct -> relay",
        "  order edges added: 0>1",
    ]


def test_long_names_wrap_at_80_columns() -> None:
    long = "a-folder-with-a-long-name/" * 5 + "plan.json"
    before = PlanSide(long, stages_plan([[0], [1], [2], [3]]), PROBLEM, None, "p" * 60, "s" * 60)
    text = "\n".join(lines_of(before, PlanSide(long, stages_plan([[0, 1, 2, 3]]))))
    assert max(map(len, text.splitlines())) <= 80
    assert "plan.json" in text


def test_results_show_what_changed_and_search_times_as_information() -> None:
    before = [row("a", "p", 1.0, memory_bytes=2 * 10**9, plan_id="x"), row("b", "p", 1.0), row("c[x=1]", "p", 1.0)]
    after = [
        row("a", "p", 1.1, memory_bytes=10**9, plan_id="y", search_cpu_s=1.0),
        row("b", "p", status="timeout"),
        row("c[x=1]", "p", 1.0, search_cpu_s=1.0),
        row("d", "p", 1.0),
        row("e", "p", 1.0),
    ]
    difference = compare_results(ResultsSide("one", before), ResultsSide("two", after))
    lines = printed(print_results_difference, difference).splitlines()
    assert lines[2] == "  1 same, 0 better, 2 worse, 0 changed, 0 only before, 2 only after"
    assert lines[3] == "sync: p on 4 x flat, mini-batch 16"
    assert lines[5].split() == ["a", "1f1b", "worse", "1.00", "s", "1.10", "s", "+10.0", "%"]
    assert lines[6].split() == ["b", "1f1b", "worse", "1.00", "s", "-", "-"]
    assert lines[7] == "  a: memory 2.00 GB -> 1.00 GB, another plan"
    assert lines[8] == "  b: status ok -> timeout"
    assert lines[9] == "  only after: sync: p on 4 x flat, mini-batch 16: d x 1f1b, e x 1f1b"
    assert lines[10] == "  search CPU, after / before: 2.00 (geometric mean of 2 trials, for information)"
