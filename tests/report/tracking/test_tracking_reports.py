"""Reports: strangers' texts stay texts, everything that was found is in them, nothing is loaded from elsewhere."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from pipebench.documents.printable import CONTROL
from pipebench.report.tracking.blocks import (
    BlockTable,
    Heading,
    Items,
    Paragraph,
    Spark,
    TrackingReport,
    spark_svg,
    spark_text,
)
from pipebench.report.tracking.reports import column_words, night_report
from pipebench.report.tracking.writers import html_report, markdown_report, print_report
from pipebench.track.judgement.events import ColumnChange
from pipebench.track.judgement.judgement import judge
from pipebench.track.nights.history import add_night, open_history
from tests.track.made_nights import MACHINE, measured, night, paired, subject

EVIL = "<script>alert(1)</script> | ** [x](y) @all `a`\n# h &amp; $x$ \"'"
REPORT = TrackingReport(
    EVIL,
    [
        Heading(EVIL),
        Paragraph(EVIL, "bad"),
        Items([EVIL]),
        BlockTable((EVIL,), [[EVIL], [Spark((1.0, 2.0), (1,))]]),
    ],
)


@pytest.mark.parametrize("write", [html_report, markdown_report])
def test_what_turns_the_direction_of_writing_is_a_sign(write: Callable[[TrackingReport], str]) -> None:
    odd = "a\u202eb\x1b[2J"
    written = write(TrackingReport(odd, [Heading(odd), Items([odd]), BlockTable((odd,), [[odd]])]))
    assert CONTROL.search(written) is None
    assert written.count("a\ufffdb") >= 5


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def seen(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def test_html_shows_texts_as_they_are_and_loads_nothing() -> None:
    tags = seen(html_report(REPORT))
    assert "script" not in tags.tags
    assert tags.links == []
    assert tags.words.count(EVIL) == 7
    assert "://" not in html_report(REPORT)


def test_markdown_has_no_markup_of_strangers() -> None:
    lines = markdown_report(REPORT).splitlines()
    text = "\n".join(lines)
    assert "<script" not in text.replace("\\<script", "")
    assert "@all" not in text
    assert "[x](" not in text
    assert sum(line.startswith("# ") for line in lines) == 1
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 4
    assert all(line.replace("\\|", "").count("|") == 2 for line in table)


def test_a_terminal_gets_every_word() -> None:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_report(
        console, TrackingReport("T", [Paragraph("[red]x[/red]"), Items(["y"]), BlockTable(("h",), [["[b]z"]])])
    )
    printed = console.export_text()
    assert all(word in printed for word in ("[red]x[/red]", "y", "[b]z", "T", "h"))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (("simulated_ns", 452374773, 452375225), "simulated 452,374,773 ns -> 452,375,225 ns (+0.999 ppm)"),
        (("memory_bytes", 1000, 1500), "memory 1,000 bytes -> 1,500 bytes (+50 %)"),
        (("work.states", 10, None), "work: states 10 -> none"),
        (("plan", "a" * 64, "b" * 64), "plan aaaaaaaa -> bbbbbbbb"),
        (("status", "ok", "crashed"), "status ok -> crashed"),
    ],
)
def test_columns_in_words(column: tuple[str, object, object], words: str) -> None:
    name, before, after = column
    assert column_words(ColumnChange(name=name, before=before, after=after)) == words  # type: ignore[arg-type]


def test_a_series_becomes_a_curve_with_a_stroke_at_each_step() -> None:
    drawn = spark_svg(Spark([1.0] * 70 + [2.0] * 10, (5, 70)))
    assert drawn.count("<line") == 1  # the other one lies before the nights that are shown
    assert drawn.count(",") >= 60
    assert spark_text(Spark([1.0, 1.0, 2.0])) == "▁▁█"
    assert set(spark_text(Spark([1.0] * 9))) == {"▅"}
    assert spark_text(Spark([0.0])) == "▅"


def test_the_report_of_a_night_says_all_of_it(tmp_path: Path) -> None:
    both = measured(5.0), measured(subject=subject("other"), paired=paired(7.0, imprecise=True, discarded=2))
    add_night(tmp_path, MACHINE, night(0, *both))
    worse = measured(5.0, exact={"work.states": 11}), measured(subject=subject("other", "<b>"), exact={})
    add_night(tmp_path, MACHINE, night(3, *worse))
    text = markdown_report(night_report(judge(open_history(tmp_path))))
    for words in (
        "Worse: 1 change to look at",
        "work: states 10 -\\> 11 (+10 %)",
        "between r0 and r3",
        "pipebench track ack",
        "2 nights are missing",
        "not enough history (1 of 30)",
        "not measured tonight",
        "## A/A",
        "Test CPU",
    ):
        assert words in text, words
    assert "other on \\<b\\>" in text
