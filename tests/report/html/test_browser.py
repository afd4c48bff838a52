"""The page of a comparison in a browser: what a reader clicks, types and sees, in both schemes and on a phone."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.hooks.manager import Host
from pipebench.report.html.rows_page import rows_page
from tests.report.html.grid_rows import grid_rows

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the test extra has it")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ON_A_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FACETS = {
    "regime": "async",
    "planner": "fast",
    "status": "infeasible",
    "model": "resnet101",
    "device memory": "8.00 GB",
}


def found_browser() -> str | None:
    """The browser of this machine."""
    named = next(filter(None, map(shutil.which, NAMES)), None)
    return named or (ON_A_MAC if os.path.exists(ON_A_MAC) else None)


@pytest.fixture(scope="module")
def browser() -> "Iterator[sync_api.Browser]":
    path = found_browser()
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)}")
    with sync_api.sync_playwright() as play:
        # Root has no sandbox on Linux; the pages are ours.
        arguments = ["--no-sandbox"] if sys.platform == "linux" else []
        started = play.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a page with 48 rows."""
    path: Path = tmp_path_factory.mktemp("page") / "page.html"
    text = rows_page(Host(), grid_rows(), lambda row: None, lambda row: f"repeat {row.planner}", "a grid")
    path.write_text(text, "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with more of all than is shown at once."""
    path = tmp_path_factory.mktemp("many") / "page.html"
    rows = [
        replace(row, workload_id=str(number), problem_id=f"{number} {row.regime}")
        for number in range(30)
        for row in grid_rows()[:4]
    ]
    path.write_text(rows_page(Host(), rows, lambda row: None, lambda row: "repeat", "many"), "utf-8")
    return path.as_uri()


class Opened:
    """A page that is open, with what the browser complains of."""

    def __init__(
        self, browser: "sync_api.Browser", address: str, width: int = 1280, scheme: str = "light"
    ) -> None:
        self.complaints: list[str] = []
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)

    def head(self, name: str) -> "sync_api.Locator":
        """The head of a column of the table of all rows."""
        return self.page.locator("#rows thead th").filter(has_text=name)

    def column(self, name: str) -> list[str]:
        """The words of a column of the table of all rows, lines that are shown only."""
        number = self.head(name).evaluate("head => head.cellIndex + 1")
        return self.page.locator(f"#rows tbody tr:visible td:nth-child({number})").all_inner_texts()

    def choose(self, select: str, words: str) -> None:
        self.page.select_option(select, label=words)

    def heat(self) -> list[list[str]]:
        """The words of the heat map, row by row."""
        rows = self.page.locator("table.heat tr")
        return [rows.nth(place).locator("th, td").all_inner_texts() for place in range(rows.count())]


@pytest.fixture(scope="module")
def window(browser: "sync_api.Browser", address: str) -> Iterator[Opened]:
    """One window for many tests: to open one takes longer than to load a page."""
    found = Opened(browser, address)
    yield found
    found.context.close()


@pytest.fixture
def opened(window: Opened, address: str) -> Iterator[Opened]:
    window.complaints.clear()
    window.page.goto(address)
    yield window
    assert window.complaints == []


def test_a_column_sorts_up_and_down_by_its_figures_and_rows_without_one_come_last(opened: Opened) -> None:
    head = opened.head("samples/s")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = [float(each) for each in opened.column("samples/s") if each != "-"]
    assert up == sorted(up)
    assert set(up) == {32.0, 64.0, 128.0}
    assert opened.column("samples/s")[-1] == "-"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(each) for each in opened.column("samples/s") if each != "-"] == up[::-1]
    assert opened.column("samples/s")[-1] == "-"


def test_a_long_name_of_a_problem_leaves_room_for_the_figures(browser: "sync_api.Browser", tmp_path: Path) -> None:
    name = f"llm[{','.join(f'option_{number}=4096' for number in range(12))}]"
    path = tmp_path / "page.html"
    made = replace(grid_rows()[0], model=name, profile=name, workload="")
    path.write_text(rows_page(Host(), [made], lambda row: None, lambda row: "repeat", "long"), "utf-8")
    window = Opened(browser, path.as_uri())
    wide, room = window.page.locator("#rows").evaluate("all => [all.scrollWidth, all.parentElement.clientWidth]")
    window.context.close()
    assert wide <= room


