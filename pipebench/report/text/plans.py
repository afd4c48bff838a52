"""A plan as people read it: its stages, their times, their memory."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from pipebench.costs.messages import messages
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.verdict import Verdict
from pipebench.report.problem_blocks import class_gap, class_words
from pipebench.report.text.tables import print_fact, print_line, print_table
from pipebench.report.units import full_width, gigabytes, percent, rate, seconds

FIGURES = ("stage", "devices", "b", "flight", "forward", "backward", "memory", "free")
OPERATORS = "operators"
SPLIT = "split"
INDENT = 11
"""Column at which what is said of a plan begins."""


def print_plan(console: Console, problem: Problem, plan: Plan, verdict: Verdict) -> None:
    """One line a stage; bytes free on its fullest device. Operators stand beside it, below where too wide.

    Where operators are split, a line for each split follows. Order edges between stages that exchange tensors say
    nothing more than these.
    """
    figures = stage_figures(problem, plan, verdict)
    named = [operators(stage.operators) for stage in plan.stages]
    beside = [[*row, name] for row, name in zip(figures, named, strict=True)]
    whole = stage_table((*FIGURES, OPERATORS), beside)
    if full_width(console, whole) <= console.width:
        console.print(whole)
    else:
        print_table(console, stage_table(FIGURES, figures))
        below = [[row[0], name] for row, name in zip(figures, named, strict=True)]
        print_table(console, stage_table((FIGURES[0], OPERATORS), below))
    if any(any(split) for stage in plan.stages for split in stage.sharding):
        print_table(console, stage_table((FIGURES[0], SPLIT, OPERATORS), split_rows(plan)))
    if plan.pipelines > 1:
        console.print(f"{plan.pipelines} pipelines of {plan.pipeline_length} stages each, {plan.placement}")
    in_turn = [str(position) for position, stage in enumerate(plan.stages) if stage.turns > 1]
    if in_turn:
        whose = f"stage {in_turn[0]}" if len(in_turn) == 1 else f"stages {', '.join(in_turn)}"
        print_line(console, f"replicas of {whose} take whole micro-batches in turn")
    if plan.copies > 1:
        console.print(f"{plan.copies} copies of the whole pipeline")
    sent = {(message.source, message.target) for message in messages(problem.profile.graph, plan)}
    alone = [f"{before}>{after}" for before, after in plan.order_edges if (before, after) not in sent]
    if alone:
        print_line(console, f"order edges that no tensor takes: {', '.join(alone)}")
    if plan.routing == "relay":
        console.print("tensors are passed on through the stages between")


def print_bare_stages(console: Console, plan: Plan) -> None:
    """What stands in a plan that cannot be priced: devices, micro-batch and operators of each stage."""
    rows = [
        [str(position), span(stage.devices), str(stage.micro_batch), operators(stage.operators)]
        for position, stage in enumerate(plan.stages)
    ]
    print_table(console, stage_table(("stage", "devices", "b", OPERATORS), rows))


def stage_figures(problem: Problem, plan: Plan, verdict: Verdict) -> list[list[str]]:
    """Stage, devices, micro-batch, samples in flight, forward and backward time, memory, what is free of it."""
    model = CostModel(problem)
    made = []
    for position, stage in enumerate(plan.stages):
        times = model.stage_times(stage, plan)
        peak = max((verdict.peak_bytes.get(device, 0) for device in stage.devices), default=0)
        limit = min(problem.cluster.type_of(device).memory_bytes for device in stage.devices)
        made.append(
            [
                str(position),
                span(stage.devices),
                str(stage.micro_batch),
                str(stage.in_flight) if stage.in_flight else "auto",
                seconds(times.forward / 1e9),
                seconds(times.backward / 1e9),
                gigabytes(peak) if peak else "-",
                gigabytes(limit - peak) if peak else "-",
            ]
        )
    return made


def split_rows(plan: Plan) -> list[list[str]]:
    """Each split of a stage once, with its operators: PaSE's table II. Parts of a dim stand behind its name."""
    made = []
    for position, stage in enumerate(plan.stages):
        owners: dict[str, list[str]] = {}
        for name, split in zip(stage.operators, stage.sharding, strict=False):
            cut = " ".join(f"{dim}/{parts}" for dim, parts in split.items() if parts > 1) or "whole"
            owners.setdefault(cut, []).append(name)
        made += [[str(position), cut, operators(tuple(names))] for cut, names in owners.items()]
    return made


def stage_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Figures to the right, words to the left; operators go on below where they do not fit."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        words = title in (OPERATORS, SPLIT)
        made.add_column(
            title,
            justify="left" if words else "right",
            no_wrap=title != OPERATORS,
            overflow="fold" if words else "ellipsis",
        )
    for row in rows:
        made.add_row(*row)
    return made


def span(devices: tuple[int, ...]) -> str:
    """Device ids: 3, or 0-3 where they are consecutive."""
    if len(devices) > 1 and devices == tuple(range(devices[0], devices[0] + len(devices))):
        return f"{devices[0]}-{devices[-1]}"
    return ",".join(map(str, devices))


def peak_words(peaks: Mapping[int, int]) -> str:
    """What devices hold at most, neighbours that hold the same together: gpu0-3 11.0 GB, gpu4 9.00 GB."""
    alike = groupby(sorted(peaks.items()), key=lambda peak: gigabytes(peak[1]))
    return ", ".join(f"gpu{span(tuple(device for device, _ in same))} {held}" for held, same in alike)


def operators(names: tuple[str, ...]) -> str:
    """First and last operator and how many: conv1 … fc (53)."""
    if len(names) <= 2:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"


def _prediction(row: Row) -> str:
    """The simulated time, with its interval where a framework's step is priced."""
    if row.simulated_low_s is None or row.simulated_high_s is None:
        return seconds(row.simulated_s)
    ends = f"{seconds(row.simulated_low_s)} to {seconds(row.simulated_high_s)}"
    return f"{seconds(row.simulated_s)} (nine of ten runs: {ends})"


def _search(row: Row) -> str:
    if row.search_cpu_s is None:
        return "-"
    return f"{seconds(row.search_cpu_s)} CPU, {seconds(row.search_cold_s)} the first time"


def print_score(console: Console, row: Row, notices: Sequence[str] = ()) -> None:
    """What the suite says of the plan, beside what the planner claimed. notices: more than those of the row."""
    lines = [
        ("verdict", f"{row.verdict or row.status}{f', {row.fit}' if row.fit else ''}"),
        ("throughput", f"{rate(row.throughput)} samples/s"),
        ("simulated", f"{_prediction(row)} for {row.mini_batch} samples ({row.scheduler})"),
        ("estimated", seconds(row.estimated_s)),
        ("claimed", seconds(row.claimed_s)),
        ("bound", f"{seconds(row.bound_s)} ({row.bound_kind}), gap {percent(row.gap)}"),
        *([("class", f"{class_words(row)}, gap {percent(class_gap(row))}")] if row.class_bound_s else []),
        ("bubble", percent(row.bubble)),
        ("search", _search(row)),
    ]
    for name, value in (*lines, *(("notice", words) for words in dict.fromkeys((*row.notices, *notices)))):
        print_fact(console, name, value, INDENT)
