"""The page of rows: complete, self-contained, escaped, small."""

from typing import Any

import pytest

from pipebench.documents.document import PlannedProblem
from pipebench.documents.printable import CONTROL
from pipebench.domain.row import Row
from pipebench.hooks.manager import Host
from pipebench.report.html.rows_page import rows_page
from tests.report.html.grid_rows import grid_rows
from tests.report.html.page import Page
from tests.report.rows import row

NASTY = "\"><script>alert(1)</script>' & <b>"


def no_plan(row: Row) -> PlannedProblem | None:
    del row
    return None


def scripts(page: Page) -> list[str]:
    """What each script element of a page holds."""
    return sorted(a.get("type") or "script" for name, a in page.elements if name == "script")


def page_of(*rows: Row) -> str:
    return rows_page(Host(), rows, no_plan, lambda row: f"repeat {row.planner}", "some rows", command="made so")


def test_nothing_is_loaded_from_anywhere() -> None:
    page = Page(page_of(row("a"), row("b", status="crashed", reason="boom")))
    assert all(address.startswith(("#", "data:")) for address in page.addresses())
    assert scripts(page) == ["application/json", "script"]
    policy = [a["content"] for name, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy
    assert "default-src 'none'" in (policy[0] or "")


def test_every_row_has_its_line_its_details_and_its_command() -> None:
    page = Page(page_of(row("a", simulated_s=0.8, claimed_s=0.7), row("b", status="crashed", reason="boom")))
    texts = [text for _, text in page.words]
    assert page.count("details") == 2
    times = ("800 ms", "700 ms", "10.0 %")
    for expected in ("boom", "repeat a", "repeat b", "made so", "simulated", *times, "crashed"):
        assert expected in texts, expected
    identities = {a["id"] for name, a in page.elements if name == "details"}
    assert {address[1:] for address in page.addresses() if address.startswith("#")} == identities


def test_names_with_markup_stay_words() -> None:
    names = {"model": NASTY, "profile": NASTY, "cluster": NASTY, "notices": (NASTY,)}
    text = page_of(row(NASTY, **names, status="crashed", reason=NASTY))
    page = Page(text)
    assert scripts(page) == ["application/json", "script"]
    assert page.count("b") == 0
    assert sum(word == NASTY for _, word in page.words) >= 3


def test_what_turns_the_direction_of_writing_is_a_sign_on_the_page_and_in_its_pictures() -> None:
    """Else a name rewrites what stands behind it; and an SVG with such characters is no XML."""
    odd = "abc\u202edef\u2066\x1b[2J\ufffe"
    names: dict[str, Any] = {"model": odd, "profile": odd, "cluster": odd, "notices": (odd,), "status": "crashed"}
    many = (row(odd, **names, reason=odd, workload_id=str(number), problem_id=str(number)) for number in range(8))
    text = page_of(*many, *(row("b", workload_id=str(number), problem_id=str(number)) for number in range(8)))
    assert "performance profiles over" in text
    assert "abc\ufffddef" in text
    assert CONTROL.search(text) is None


def test_columns_sort_by_value_and_not_by_text() -> None:
    page = Page(page_of(row("a", search_cpu_s=0.5), row("b", search_cpu_s=2.0), row("c", search_cpu_s=None)))
    values = [a["data-v"] for name, a in page.elements if name == "td" and "data-v" in a]
    assert {"0.5", "2.0", ""} <= set(values)
    assert all(a.get("scope") in ("col", "row") for name, a in page.elements if name == "th")


def test_a_thousand_rows_stay_small() -> None:
    many = [
        row(f"planner{number % 20}", problem_id=f"p{number // 20}", workload_id=f"w{number // 20}")
        for number in range(1000)
    ]
    text = page_of(*many)
    assert len(text) < 3_000_000
    page = Page(text)
    assert page.count("details") == 1000


def test_many_planners_on_a_problem_are_not_held_against_each_other_in_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page shows no pair; 1,200 planners on one problem took 110 s, 5,000 more than five minutes."""

    def no_pair(*_: object) -> None:
        raise AssertionError("a pair was looked at")

    monkeypatch.setattr("pipebench.bench.standings.table._duel", no_pair)
    text = page_of(*(row(f"planner{number}", workload_id=p, problem_id=p) for number in range(60) for p in "pq"))
    assert "Standings" in text


def test_the_best_of_a_problem_stands_behind_its_rows_and_leads_to_the_row_that_it_is() -> None:
    rows = [row("a", simulated_s=2.0), row("b", simulated_s=1.0), row("c", simulated_s=3.0)]
    other = [row("a", simulated_s=2.0, problem_id="alone", workload_id="alone")]
    page = Page(page_of(*rows, *other))
    lines = [a["class"] for name, a in page.elements if name == "tr" and "data-line" in a]
    assert lines == ["", "", "", "best", ""]
    assert "best: b" in [text for _, text in page.words]
    assert page.count("details") == 4
    assert [address for address in page.addresses() if address == "#row-2"] == ["#row-2", "#row-2"]


def test_the_page_opens_with_a_table_for_each_problem_and_both_regimes_side_by_side() -> None:
    rows = [
        row("a", regime=regime, problem_id=f"{problem} {regime}", workload_id=problem, throughput=speed)
        for problem in ("p", "q")
        for regime, speed in (("sync", 141.0), ("async", 222.0))
    ]
    text = page_of(*rows, row("y", workload_id="p", problem_id="p sync", yardstick=True))
    assert text.index("no plan beats 256 samples/s") < text.index('id="rows"')
    assert text.count('<section class="problem">') == 2
    first = text.partition('<section class="problem">')[2].partition("</section>")[0]
    assert "141" in first
    assert "222" in first
    assert "sync samples/s" in first
    assert "y †" in first
    assert "best" not in first  # a yardstick is nobody to win against


def test_a_page_of_many_problems_has_them_all_and_shows_some_at_once() -> None:
    many = [row(name, workload_id=str(number), problem_id=str(number)) for number in range(70) for name in "ab"]
    page = Page(page_of(*many))
    classes = [a["class"] or "" for name, a in page.elements if name == "div" and "data-problem" in a]
    assert ["away" in each for each in classes] == [False] * 20 + [True] * 50
    entries = ["away" in (a.get("class") or "") for name, a in page.elements if name == "details"]
    assert entries == [False] * 40 + [True] * 100


def test_a_grid_has_facets_a_heat_map_and_performance_profiles_and_a_single_problem_has_none() -> None:
    page = Page(page_of(*grid_rows()))
    selects = [a["name"] for name, a in page.elements if name == "select" and "data-facet" in a]
    assert selects == ["regime", "planner", "status", "model", "device memory", "bandwidth"]
    words = [text for _, text in page.words]
    assert "sync: performance profiles over 12 problems" in words
    assert "slow: best on 2, a plan on 4 of 12" in words
    identities = [a.get("id") for _, a in page.elements]
    assert "heat-map" in identities
    alone = Page(page_of(row("a"), row("b")))
    assert [a["name"] for name, a in alone.elements if name == "select"] == ["planner"]
    assert "heat-map" not in [a.get("id") for _, a in alone.elements]


def test_a_page_of_few_problems_says_why_it_has_no_performance_profile() -> None:
    few = [row(name, workload_id=str(number), problem_id=str(number)) for number in range(5) for name in "ab"]
    text = page_of(*few)
    assert "no performance profile: it takes 6 problems, here are 5" in text
    assert "performance profiles over" not in text


def test_axes_stand_in_place_of_the_problem_where_they_tell_all_problems_apart() -> None:
    grid = [text for tag, text in Page(page_of(*grid_rows())).words if tag == "button"]
    assert grid[1:8] == ["planner", "scheduler", "regime", "model", "device memory", "bandwidth", "claimed"]
    unknown = [
        row("a", workload_id=str(number), problem_id=str(number), devices=number // 2) for number in (0, 1, 2)
    ]
    heads = [text for tag, text in Page(page_of(*unknown)).words if tag == "button"]
    assert heads[1:6] == ["planner", "scheduler", "regime", "problem", "devices"]


def test_details_name_planner_and_regime_and_the_problem_where_there_are_several() -> None:
    found = [row("a", regime="async", adapted=True), row("b")]
    one = page_of(*found)
    assert "<summary>a (adapted) × 1f1b, async <span" in one
    several = page_of(*found, row("b", workload_id="other", problem_id="other", mini_batch=64))
    assert "<summary>b × 1f1b, sync: mmt on 8 x summit, mini-batch 64 <span" in several


def test_what_is_not_known_of_the_surroundings_has_no_line_and_devices_that_hold_the_same_one_entry() -> None:
    held = {device: 10**9 * (1 + device // 4) for device in range(8)}
    text = page_of(row("a", environment={"git": "", "cpu": "fast"}, peak_memory_bytes=held))
    assert '<th scope="row">cpu</th>' in text
    assert '<th scope="row">git</th>' not in text
    assert "<td>gpu0-3 1.00 GB, gpu4-7 2.00 GB</td>" in text