def test_an_axis_of_the_problems_sorts_by_its_figures(opened: Opened) -> None:
    opened.head("device memory").locator("button").click()
    found = opened.column("device memory")
    assert list(dict.fromkeys(found)) == ["4.00 GB", "8.00 GB", "16.0 GB"]
    assert found != opened.column("bandwidth")


def test_the_keyboard_reaches_a_column_and_sorts_by_it(opened: Opened) -> None:
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        if opened.page.evaluate("document.activeElement.matches('#rows th:first-child button')"):
            break
    else:
        pytest.fail("Tab does not reach the first column of the table")
    opened.page.keyboard.press("Enter")
    assert opened.page.locator("#rows th").first.get_attribute("aria-sort") == "ascending"
    assert opened.column("planner") == sorted(opened.column("planner"))
    opened.page.keyboard.press("Enter")
    assert opened.column("planner") == sorted(opened.column("planner"), reverse=True)


def test_words_keep_rows_that_have_them_all_with_their_problems_and_details(opened: Opened) -> None:
    opened.page.fill("#words", "resnet101 slow")
    assert opened.page.inner_text("#shown") == "12 of 48 rows, 6 of 12 problems"
    assert all("slow" in each for each in opened.column("planner"))
    assert opened.page.locator("#problems > :visible").count() == 6
    assert opened.page.locator("#entries > details:visible").count() == 12
    opened.page.click("#clear")
    assert opened.page.inner_text("#shown") == "48 of 48 rows, 12 of 12 problems"
    assert opened.page.locator("#problems > :visible").count() == 12


@pytest.mark.parametrize("facet", FACETS)
def test_each_facet_filters_rows_details_and_problems(opened: Opened, facet: str) -> None:
    found = {
        "regime": [row for row in grid_rows() if row.regime == "async"],
        "planner": [row for row in grid_rows() if row.planner == "fast"],
        "status": [row for row in grid_rows() if row.status == "infeasible"],
        "model": [row for row in grid_rows() if row.model == "resnet101"],
        "bandwidth": [row for row in grid_rows() if "24GB/s" in row.workload],
        "device memory": [row for row in grid_rows() if row.device_memory_bytes == 8 * 10**9],
    }[facet]
    problems = {row.workload_id for row in found}
    opened.choose(f"select[name='{facet}']", FACETS[facet])
    assert opened.page.inner_text("#shown") == f"{len(found)} of 48 rows, {len(problems)} of 12 problems"
    assert opened.page.locator("#entries > details:visible").count() == len(found)
    assert opened.page.locator("#problems > :visible").count() == len(problems)


def test_facets_together_keep_what_fits_all(opened: Opened) -> None:
    opened.choose("select[name='device memory']", "4.00 GB")
    opened.choose("select[name=bandwidth]", "24GB/s")
    opened.choose("select[name=status]", "infeasible")
    found = [
        row for row in grid_rows() if "memory=4GB bandwidth=24" in row.workload and row.status == "infeasible"
    ]
    assert 0 < len(found) < 8
    assert opened.page.inner_text("#shown").startswith(f"{len(found)} of 48 rows, ")


def test_the_address_keeps_the_choice_and_brings_it_back(
    opened: Opened, browser: "sync_api.Browser", address: str
) -> None:
    opened.page.fill("#words", "fast")
    opened.choose("select[name='device memory']", "16.0 GB")
    told = opened.page.inner_text("#shown")
    again = Opened(browser, opened.page.url)
    assert again.page.inner_text("#shown") == told == "8 of 48 rows, 4 of 12 problems"
    assert again.page.input_value("#words") == "fast"
    assert [row[0] for row in again.heat()[1:]] == ["16.0 GB"]
    again.page.click("#clear")
    assert again.page.url == f"{address}#"
    wrong = Opened(browser, f"{address}#model=unknown&%ff=%&bandwidth=24GB%2Fs")
    assert wrong.page.inner_text("#shown") == "24 of 48 rows, 6 of 12 problems"
    for page in (again, wrong):
        page.context.close()
        assert page.complaints == []


