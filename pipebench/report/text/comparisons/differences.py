"""Differences of two plans, or of two sets of results, as people read them, 80 columns wide."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from textwrap import wrap
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.difference.plans import PlanDifference, PlanFigures, PlanLabel, StageFigures
from pipebench.bench.difference.results import ResultsDifference, RowChange, RowLabel
from pipebench.bench.difference.structure import Change, Figure, Move, OperatorChange, Structure
from pipebench.documents.units import quantity
from pipebench.report.text.plans import operators, span
from pipebench.report.text.tables import print_table
from pipebench.report.units import gigabytes, seconds

SECONDS, BYTES = "_s", "_bytes"


def print_sides(console: Console, before: str, after: str) -> None:
    """What is compared with what."""
    for name, text in (("before", before), ("after", after)):
        console.print(Text(f"{name:<8}{text}", style="bold", overflow="fold"))


def print_line(console: Console, line: str, indent: int = 2) -> None:
    """A line of text, continued further in where it is longer than the console is wide."""
    for part in wrap(
        line,
        console.width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    ):
        console.print(Text(part), soft_wrap=True)


def written_change(change: Change) -> str:
    """A field with what it was and what it is."""
    name = change.field.removesuffix(SECONDS).removesuffix(BYTES).replace("_", " ")
    return f"{name} {value_text(change.field, change.before)} -> {value_text(change.field, change.after)}"


def value_text(field: str, value: Figure) -> str:
    """A value in the unit that its field's name says."""
    if value is None:
        return "none"
    if field == "in_flight" and value == 0:
        return "auto"
    if field.endswith(SECONDS) and isinstance(value, int | float):
        return seconds(value)
    if field.endswith(BYTES) and isinstance(value, int):
        return gigabytes(value)
    if field == "devices" and isinstance(value, tuple):
        return span(value)
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in sorted(value.items())) or "none"
    return str(value) or "''"


def relative_change(before: float | None, after: float | None) -> str:
    """(after - before) / before with its sign."""
    if before is None or after is None or not before:
        return "-"
    share = 100 * (after - before) / before
    return "same" if after == before else f"{share:+.2f} %" if abs(share) < 1 else f"{share:+.1f} %"


