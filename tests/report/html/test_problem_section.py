"""The section of a problem: the words of the terminal, each plan drawn where it is known, and what is left out."""

import re
import xml.etree.ElementTree as ET
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from pipebench.bench.explanation import Explainer
from pipebench.bench.services import HostServices
from pipebench.documents.document import PlannedProblem
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.value import digest
from pipebench.hooks.manager import Host
from pipebench.report.html import problem_timelines
from pipebench.report.html.problem_section import ProblemSection, ProblemSections
from pipebench.report.html.rows_page import rows_page
from pipebench.report.problem_blocks import problem_blocks
from pipebench.report.problem_names import ProblemNames
from pipebench.report.text.comparisons.notes import Notes
from pipebench.report.text.comparisons.why import MOST_EXPLAINED, why_lines
from pipebench.simulation.metrics import metrics
from tests.builders import chain_problem, cluster, stages_plan
from tests.report.html.page import Page
from tests.report.rows import row

HOST = Host()
SERVICES = HostServices(HOST)
SVG = "{http://www.w3.org/2000/svg}"
FINE, COARSE = [[0], [1], [2, 3]], [[0, 1], [2, 3]]


class Contest:
    """Rows with the plans behind them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._plans: dict[tuple[str | None, str | None], PlannedProblem] = {}

    def enter(
        self,
        planner: str,
        cut: list[list[int]],
        mode: RegimeMode,
        scheduler: str,
        copies: int = 1,
        shared: ReplicaMode | None = None,
        **fields: Any,
    ) -> Row:
        """A plan of four operators, with what it is worth."""
        ns = [9_000, 5_000, 4_000, 7_000]
        problem = chain_problem(
            ns, [2 * each for each in ns], cluster(4), activations=[0, 500, 300, 400, 0], mode=mode, mini_batch=8
        )
        plan = replace(stages_plan(cut), copies=copies)
        if shared:  # by two replicas of each stage
            stages = stages_plan(cut, replicas=[2] * len(cut), micro_batch=2).stages
            plan = replace(plan, stages=tuple(replace(stage, replicas=shared) for stage in stages))
        schedule = SERVICES.schedule(scheduler, problem, plan)
        worth = metrics(problem, plan, SERVICES.simulate(problem, plan, schedule))
        given: dict[str, Any] = {
            "regime": mode, "problem_id": mode, "scheduler": scheduler, "mini_batch": 8, "devices": 4,
            "plan_id": digest(plan), "schedule_id": digest(schedule), "cut_id": str(cut), "stages": len(cut),
            "simulated_s": worth.seconds, "throughput": worth.throughput,
            "peak_memory_bytes": {0: 10**9, 1: 2 * 10**9}, "device_memory_bytes": 4 * 10**9,
            "bound_s": 1.2e-4, "gap": worth.seconds / 1.2e-4 - 1,
        }  # fmt: skip
        made = row(planner, **(given | fields))
        self.rows.append(made)
        self._plans[made.plan_id, made.schedule_id] = PlannedProblem(
            problem=problem, plan=plan, schedule=schedule, scheduler=scheduler, planner=planner
        )
        return made

    def plan_of(self, row: Row) -> PlannedProblem | None:
        return self._plans.get((row.plan_id, row.schedule_id))

    def spoil(self, row: Row) -> None:
        """Its schedule is that of another plan now."""
        key = row.plan_id, row.schedule_id
        schedule = self._plans[key].schedule
        if isinstance(schedule, PeriodicSchedule):
            schedule = replace(schedule, stage=tuple(stage + 1 for stage in schedule.stage))
        elif schedule is not None:
            schedule = replace(schedule, lanes=schedule.lanes[1:])
        self._plans[key] = replace(self._plans[key], schedule=schedule)

    def section(self) -> ProblemSection:
        sections = ProblemSections(
            self.plan_of, SERVICES, Explainer(HOST), Notes(self.rows), ProblemNames(self.rows)
        )
        return sections.section(problem_blocks(self.rows)[0])


@pytest.fixture
def three() -> Contest:
    """`fine` and `same` have one plan in sync; `coarse` is slower; `fine` runs without a flush, too."""
    made = Contest()
    made.enter("coarse", COARSE, "sync", "1f1b", search_cpu_s=0.01)
    made.enter("fine", FINE, "sync", "1f1b", search_cpu_s=0.1)
    made.enter("same", FINE, "sync", "1f1b", search_cpu_s=0.2, yardstick=True)
    made.enter("fine", FINE, "async", "1f1b-rr")
    return made


def drawn(section: ProblemSection) -> ET.Element:
    assert section.timelines is not None
    return ET.fromstring(section.timelines)


def plans_of(section: ProblemSection) -> list[str]:
    """Names of the plans in the picture of timelines, in order."""
    groups = [each for each in drawn(section).iter(f"{SVG}g") if each.get("class") is None]
    return [(each.findtext(f"{SVG}title") or "").partition(":")[0] for each in groups]


def test_the_section_says_what_the_terminal_says(three: Contest) -> None:
    (block,) = problem_blocks(three.rows)
    told = [line.strip() for line in why_lines(block, Explainer(HOST), three.plan_of)]
    assert any(line.startswith("coarse to fine, sync: cut") for line in told)
    page = Page(rows_page(HOST, three.rows, three.plan_of, lambda _: "", "page"))
    listed = [words for tag, words in page.words if tag == "li"]
    assert listed == told


def test_data_parallelism_in_one_regime_only_is_said_of_that_one(three: Contest) -> None:
    alone = {"stages": 1, "replicas": (4,)}
    for mode, fields in (("sync", alone), ("async", {})):
        three.enter("turns", COARSE, mode, "1f1b" if mode == "sync" else "1f1b-rr", **fields)
    three.enter("always", COARSE, "sync", "1f1b", **alone)
    (block,) = problem_blocks(three.rows)
    told = [line.strip() for line in why_lines(block, Explainer(HOST), lambda _: None)]
    assert told[:2] == ["turns: the plan in sync is data parallelism", "always: the plan is data parallelism"]


def test_another_cut_of_the_same_shape_is_not_from_itself_to_itself(three: Contest) -> None:
    three.enter("other", [[0], [1, 2], [3]], "sync", "1f1b")
    (block,) = problem_blocks(three.rows)
    told = " ".join(line for line in why_lines(block, Explainer(HOST), three.plan_of) if "other" in line)
    assert "cut (other operators in stages of the same shape): " in told
    assert "cut (3 stages to 3 stages)" not in told


def test_replicas_that_take_turns_are_not_other_devices() -> None:
    made = Contest()
    for shared in get_args(ReplicaMode):
        made.enter(shared, COARSE, "sync", "1f1b", shared=shared)
    (block,) = problem_blocks(made.rows)
    told = why_lines(block, Explainer(HOST), made.plan_of)
    assert re.search(r"sync: replicas (split to round-robin|round-robin to split): \d", told[-1])


def test_a_plan_that_failed_says_why_below_the_table(three: Contest) -> None:
    three.rows.append(
        row("none", status="infeasible", reason="needs 26.7 GB", problem_id="sync", simulated_s=None)
    )
    assert "none: needs 26.7 GB" in three.section().remarks


def test_plans_are_drawn_best_first_by_regime_and_the_same_plan_once(three: Contest) -> None:
    section = three.section()
    assert plans_of(section) == ["fine, same †", "coarse", "fine"]
    assert section.left_out == []
    words = [each.text for each in drawn(section).iter(f"{SVG}text")]
    assert words.index("sync: with a flush") < words.index("async: a steady state without a flush")


def test_a_timeline_ends_at_the_simulated_time_of_its_row(three: Contest) -> None:
    ends = {f"{1e6 * (each.simulated_s or 0):.0f} us" for each in three.rows}
    words = {each.text for each in drawn(three.section()).iter(f"{SVG}text")}
    assert len(ends) == 3
    assert ends <= words


def test_a_pattern_that_simulates_at_another_pace_says_so(three: Contest) -> None:
    last = three.rows[-1]
    three.rows[-1] = replace(last, simulated_s=1.1 * (last.simulated_s or 0.0))
    text = three.section().timelines or ""
    assert "drawn is the pattern, simulated it takes" in text


def test_of_several_copies_of_a_pipeline_one_is_drawn_and_it_is_said(three: Contest) -> None:
    three.enter("twice", COARSE, "sync", "1f1b", copies=2)
    words = [each.text or "" for each in drawn(three.section()).iter(f"{SVG}text")]
    assert [each.endswith("the first of 2 copies") for each in words if each.startswith("twice: ")] == [True]
    assert sum("copies" in each for each in words) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"devices": 0},
        {"gap": -1.0},
        {"gap": -3.0},
        {"gap": 1e300},
        {"search_cpu_s": 5e-324},
        {"search_cpu_s": 1e308},
        {"device_memory_bytes": 0},
        {"peak_memory_bytes": {0: 0, -1: 5, 10**9: 7}},
        {"bound_s": 1e300},
        {"throughput": None},
    ],
)
def test_figures_that_only_a_file_can_hold_end_no_page(odd: dict[str, Any]) -> None:
    given = {"simulated_s": 1.0, "peak_memory_bytes": {0: 10**9}} | odd
    rows = [row("a", **given), row("b", simulated_s=2.0, peak_memory_bytes={0: 10**9})]
    text = rows_page(HOST, rows, lambda _: None, lambda _: "", "odd")
    for svg in re.findall("<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)
        assert "nan" not in svg
        assert "inf" not in svg


def test_without_plans_there_are_charts_and_no_word_of_timelines(three: Contest) -> None:
    block = problem_blocks(three.rows)[0]
    section = ProblemSections(
        lambda _: None, SERVICES, Explainer(HOST), Notes(three.rows), ProblemNames(three.rows)
    ).section(block)
    titles = [ET.fromstring(chart).findtext(f"{SVG}title") for chart in section.charts]
    assert titles == [f"{mode}: {of}" for of in ("quality by search time", "peak memory by device")
                      for mode in ("sync", "async")]  # fmt: skip
    assert section.timelines is None
    assert section.left_out == []


@pytest.mark.parametrize(("spoilt", "left"), [(0, ["fine, same †", "fine"]), (3, ["fine, same †", "coarse"])])
def test_a_schedule_that_cannot_run_is_left_out_and_counted(three: Contest, spoilt: int, left: list[str]) -> None:
    three.spoil(three.rows[spoilt])
    section = three.section()
    assert plans_of(section) == left
    (words,) = section.left_out
    assert words.startswith("Timelines left out: 1. ")
    assert "pipebench show" in words


@pytest.mark.parametrize(
    ("limit", "amount", "left", "said"),
    [
        ("TIMELINES_BYTES", 5000, 0, "to keep the page small"),
        ("TIMELINES_BYTES", 100, 0, "to keep the page small"),
        ("MOST_TIMELINES", 1, 2, "Timelines left out: 1."),
        ("MOST_TASKS", 1, 0, "Timelines left out: 3."),
    ],
)
def test_what_a_page_has_no_room_for_is_left_out_in_words(
    three: Contest, monkeypatch: pytest.MonkeyPatch, limit: str, amount: int, left: int, said: str
) -> None:
    monkeypatch.setattr(problem_timelines, limit, amount)
    section = three.section()
    (words,) = section.left_out
    assert said in words
    assert (len(plans_of(section)) if section.timelines else 0) == left


def test_only_searches_that_ran_alone_are_in_the_chart_of_search_times(three: Contest) -> None:
    three.rows = [replace(each, parallel=each.planner == "coarse") for each in three.rows]
    section = three.section()
    assert section.left_out == ["Not in the charts of search time, as they ran beside other trials: coarse."]
    (chart,) = [each for each in section.charts if "sync: quality" in each and "async" not in each]
    assert "fine" in chart
    assert "coarse" not in chart


def test_the_bars_of_the_table_are_parts_of_the_bound(three: Contest) -> None:
    page = Page(three.section().markup())
    parts = [a["style"] for name, a in page.elements if name == "td" and "part" in (a.get("class") or "")]
    shares = [100 * 1.2e-4 / (each.simulated_s or 1.0) for each in three.rows]
    first = re.fullmatch(r"--part:([\d.]+)%", parts[0] or "")
    assert first is not None
    assert float(first[1]) == pytest.approx(shares[0], abs=0.1)
    assert {f"{share:.1f}" for share in shares} <= {words for _, words in page.words}


def test_boxes_that_scroll_can_be_reached_and_have_names(three: Contest) -> None:
    page = Page(three.section().markup())
    boxes = [a for name, a in page.elements if name == "div" and a.get("class") in ("scroll", "picture")]
    assert len(boxes) == 2
    for box in boxes:
        assert (box["tabindex"], box["role"]) == ("0", "region")
        assert "no plan beats" in (box["aria-label"] or "")
    described = [title for name, title in page.words if name == "desc"]
    assert len(described) == 5


def colours_by_name(chart: str) -> dict[str, str]:
    hints = re.findall(r'fill="(#[0-9a-f]+)"><title>(\w+), gpu0', chart)
    return {name: colour for colour, name in hints}


def test_a_planner_has_one_colour_on_the_whole_page() -> None:
    rows = [
        row(planner, workload_id=problem, problem_id=problem, simulated_s=1.0, peak_memory_bytes={0: 10**9})
        for problem, planners in (("p", "abc"), ("q", "cb"))
        for planner in planners
    ]
    sections = ProblemSections(lambda _: None, SERVICES, Explainer(HOST), Notes(rows), ProblemNames(rows))
    first, second = (colours_by_name(sections.section(each).charts[1]) for each in problem_blocks(rows))
    assert len(set(first.values())) == 3
    assert second == {name: first[name] for name in "bc"}


def test_one_problem_is_not_called_several() -> None:
    text = rows_page(HOST, [row("a", simulated_s=1.0)], lambda _: None, lambda _: "", "one")
    assert '<p class="pale">1 row, 1 problem</p>' in text


def test_problems_beyond_the_first_have_their_tables_only_and_the_page_says_so() -> None:
    rows = [
        row("a", workload_id=str(number), problem_id=str(number), simulated_s=1.0)
        for number in range(MOST_EXPLAINED + 3)
    ]
    text = rows_page(HOST, rows, lambda _: None, lambda _: "", "many")
    assert text.count('<section class="problem">') == MOST_EXPLAINED + 3
    assert text.count('class="charts"') == MOST_EXPLAINED
    said = f"Why rows differ, and pictures, are shown for the first {MOST_EXPLAINED} problems."
    assert said in text
    assert said not in rows_page(HOST, rows[:MOST_EXPLAINED], lambda _: None, lambda _: "", "few")