def test_without_scripts_all_rows_and_the_heat_map_show_and_no_control_does(
    browser: "sync_api.Browser", many: str
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(many)
    assert page.locator("#entries > details").last.is_visible()
    assert page.locator("#problems > div").last.is_visible()
    assert page.locator("#rows tbody tr").last.is_visible()
    assert not page.locator("#words").is_visible()
    context.close()


def test_the_script_draws_the_heat_map_that_the_page_came_with(opened: Opened) -> None:
    came_with = opened.page.evaluate(HEAT_MAP)
    assert {style for _, style, _, _ in came_with} >= {"faster", "slower", "lone", "unsolved"}
    opened.page.dispatch_event("#heat-first", "change")
    assert opened.page.evaluate(HEAT_MAP) == came_with
    opened.choose("#heat-first", "slow")
    assert opened.page.evaluate(HEAT_MAP) != came_with


HEAT_MAP = """() => [["", document.querySelector("#heat-title").textContent,
  document.querySelector("#heat-summary").textContent, ""], ...[...document.querySelectorAll(".heat th, .heat td")]
  .map((cell) => [cell.textContent, cell.className, cell.title, cell.style.getPropertyValue("--part")])]"""
"""All that the heat map says and shows."""


def test_another_choice_draws_another_heat_map(opened: Opened) -> None:
    opened.choose("#heat-regime", "async")
    opened.choose("#heat-down", "device memory")
    opened.choose("#heat-across", "bandwidth")
    expected = [
        ["device memory \\ bandwidth", "12GB/s", "24GB/s"],
        ["4.00 GB", "A only", "A only"],
        ["8.00 GB", "2.00", "2.00"],
        ["16.0 GB", "0.50", "0.50"],
    ]
    assert opened.heat() == expected
    opened.choose("#heat-first", "slow")
    opened.choose("#heat-second", "fast")
    assert opened.page.inner_text("#heat-title") == "slow / fast, async"
    assert opened.heat()[1:] == [
        ["4.00 GB", "B only", "B only"],
        ["8.00 GB", "0.50", "0.50"],
        ["16.0 GB", "2.00", "2.00"],
    ]
    faster, slower = (opened.page.locator(f"table.heat td.{name}").count() for name in ("faster", "slower"))
    assert (faster, slower) == (2, 2)


def test_a_facet_restricts_the_heat_map(opened: Opened) -> None:
    opened.choose("select[name=model]", "resnet101")
    opened.choose("#heat-regime", "sync")
    opened.choose("#heat-down", "device memory")
    opened.choose("#heat-across", "model")
    assert opened.heat() == [
        ["device memory \\ model", "resnet101"],
        ["4.00 GB", "n/a"],
        ["8.00 GB", "n/a"],
        ["16.0 GB", "n/a"],
    ]


def test_more_rows_than_are_shown_wait_behind_a_button_and_a_link_reaches_them(
    browser: "sync_api.Browser", many: str
) -> None:
    opened = Opened(browser, many)
    details = opened.page.locator("#entries > details:visible")
    assert details.count() == 40
    opened.page.click("#entries + button.more")
    assert details.count() == 80
    last = opened.page.locator("#entries > details").last
    assert not last.is_visible()
    opened.page.evaluate(f"location.hash = '{last.get_attribute('id')}'")
    last.wait_for(state="visible")
    assert last.get_attribute("open") is not None
    opened.context.close()
    assert opened.complaints == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_and_words_stand_out(
    browser: "sync_api.Browser", address: str, width: int, scheme: str
) -> None:
    opened = Opened(browser, address, width, scheme)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    for selector in ("body", "table.heat td.faster", "table.heat td.slower", "table.heat td.unsolved"):
        assert opened.page.evaluate(CONTRAST, selector) >= 4.5, selector
    opened.context.close()
    assert opened.complaints == []


CONTRAST = """(selector) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colours) => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const parts = [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = getComputedStyle(document.body).backgroundColor;
  return Math.min(...[...document.querySelectorAll(selector)].map((element) => {
    const style = getComputedStyle(element);
    const [one, other] = [light([paper, style.backgroundColor]), light([style.color])];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }));
}"""
"""The least contrast of words and their ground, as WCAG 2 defines it."""
