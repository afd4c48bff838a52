"""The table of one problem: a line for each planner, both regimes side by side, columns as there is room."""

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.documents.units import three_digits
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.report.problem_blocks import (
    Contender,
    ProblemBlock,
    class_gap,
    cut_words,
    is_bound_of_planner,
    share_of_bound,
)
from pipebench.report.text.comparisons.notes import Notes
from pipebench.report.units import percent, rate, seconds

APART = "sync and async are not ranked against each other: without a flush, weights are one update old when used"
OF_THE_OTHER_REGIME = "planned for the other regime; only the partition is the planner's"
ADAPTED = f"* {OF_THE_OTHER_REGIME}"
OWN_BOUND = "‡ above a bound that the planner says it proved; the suite has not checked it"
YARDSTICK = "† the yardstick: it stands beside every comparison and counts in none"
STATUS_STYLE = {"ok": "", "infeasible": "yellow", "unsupported": "yellow", "skipped": "dim"}
STATUS_WORDS = {"unsupported": "n/a", "invalid_plan": "invalid"}
"""Shorter than the status itself."""
NOT_RUN = "not run"
"""In place of a figure, where there is no row."""
GB = 1e9
SEPARATOR = " | "
"""Between the figures of two regimes."""
CLOSE = 1
"""Columns up to this rank are shown even one space apart; figures of others would run together."""
BAR_CELLS = 8
EIGHTHS = " ▏▎▍▌▋▊▉"
ENOUGH = 3
"""Samples from which a spread says something."""
LONGEST_NAME = 24
"""A longer name is broken before its options."""


@dataclass(frozen=True, slots=True)
class Column:
    """cell: of a contender. rank: columns of a smaller rank are shown first where there is little room.

    part: what the cell says as a part of 1, where it says that.
    """

    title: str
    rank: int
    cell: Callable[[Contender], str | Text]
    right: bool = False
    part: Callable[[Contender], float | None] | None = None


@dataclass(slots=True)
class Legend:
    """What is said once below all tables. hidden: columns that had no room; adapted: whether a row is."""

    hidden: dict[str, None] = field(default_factory=dict)

    def lines(self, blocks: Sequence[ProblemBlock]) -> list[str]:
        """The lines that these blocks need."""
        rows = [row for block in blocks for row in block.rows]
        said = [ADAPTED] if any(row.adapted and row.status == "ok" for row in rows) else []
        said += [YARDSTICK] if any(each.yardstick for block in blocks for each in block.contenders) else []
        said += [OWN_BOUND] if "class gap" not in self.hidden and any(map(is_bound_of_planner, rows)) else []
        said += [APART] if any(len(block.regimes) > 1 for block in blocks) else []
        if self.hidden:
            said.append(f"no room for {', '.join(self.hidden)}: a wider terminal, --html and --json have them")
        return said


def fitting_table(console: Console, block: ProblemBlock, notes: Notes, legend: Legend) -> Table:
    """The block with as many columns as fit, those that matter most first; the legend names the others."""
    columns = columns_of(block, notes)
    lines = [*block.contenders, *best_contender(block)]
    cells = [[column.cell(contender) for contender in lines] for column in columns]
    widths = [_width(console, column.title, found) for column, found in zip(columns, cells, strict=True)]
    for least in sorted({column.rank for column in columns}, reverse=True):
        shown = [number for number, column in enumerate(columns) if column.rank <= least]
        width, gaps = sum(widths[number] for number in shown), len(shown) - 1
        if least == 0 or width + gaps * (1 if least <= CLOSE else 2) <= console.width:
            break
    hidden = [column.title.partition("\n")[0] for number, column in enumerate(columns) if number not in shown]
    legend.hidden.update(dict.fromkeys(filter(None, hidden)))
    made = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=width + 2 * gaps > console.width)
    for number in shown:
        made.add_column(columns[number].title, justify="right" if columns[number].right else "left", no_wrap=True)
    for line, contender in enumerate(lines):
        style = "dim" if contender.yardstick else ""
        made.add_row(*(cells[number][line] for number in shown), style=style)
    return made


def _width(console: Console, title: str, cells: Iterable[str | Text]) -> int:
    """The columns that a column takes when nothing in it is wrapped or cut."""
    texts = (cell if isinstance(cell, Text) else console.render_str(cell) for cell in (title, *cells))
    return max((cell_len(line) for text in texts for line in text.plain.splitlines()), default=0)


def best_contender(block: ProblemBlock) -> list[Contender]:
    """The best of each regime as one more contender, named by whose they are; none where nobody is compared."""
    if not block.best:
        return []
    rows = {mode: replace(row, notices=(), parallel=False, key="") for mode, row in block.best.items()}
    return [Contender(_best_name(block), rows, repeats=True)]


def _best_name(block: ProblemBlock) -> str:
    names = [block.best[mode].planner if mode in block.best else "-" for mode in block.regimes]
    return f"best: {_join(names)}"


