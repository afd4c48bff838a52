"""The difference of two plans as people read it, 80 columns wide."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from pipebench.bench.difference.figures import PlanFigures, StageFigures
from pipebench.bench.difference.plans import PlanDifference, PlanLabel
from pipebench.bench.difference.structure import Move, OperatorChange, Structure
from pipebench.report.difference_text import plain_table, print_line, print_sides, relative_change, written_change
from pipebench.report.plan_text import operators, span
from pipebench.report.units import gigabytes, seconds

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
    console.print(totals_table(before, after))
    for table in (stages_table(structure, before, after), devices_table(before, after)):
        if table.row_count:
            console.print(table)


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
    many = "1 operator" if len(move.operators) == 1 else f"{len(move.operators)} operators"
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