def plain_table(*titles: str, names: int = 1) -> Table:
    """A table without lines; the first `names` columns fold, the others stand to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for position, title in enumerate(titles):
        if position < names:
            made.add_column(title, overflow="fold")
        else:
            made.add_column(title, justify="right", no_wrap=True)
    return made


T = TypeVar("T")


def print_plan_difference(console: Console, difference: PlanDifference) -> None:
    """Which plans, whether their problems are the same, figures before and after, what changed."""
    print_sides(console, label(difference.before), label(difference.after))
    if difference.problem:
        changes = ", ".join(map(written_change, difference.problem))
        print_line(console, f"the problems differ, only structure is compared: {changes}")
    for notice in difference.notices:
        print_line(console, notice)
    before, after = difference.figures_before, difference.figures_after
    if before is not None and after is not None:
        _print_figures(console, difference.structure, before, after)
    elif not difference.problem:
        print_line(console, "neither file holds a problem, only structure is compared")
    lines = list(structure_lines(difference.structure))
    if difference.schedules_differ:
        lines.append("the schedules differ")
    if difference.same:
        known = difference.before.plan_id == difference.after.plan_id
        lines.append("the plans are the same" + ("" if known else ", but for the order of operators in a stage"))
    for line in lines:
        print_line(console, line)


def label(plan: PlanLabel) -> str:
    """The file and who made the plan."""
    maker = " x ".join(filter(None, (plan.planner, plan.scheduler)))
    return f"{plan.source} ({maker})" if maker else plan.source


def _print_figures(console: Console, structure: Structure, before: PlanFigures, after: PlanFigures) -> None:
    for name, figures in (("before", before), ("after", after)):
        if figures.trouble:
            print_line(console, f"{name}: {figures.status}: {figures.trouble}")
    print_table(console, totals_table(before, after))
    for table in (stages_table(structure, before, after), devices_table(before, after)):
        if table.row_count:
            print_table(console, table)


def totals_table(before: PlanFigures, after: PlanFigures) -> Table:
    """Estimated and simulated time of a mini-batch and the memory of the fullest device."""
    made = plain_table("", "before", "after", "change")
    for name in ("estimated_s", "simulated_s"):
        old, new = getattr(before, name), getattr(after, name)
        made.add_row(name.removesuffix("_s"), seconds(old), seconds(new), relative_change(old, new))
    fullest = [max(figures.peak_bytes.values(), default=None) for figures in (before, after)]
    made.add_row("fullest device", gigabytes(fullest[0]), gigabytes(fullest[1]), relative_change(*fullest))
    made.add_row(
        "stages", *(str(len(figures.stages)) if figures.stages else "-" for figures in (before, after)), ""
    )
    return made


def stages_table(structure: Structure, before: PlanFigures, after: PlanFigures) -> Table:
    """The stages that differ: time of a micro-batch, weights, and what each live micro-batch keeps."""
    made = plain_table("stage", "forward + backward", "weights", "kept a micro-batch")
    for old, new in _stage_pairs(structure, before, after):
        ours = before.stages[old] if old is not None else None
        theirs = after.stages[new] if new is not None else None
        if ours != theirs:
            made.add_row(
                _pair(old, new, str),
                _pair(ours, theirs, lambda stage: seconds((stage.forward_ns + stage.backward_ns) / 1e9)),
                _pair(ours, theirs, _weights),
                _pair(ours, theirs, lambda stage: gigabytes(stage.micro_batch_bytes)),
            )
    return made


def _stage_pairs(
    structure: Structure, before: PlanFigures, after: PlanFigures
) -> Iterator[tuple[int | None, int | None]]:
    """Matched stages, then those of the first plan alone, then those of the second alone."""
    if not before.stages or not after.stages:
        return
    yield from structure.matched
    lefts, rights = {left for left, _ in structure.matched}, {right for _, right in structure.matched}
    yield from ((stage, None) for stage in range(len(before.stages)) if stage not in lefts)
    yield from ((None, stage) for stage in range(len(after.stages)) if stage not in rights)


def devices_table(before: PlanFigures, after: PlanFigures) -> Table:
    """Peak memory of the devices on which it differs; devices in a row with the same figures stand together."""
    made = plain_table("device", "before", "after", "change")
    devices = sorted({*before.peak_bytes, *after.peak_bytes})
    if not before.peak_bytes or not after.peak_bytes:
        return made
    groups: list[tuple[list[int], tuple[int | None, int | None]]] = []
    for device in devices:
        peaks = before.peak_bytes.get(device), after.peak_bytes.get(device)
        if groups and groups[-1][1] == peaks and groups[-1][0][-1] == device - 1:
            groups[-1][0].append(device)
        elif peaks[0] != peaks[1]:
            groups.append(([device], peaks))
    for members, (old, new) in groups:
        made.add_row(span(tuple(members)), gigabytes(old), gigabytes(new), relative_change(old, new))
    return made


def structure_lines(structure: Structure) -> Iterator[str]:
    """Every difference of structure, one a line; `a -> b`: stage a of the first plan, stage b of the second."""
    renumbered = [f"{left} -> {right}" for left, right in structure.matched if left != right]
    if renumbered:
        yield f"stages that go on under another number: {', '.join(renumbered)}"
    for split in structure.splits:
        yield f"split: stage {split.whole} -> {_numbers(split.parts)}"
    for merge in structure.merges:
        yield f"merged: stages {_numbers(merge.parts)} -> {merge.whole}"
    if structure.removed:
        yield f"gone: {_stages(structure.removed)}"
    if structure.added:
        yield f"new: {_stages(structure.added)}"
    for move in structure.moves:
        yield move_line(move)
    for stage_change in structure.stages:
        name = _pair(stage_change.before, stage_change.after, str)
        yield f"stage {name}: {', '.join(map(written_change, stage_change.changes))}"
    yield from _operator_lines(structure.operators)
    for plan_change in structure.plan:
        yield f"plan: {written_change(plan_change)}"
    for word, edges in (("removed", structure.edges_removed), ("added", structure.edges_added)):
        if edges:
            yield f"order edges {word}: {', '.join(f'{a}>{b}' for a, b in edges)}"
    if structure.reordered:
        yield "the stages are listed in another order"


def move_line(move: Move) -> str:
    """Operators that changed their stage."""
    many = quantity(len(move.operators), "operator")
    source, target = ("none" if end is None else str(end) for end in (move.source, move.target))
    weights = f", {gigabytes(move.weight_bytes)} of weights" if move.weight_bytes else ""
    names = operators(move.operators).removesuffix(f" ({len(move.operators)})")
    return f"moved: {source} -> {target}, {many}{weights}: {names}"


def _operator_lines(changes: tuple[OperatorChange, ...]) -> Iterator[str]:
    """Operators with the same change stand together."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for each in changes:
        alike.setdefault((each.field, each.before, each.after), []).append(each.operator)
    for (field, before, after), names in alike.items():
        yield f"{operators(tuple(names))}: {field} {before or 'plain'} -> {after or 'plain'}"


