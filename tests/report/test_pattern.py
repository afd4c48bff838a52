"""Patterns drawn: every operation where the schedule puts it, with its index shift; links; what wraps around."""

import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.report.pattern import PeriodPicture, pattern_lines, pattern_of, pattern_svg
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import scheduled, services


def three_stages(
    devices: tuple[tuple[int, ...], ...] = ((0,), (1,), (0,)),
) -> tuple[Problem, Plan, PeriodicSchedule]:
    """Stage 0 and 2 on device 0: F 10, B 20 each; 5 ns on each link and way; a pattern of 80 ns by hand."""
    problem = chain_problem([10] * 3, [20] * 3, cluster(2), activations=[0, 5, 5, 0])
    stages = tuple(
        Stage(operators=(f"op{position}",), devices=ids, micro_batch=1) for position, ids in enumerate(devices)
    )
    schedule = PeriodicSchedule(
        period_ns=80,
        stage=(0, 1, 2, 2, 1, 0),
        kinds="FFFBBB",
        start_ns=(0, 15, 30, 40, 65, 10),
        shift=(0, 0, 0, 0, 0, 1),
        source=(0, 1, 2, 1),
        target=(1, 2, 1, 0),
        transfer_kinds="FFBB",
        transfer_start_ns=(10, 25, 60, 5),
        transfer_shift=(0, 0, 0, 1),
    )
    return problem, Plan(stages=stages, placement="listed"), schedule


def told(pattern: PeriodPicture) -> dict[str, list[tuple[str, int, int]]]:
    return {row.label: [(b.label, b.start_ns, b.duration_ns) for b in row.blocks] for row in pattern.rows}


def test_stages_of_a_device_share_its_row_and_both_ways_their_link() -> None:
    pattern = pattern_of(*three_stages())
    assert told(pattern) == {
        "gpu0": [("F0[0]", 0, 10), ("B0[1]", 10, 20), ("F2[0]", 30, 10), ("B2[0]", 40, 20)],
        "gpu1": [("F1[0]", 15, 10), ("B1[0]", 65, 20)],
        "gpu0-gpu1": [("b0[1]", 5, 5), ("f0[0]", 10, 5), ("f1[0]", 25, 5), ("b1[0]", 60, 5)],
    }
    assert pattern.busy == (60 / 80, 30 / 80, 20 / 80)


def test_links_that_carry_both_ways_at_once_have_a_row_for_each() -> None:
    problem, plan, schedule = three_stages()
    full = chain_problem([10] * 3, [20] * 3, cluster(2, link_mode="full"), activations=[0, 5, 5, 0])
    del problem
    rows = told(pattern_of(full, plan, schedule))
    assert [label for label, _, _ in rows["gpu0>gpu1"]] == ["f0[0]", "b1[0]"]
    assert [label for label, _, _ in rows["gpu1>gpu0"]] == ["b0[1]", "f1[0]"]


def test_what_stays_on_a_device_is_on_no_link() -> None:
    pattern = pattern_of(*three_stages(((0,), (0,), (1,))))
    assert [label for label, _, _ in told(pattern)["gpu0-gpu1"]] == ["f1[0]", "b1[0]"]


def test_text_has_a_line_for_each_row_in_scale() -> None:
    period, gpu0, gpu1, link = pattern_lines(pattern_of(*three_stages()), columns=10 + 160 + 6)
    assert period == "period 80.0 ns"
    bars = gpu0[10:170]
    assert bars == "F0[0]===============B0[1]-----------------------------------F2[0]===============" + (
        "B2[0]-----------------------------------" + "." * 40
    )
    assert gpu0.endswith(" 75 %")
    assert gpu1[10:170].index("B1[0]") == 130
    assert link[10:170].count(">") == 2 * 5
    assert {len(line) for line in (gpu0, gpu1, link)} == {176}


def test_what_reaches_into_the_next_period_goes_on_at_the_left() -> None:
    """B1 runs from 65 to 85 of 80."""
    _, _, gpu1, _ = pattern_lines(pattern_of(*three_stages()), columns=10 + 160 + 6)
    bars = gpu1[10:170]
    assert bars.startswith("-" * 10 + ".")
    assert bars.endswith("B1[0]" + "-" * 25)


def test_narrow_blocks_show_less_and_lines_keep_their_width() -> None:
    lines = pattern_lines(pattern_of(*three_stages()), columns=20)[1:]
    assert len({len(line) for line in lines}) == 1
    assert lines[0].startswith("gpu0      F0B0[1]-F2B2[0].....")


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_1f1b_star_is_drawn_whole(stages: int) -> None:
    """The shares of the rows are the work of the stages over the period; all operations are there."""
    problem = chain_problem([7] * stages, [9] * stages, cluster(stages), activations=[0, *[3] * (stages - 1), 0])
    plan = stages_plan([(position,) for position in range(stages)])
    schedule = scheduled(problem, plan)
    assert isinstance(schedule, PeriodicSchedule)
    pattern = pattern_of(problem, plan, schedule)
    assert len(pattern.rows) == 2 * stages - 1
    model = CostModel(problem)
    for row, stage, busy in zip(pattern.rows, plan.stages, pattern.busy, strict=False):
        assert [block.kind for block in sorted(row.blocks, key=lambda b: b.kind)] == ["B", "F"]
        times = model.stage_times(stage)
        assert busy == pytest.approx((times.forward + times.backward) / schedule.period_ns)


def test_svg_has_a_box_for_every_part_and_labels_each_block_once() -> None:
    root = ET.fromstring(pattern_svg(pattern_of(*three_stages()), "three <stages>"))
    svg = "{http://www.w3.org/2000/svg}"
    boxes = [box.attrib["class"] for box in root.iter(f"{svg}rect") if "class" in box.attrib]
    assert sorted(boxes) == sorted("FBfb" + "FBFB" + "FBB" + "bffb")  # legend, gpu0, gpu1 (B1 in two parts), link
    words = [text.text for text in root.iter(f"{svg}text")]
    assert words.count("B1[0]") == 1
    assert "time (ns), period 80.0 ns" in words
    assert "three <stages>" in words


def test_replicas_in_turn_are_rows_and_the_picture_shows_their_round() -> None:
    """Two replicas of 30 ns each way in front of one of 15: a micro-batch every 30 ns, every 60 on each."""
    problem = chain_problem([30, 15], [30, 15], cluster(3), mode="async", mini_batch=4)
    plan = stages_plan([[0], [1]], replicas=[2, 1])
    plan = replace(plan, stages=(replace(plan.stages[0], replicas="round_robin"), plan.stages[1]))
    schedule = services().schedule("1f1b-rr", problem, plan)
    assert isinstance(schedule, PeriodicSchedule)
    pattern = pattern_of(problem, plan, schedule)
    assert [row.label for row in pattern.rows] == ["gpu0", "gpu1", "gpu2"]
    assert pattern.busy == (1.0, 1.0, 1.0)
    assert [len(row.blocks) for row in pattern.rows] == [2, 2, 4]
    assert pattern_lines(pattern)[0] == "period 30.0 ns, 2 of them"
    assert "2 of them" in pattern_svg(pattern, "in turn")