def columns_of(block: ProblemBlock, notes: Notes) -> list[Column]:
    """All columns of a block, in order. Where the regimes differ a cell has a figure for each: sync | async."""
    rows = block.rows

    def each(figure: Callable[[Row], str]) -> Callable[[Contender], str]:
        return lambda contender: _join(
            figure(contender.rows[mode]) if mode in contender.rows else "-" for mode in block.regimes
        )

    def cut(contender: Contender) -> str:
        words = each(cut_words)(contender)
        return "" if contender.repeats and SEPARATOR in words else words

    def any_has(name: str) -> bool:
        return any(getattr(row, name) is not None for row in rows)

    found = [Column("planner", 0, _name), Column("cut", 3, cut)]
    for mode in block.regimes:
        found.append(Column(f"{mode}\nsamples/s", 0, _speed(block, mode), right=True))
        found.append(Column("\n%", 0, _share(block, mode), right=True, part=_part(mode)))
        found.append(Column("", 9, _bar(mode)))
    limits = {row.device_memory_bytes for row in rows}
    limit = limits.pop() if len(limits) == 1 else None
    found.append(Column(f"memory\n{_of_limit(limit)}", 4, each(_memory), right=True))
    found.append(Column("bubble", 5, each(lambda row: percent(row.bubble)), right=True))
    if any_has("class_bound_s"):
        found.append(Column("class gap", 6, each(_class_gap), right=True))
    if any_has("measured_s"):
        found.append(Column("measured", 0, each(lambda row: rate(row.measured_throughput)), right=True))
        found.append(Column("error", 0, each(lambda row: percent(row.measured_error)), right=True))
    if any_has("claimed_s"):
        found.append(Column("claimed", 8, each(_claim), right=True))
    found.append(Column("search", 1, each(search_time), right=True))
    found.append(Column("scheduler", 7, each(lambda row: row.scheduler or "-")))
    if any(notes.numbers(row) for row in rows):
        found.append(Column("notes", 2, _marks(notes)))
    return found


def _name(contender: Contender) -> str | Text:
    """Long ones in two lines: the options below."""
    name = contender.marked_name
    head, bracket, options = name.partition("[")
    return Text(f"{head}\n [{options}" if bracket and len(name) > LONGEST_NAME else name)


def _speed(block: ProblemBlock, mode: RegimeMode) -> Callable[[Contender], Text]:
    """Samples/s, or why there are none."""

    def cell(contender: Contender) -> Text:
        row = contender.rows.get(mode)
        if row is None:
            return Text("-" if contender.repeats else NOT_RUN, style="dim")
        if row.status != "ok":
            return Text(STATUS_WORDS.get(row.status, row.status), style=STATUS_STYLE.get(row.status, "red"))
        text = rate(row.throughput) + ("*" if row.adapted else "")
        return Text(text, style=_weight(block, row))

    return cell


def _part(mode: RegimeMode) -> Callable[[Contender], float | None]:
    """Of the bound, in [0, 1]; None without a plan or a bound."""

    def part(contender: Contender) -> float | None:
        row = contender.rows.get(mode)
        return share_of_bound(row) if row is not None and row.status == "ok" else None

    return part


def _share(block: ProblemBlock, mode: RegimeMode) -> Callable[[Contender], Text]:
    part = _part(mode)

    def cell(contender: Contender) -> Text:
        row, share = contender.rows.get(mode), part(contender)
        text = "" if share is None else f"{100 * share:.1f}"
        return Text(text, style=_weight(block, row) if row is not None else "")

    return cell


def _weight(block: ProblemBlock, row: Row) -> str:
    """Bold for the best of its regime."""
    best = block.best.get(row.regime)
    return "bold" if best is not None and best.simulated_s == row.simulated_s and row.status == "ok" else ""


def _bar(mode: RegimeMode) -> Callable[[Contender], str]:
    """The part of the bound, in eighths of a cell."""

    part = _part(mode)

    def cell(contender: Contender) -> str:
        share = part(contender)
        if share is None:
            return ""
        whole, rest = divmod(round(share * BAR_CELLS * 8), 8)
        return "█" * whole + (EIGHTHS[rest] if rest else "")

    return cell


def _of_limit(limit_bytes: int | None) -> str:
    return "GB" if limit_bytes is None else f"GB of {three_digits(limit_bytes / GB)}"


def _memory(row: Row) -> str:
    """Of the fullest device, in GB; beyond the reserve it says so."""
    if row.status != "ok" or row.memory_bytes is None:
        return "-"
    return three_digits(row.memory_bytes / GB) + (" tight" if row.fit == "tight" else "")


def _class_gap(row: Row) -> str:
    shown = percent(class_gap(row))
    return f"{shown} ‡" if is_bound_of_planner(row) and class_gap(row) is not None else shown


def _claim(row: Row) -> str:
    return rate(row.mini_batch / row.claimed_s if row.claimed_s else None)


def _marks(notes: Notes) -> Callable[[Contender], str]:
    """The numbers of all notices of a contender."""

    def cell(contender: Contender) -> str:
        numbers = {number for row in contender.rows.values() for number in notes.numbers(row)}
        return ",".join(map(str, sorted(numbers)))

    return cell


def search_time(row: Row) -> str:
    """CPU time of the search, with half the interquartile range of its samples where there are enough."""
    median = seconds(row.search_cpu_s)
    if row.search_cpu_s and len(row.search_samples) >= ENOUGH:
        low, _, high = statistics.quantiles((cpu_s for cpu_s, _ in row.search_samples), n=4)
        return f"{median} ±{percent((high - low) / 2 / row.search_cpu_s)}"
    return median


def _join(figures: Iterable[str]) -> str:
    """One figure where all regimes have the same, else one for each; a unit that they share stands once."""
    listed = list(figures)
    if len(set(listed)) == 1:
        return listed[0]
    units = {text.partition(" ")[2] for text in listed}
    if len(units) == 1 and all(re.fullmatch(r"[\d.,]+ \S+( ‡)?", text) for text in listed):
        return SEPARATOR.join(text.partition(" ")[0] for text in listed) + f" {units.pop()}"
    return SEPARATOR.join(listed)
