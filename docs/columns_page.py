"""The page on tables: every column, marker and status, each with its term of the glossary."""

from collections.abc import Callable, Iterable, Iterator
from typing import get_args

from pipebench.documents.glossary import Term, find_term
from pipebench.domain.row import Row, Status
from pipebench.report.problem_blocks import problem_blocks
from pipebench.report.rows import COLUMNS as ROW_COLUMNS
from pipebench.report.text.comparisons.blocks import columns_of
from pipebench.report.text.comparisons.notes import Notes
from pipebench.report.text.comparisons.standings import COLUMNS as STANDING_COLUMNS
from pipebench.report.text.comparisons.standings import DUEL_COLUMNS

TERM_OF = {
    "memory": "peak memory",
    "devices": "cluster",
    "claimed": "claimed",
    "": "share of the bound",
    "first": "planner",
    "second": "planner",
}
"""Columns whose title is another word in the glossary, or none. The bars have no title."""
BLOCK = """
`compare` prints one block for each problem. Its first line names the model, the devices, the mini-batch and the
proven bound. Then comes a line for each planner. Columns with a regime above them, `sync` or `async`, stand once
for each regime. A narrow terminal leaves columns out and names them below the table; `--html` and `--json` have
all.
"""
BELOW = """
Below the table of a block:

- A planner's name and a reason: why it has no plan.
- `A, B: cut at the same operators`: the two plans have the same stages, on whatever devices.
- `A to B, sync: …`: what leads from the plan of A to the plan of B, one change after the other. Each change has
  the simulated samples/s before and after it.
- `A, sync to async: …`: the same from one regime to the other.
"""
MARKERS = (
    ("`*`", "*", "behind a figure"),
    ("`†`", "†", "behind a planner"),
    ("`tight`", "tight", "behind the memory"),
    ("`best:`", "best", "before the last line"),
)
"""A mark, the word of the glossary, and where it stands."""
OTHER_MARKS = """
- `a | b`: the figure is `a` in sync and `b` in async. One figure stands for both where they are equal.
- `-`: there is no such figure. `n/a`: the planner does not take the problem, or cannot run in this regime.
- `‡` behind a class gap: the bound is what the planner says it proved. The suite has not checked it.
- `not run`: there is no row, as after Ctrl-C, in a store that lacks some, or in a regime that was not asked.
- **bold**: the fastest of its regime.
- `±5 %` behind a search time: half of the interquartile range of at least three searches.
- A number under `notes`: the notice with that number below all blocks.
"""


def columns(made: str, anchors: dict[str, str]) -> Iterator[str]:
    """Every column of a block, of the table of all rows and of the standings; markers; statuses."""

    def explained(titles: Iterable[str]) -> str:
        return _table(
            "column", ((f"`{title}`" if title else "(bar)", term_of(title)) for title in titles), anchors
        )

    yield f"# Columns, marks and statuses\n\n{made}"
    yield "Every word leads to the [glossary](glossary.md). `pipebench glossary WORD` prints the same text."
    yield f"## A block of `compare`\n\n{BLOCK.strip()}"
    yield explained(block_titles())
    yield BELOW
    yield "## Marks"
    yield _table("mark", ((f"{mark}, {where}", find_term(word)) for mark, word, where in MARKERS), anchors)
    yield OTHER_MARKS
    yield "## The table of all rows\n\nPages of `--html` and `pipebench report` have it, and reports in Markdown."
    yield explained(title for title, _ in ROW_COLUMNS)
    yield "A CSV file and `--json` have every field of a row. The glossary says which term explains which field."
    yield "## Standings\n\nThey follow where several problems were compared, a table for each regime."
    yield explained(STANDING_COLUMNS)
    yield "Pairs of planners:"
    yield explained(DUEL_COLUMNS)
    yield f"## Statuses\n\n{find_term('status').text}"
    yield _table("status", ((f"`{word}`", find_term(word)) for word in get_args(Status)), anchors)


def term_of(title: str) -> Term:
    """The term that explains a column. Raises PipebenchError for one that leads to none."""
    return find_term(TERM_OF.get(title, title))


def block_titles() -> list[str]:
    """The titles of all columns that a block can have, each once: those of rows with every figure."""
    rows = [
        Row(
            model="m",
            profile="m",
            cluster="c",
            devices=1,
            mini_batch=1,
            regime=regime,
            problem_id=regime,
            workload_id="w",
            planner="p",
            status="ok",
            claimed_s=1.0,
            simulated_s=1.0,
            measured_s=1.0,
            class_bound_s=1.0,
            notices=("a notice",),
        )
        for regime in ("sync", "async")
    ]
    (block,) = problem_blocks(rows)
    titles = [_title(column.title) for column in columns_of(block, Notes(rows))]
    return list(dict.fromkeys(titles))


def _title(text: str) -> str:
    """Without the regime above it and the unit below it."""
    above, _, below = text.partition("\n")
    return below if above in ("sync", "async", "") else above


def _table(first: str, lines: Iterable[tuple[str, Term]], anchors: dict[str, str]) -> str:
    link: Callable[[Term], str] = lambda term: f"[{term.name}](glossary.md#{anchors[term.name]})"  # noqa: E731
    rows = [f"| {first} | what it says | exactly |", "|---|---|---|"]
    for name, term in lines:
        exactly = f"{link(term)}, [cost model]({section_link(term)})" if term.section else link(term)
        rows.append(f"| {name.replace('|', '&#124;')} | {term.text} | {exactly} |")
    return "\n".join(rows)


def section_link(term: Term) -> str:
    """Where the cost model defines the term."""
    return f"../explanation/cost-model.md#{anchor(term.section)}"


def anchor(heading: str) -> str:
    """The anchor that readers of Markdown give a heading."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