def _weights(stage: StageFigures) -> str:
    return gigabytes(stage.weight_bytes)


def _pair(before: T | None, after: T | None, write: Callable[[T], str]) -> str:
    """`a -> b`, or one of them where they read the same; a side that is missing is `none`."""
    old, new = ("none" if each is None else write(each) for each in (before, after))
    return old if old == new else f"{old} -> {new}"


def _stages(stages: tuple[int, ...]) -> str:
    return f"stage {stages[0]}" if len(stages) == 1 else f"stages {_numbers(stages)}"


def _numbers(stages: tuple[int, ...]) -> str:
    return ", ".join(map(str, stages))


STYLE = {"better": "green", "worse": "red", "changed": "yellow"}
HASHES = ("plan_id", "schedule_id")
VALUES = ("simulated_s", "estimated_s")


def print_results_difference(console: Console, difference: ResultsDifference) -> None:
    """How many trials are the same, those that are not with what changed, and search times as information."""
    print_sides(console, difference.before, difference.after)
    print_line(console, summary(difference))
    for notice in difference.notices:
        print_line(console, notice)
    changed = sorted((row for row in difference.rows if row.outcome != "same"), key=_problem_of)
    for _, group in groupby(changed, key=_problem_of):
        block = list(group)
        console.print(Text(_heading(block[0].row), style="bold", overflow="fold"))
        print_table(console, changes_table(block))
        for row in block:
            if details := detail(row):
                print_line(console, f"{row.row.planner}: {details}")
    for name, only in (("before", difference.only_before), ("after", difference.only_after)):
        for heading, group_of_one in groupby(sorted(only, key=_place), key=_heading):
            print_line(console, f"only {name}: {heading}: {', '.join(map(_entrant, group_of_one))}")
    print_line(console, search_line(difference))


def summary(difference: ResultsDifference) -> str:
    """Counts of each outcome."""
    counts = Counter(row.outcome for row in difference.rows)
    told = [f"{counts[outcome]} {outcome}" for outcome in ("same", "better", "worse", "changed")]
    alone = [
        f"{len(only)} only {name}"
        for name, only in (("before", difference.only_before), ("after", difference.only_after))
    ]
    return ", ".join(told + alone)


def changes_table(rows: list[RowChange]) -> Table:
    """Each trial that is not the same: outcome, and time of a mini-batch before and after."""
    made = plain_table("planner", "scheduler", "", "before", "after", "change", names=2)
    for change in rows:
        made.add_row(
            change.row.planned_by,
            change.row.scheduler or "-",
            Text(change.outcome, style=STYLE[change.outcome]),
            seconds(change.value_before_s),
            seconds(change.value_after_s),
            relative_change(change.value_before_s, change.value_after_s),
        )
    return made


def detail(row: RowChange) -> str:
    """The columns beside the compared time that changed, each with both values; hashes are only named."""
    values = row.value_before_s, row.value_after_s
    told = [
        written_change(each)
        for each in row.changes
        if each.field not in HASHES and not (each.field in VALUES and (each.before, each.after) == values)
    ]
    hashes = [each.field.removesuffix("_id") for each in row.changes if each.field in HASHES]
    told += [f"another {name}" for name in hashes]
    return ", ".join(told)


def search_line(difference: ResultsDifference) -> str:
    """Search times, which never make two sets differ."""
    if difference.search_refused:
        return f"search times are not compared: {difference.search_refused}"
    if difference.search_ratio is None:
        return "search times: none to compare"
    trials = quantity(difference.search_count, "trial")
    return (
        f"search CPU, after / before: {difference.search_ratio:.2f} (geometric mean of {trials}, for information)"
    )


def _problem_of(row: RowChange) -> tuple[str, str]:
    return row.row.regime, row.row.problem_id


def _place(row: RowLabel) -> tuple[str, str]:
    return _heading(row), row.problem_id


def _heading(row: RowLabel) -> str:
    return f"{row.regime}: {row.profile} on {row.place}, mini-batch {row.mini_batch}"


def _entrant(row: RowLabel) -> str:
    return f"{row.planner} x {row.scheduler}" if row.scheduler else row.planner
