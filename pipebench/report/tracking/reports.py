"""A judgement, or a comparison of two revisions, as a report: verdict, changes, speeds, how much to believe."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from pipebench.documents.units import quantity, readable_seconds
from pipebench.report.text.comparisons.differences import structure_lines
from pipebench.report.tracking.blocks import (
    Block,
    BlockCell,
    BlockTable,
    Heading,
    Items,
    Paragraph,
    Spark,
    Tone,
    TrackingReport,
)
from pipebench.track.against.comparison import Against, ComparedSubject
from pipebench.track.judgement.benchmarks import BenchmarkSpeed
from pipebench.track.judgement.events import ColumnChange, Event
from pipebench.track.judgement.judgement import Judgement
from pipebench.track.judgement.speeds import Speed
from pipebench.track.measurement.ratios import Control
from pipebench.track.nights.exact import PLAN, SCHEDULE
from pipebench.track.nights.night import Exact, Night

HASH_LETTERS = 8
SMALL = 1e-4


def column_words(column: ColumnChange) -> str:
    """`simulated 452,374,773 ns -> 452,375,225 ns (+1 ppm)`."""
    before, after = (exact_words(column.name, value) for value in (column.before, column.after))
    change = relative(column.before, column.after)
    name = column_name(column.name).replace("work.", "work: ")
    return f"{name} {before} -> {after}{f' ({change})' if change else ''}"


def change_words(columns: Sequence[ColumnChange], failure: str = "") -> str:
    """What moved; of a plan that is lost the status with its reason, not each column that went with it."""
    lost = any(column.name == "status" and column.before == "ok" for column in columns)
    told = [column_words(column) for column in columns if not (lost and column.after in (None, ""))]
    return "; ".join(told) + (f" ({failure})" if failure else "")


def column_name(name: str) -> str:
    """A column as people say it; its unit stands behind its value."""
    return name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ")


def exact_words(name: str, value: Exact) -> str:
    """A value with all its digits and its unit."""
    if value is None or value == "":
        return "none"
    if isinstance(value, str):
        return value[:HASH_LETTERS] if name in (PLAN, SCHEDULE) else value
    unit = " ns" if name.endswith("_ns") else " bytes" if name.endswith("_bytes") else ""
    return f"{value:,}{unit}"


def relative(before: Exact, after: Exact) -> str:
    """The relative change of two figures; parts in a million where a percentage would hide it."""
    if not isinstance(before, int | float) or not isinstance(after, int | float) or not before or before == after:
        return ""
    change = (after - before) / before
    return f"{change * 1e6:+.3g} ppm" if abs(change) < SMALL else percent(change)


def percent(change: float) -> str:
    """A signed percentage."""
    return f"{100 * change:+.3g} %"


def revision_range(event: Event) -> str:
    """Which revisions a change lies between."""
    if not event.before or not event.after:
        return ""
    if event.before == event.after:
        return f"at revision {event.after}"
    return f"between {event.before} and {event.after}"


SHOWN = 40
"""Changes that are not open; older ones stay in the history."""
TONES: dict[str, Tone] = {"worse": "bad", "nothing measured": "bad", "imprecise": "warn", "steady": "good"}


def night_report(judgement: Judgement) -> TrackingReport:
    """The whole report."""
    night = judgement.night
    title = f"Night of {night.date}" if night else "No night"
    notices: list[Block] = [Items(judgement.notices)] if judgement.notices else []
    failing = [event for event in judgement.events if event.fails]
    rest = [event for event in judgement.events if not event.fails][-SHOWN:]
    return TrackingReport(
        title,
        [
            Paragraph(verdict_words(judgement), TONES[judgement.verdict]),
            *notices,
            *_events("Worse, and not acknowledged", failing, judgement),
            *_without_plan(judgement),
            *_events("Other changes", rest[::-1], judgement),
            *_segments(judgement),
            *_speeds(judgement.speeds),
            *_benchmarks(judgement),
            *_information(judgement),
            *_control(judgement.control),
            *(_circumstances(night, judgement) if night else []),
        ],
    )


def verdict_words(judgement: Judgement) -> str:
    """One sentence."""
    if judgement.verdict == "worse":
        causes = len(list(_causes([event for event in judgement.events if event.fails])))
        return f"Worse: {quantity(causes, 'change')} to look at."
    if judgement.verdict == "nothing measured":
        return (
            "Nothing was measured: no planner gave a plan." if judgement.without_plan else "Nothing was measured."
        )
    if judgement.verdict == "imprecise":
        some = sum(speed.imprecise for speed in judgement.speeds)
        return f"Nothing became worse; {some} of {len(judgement.speeds)} times are imprecise."
    return "Nothing became worse."


def _causes(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Events with one cause stand together: the same planner, the same night, the same direction."""

    def cause(event: Event) -> tuple[str, str, str, str]:
        return event.told, event.planner, event.kind, event.outcome

    for _, group in groupby(sorted(events, key=cause, reverse=True), key=cause):
        yield list(group)


def _events(heading: str, events: Sequence[Event], judgement: Judgement) -> Iterator[Block]:
    if not events:
        return
    yield Heading(heading)
    for alike in _causes(events):
        first = alike[0]
        what = f"{first.planner}: {_kind(first)} since {first.began[:10]}"
        where = revision_range(first)
        yield Paragraph(f"{what}, {where}" if where else what)
        lines = [line for event in alike for line in _event_lines(event, judgement)]
        yield Items([*lines, *(_advice(alike) if first.fails else [])])


def _without_plan(judgement: Judgement) -> Iterator[Block]:
    if judgement.without_plan:
        yield Heading("Without a plan")
        yield Items([each.words for each in judgement.without_plan])


def _kind(event: Event) -> str:
    if event.kind == "time":
        how = "slower night by night" if event.a_night is not None else "slower"
        return how if event.outcome == "worse" else "faster"
    return event.outcome


def _event_lines(event: Event, judgement: Judgement) -> Iterator[str]:
    head = f"{event.identity} {event.subject} ({event.state_words})"
    if event.change is not None:
        slope = f", {' to '.join(map(percent, event.a_night))} a night" if event.a_night is not None else ""
        best = f", {percent(event.over_best)} over its best" if event.over_best is not None else ""
        yield f"{head}: {percent(event.change)}{slope}{best}, told {event.told[:10]} on {event.machine}"
        return
    yield f"{head}: {change_words(event.columns, event.failure)}"
    yield from (f"{event.identity} plan: {line}" for line in _plan_lines(event, judgement))


def _plan_lines(event: Event, judgement: Judgement) -> Iterator[str]:
    if event.plans is None:
        return
    names = {column.name for column in event.columns}
    difference = judgement.plans.get(event.identity)
    if difference is not None:
        yield from structure_lines(difference.structure)
    elif event.plans[0] != event.plans[1]:
        yield "another plan; the plans were not kept, so that they cannot be compared"
    elif "schedule" in names:
        yield "the same plan, another schedule"
    elif names & {"simulated_ns", "estimated_ns", "memory_bytes"}:
        yield "the same plan and schedule: what scores them has changed"


def _advice(events: Sequence[Event]) -> list[str]:
    first = events[0]
    names = " ".join(event.identity for event in events)
    lines = [f"if it is meant to be: pipebench track ack {names} --reason '…'"]
    if first.before and first.kind == "time":
        lines.insert(0, f"to see it again: pipebench track check --against {first.before.removesuffix('-dirty')}")
    return lines


def _segments(judgement: Judgement) -> Iterator[Block]:
    if not judgement.segments:
        return
    yield Heading("New segments")
    yield Paragraph(
        "What surrounds the planner changed, so that this is no alarm; the columns that moved with it:"
    )
    lines = []
    for segment in judgement.segments:
        moved = change_words(segment.columns) or "no column moved"
        lines.append(f"{segment.subject}: {', '.join(segment.differences)}: {moved}")
    yield Items(lines)


def _speeds(speeds: Sequence[Speed]) -> Iterator[Block]:
    if not speeds:
        return
    yield Heading("Search times")
    yield Paragraph(
        "CPU time of a search over that of the calibration beside it, the median of a night's processes. "
        "Its level is the median of 30 nights; a change that was told moves it."
    )
    yield BlockTable(
        ("planner and problem", "ratio", "against its level", "state", "nights"),
        [[each.subject, *_speed_cells(each, ", imprecise" if each.imprecise else "")] for each in speeds],
        figures=(1, 2),
    )


def _speed_cells(speed: Speed, beside_state: str = "") -> list[BlockCell]:
    return [
        "-" if speed.ratio is None else f"{speed.ratio:.4g}",
        "-" if speed.change is None else percent(speed.change),
        speed.state + beside_state,
        _spark(speed.series, speed.steps),
    ]


def _spark(values: Sequence[float], steps: Sequence[int] = ()) -> BlockCell:
    """One night is no curve."""
    return Spark(values, steps) if len(values) > 1 else ""


def _benchmarks(judgement: Judgement) -> Iterator[Block]:
    if not judgement.benchmarks:
        return
    yield Heading("Benchmarks")
    yield Paragraph(
        "Ratio: CPU time over that of the reference kernel around it, compared as search times are. What has no "
        "ratio, and every benchmark until it has 30 nights, is told where even its fastest round takes more "
        "than twice what is usual. Counters are exact."
    )
    yield BlockTable(
        ("benchmark", "median", "ratio", "against its level", "state", "nights"),
        [_benchmark_row(each) for each in judgement.benchmarks],
        figures=(1, 2, 3),
    )


def _benchmark_row(each: BenchmarkSpeed) -> list[BlockCell]:
    without_ratio = ["-", "-", "no ratio", _spark(each.seconds)]
    cells = without_ratio if each.speed is None else _speed_cells(each.speed)
    return [each.name, readable_seconds(each.seconds[-1]), *cells]


def _information(judgement: Judgement) -> Iterator[Block]:
    if judgement.information:
        yield Heading("For information")
        yield Items(judgement.information)


def _control(control: Control) -> Iterator[Block]:
    """Always there: how much to believe."""
    yield Heading("A/A")
    if control.rate is None:
        yield Paragraph(
            "One planner is measured twice in the same rounds, to see how often it is told to differ from itself. "
            "No night has had enough such pairs for an answer yet."
        )
    else:
        assert control.most is not None
        assert control.spread is not None
        nights = quantity(control.nights, "night")
        yield Paragraph(
            "The same planner, measured twice in the same rounds, was told to differ in "
            f"{control.alarms} of {nights}: {100 * control.rate:.3g} %, and below {100 * control.most:.3g} % "
            f"with 95 % confidence. Typical difference: {100 * control.spread:.2g} %."
        )
    if control.tonight is not None:
        pair = control.tonight
        yield Paragraph(
            f"Tonight: {control.subject}: {pair.answer}, {percent(pair.change)}, {quantity(pair.count, 'pair')}."
        )


def _circumstances(night: Night, judgement: Judgement) -> Iterator[Block]:
    yield Heading("Circumstances")
    weather = night.weather
    facts = [
        f"recorded {night.recorded_at}, revision {night.revision or 'unknown'}, pipebench {night.pipebench}",
        f"machine: {judgement.machine.words if judgement.machine else 'unknown'}",
        f"night {judgement.nights} of this history; {readable_seconds(night.spent_s)} of a budget of "
        f"{readable_seconds(night.budget_s)}",
        f"load {weather.load[0]:g} before, {weather.load[1]:g} after",
    ]
    shares = {"some process waited for a CPU": weather.pressure_share, "stolen by others": weather.steal_share}
    for name, share in shares.items():
        if share is not None:
            facts.append(f"{name}: {100 * share:.3g} % of the time")
    if weather.quota_cpus is not None:
        facts.append(f"limited to {weather.quota_cpus:g} CPUs")
    discarded = sum(speed.discarded for speed in judgement.speeds)
    if discarded:
        facts.append(f"{discarded} pairs were discarded: their search waited more than it ran")
    if night.benchmarks:
        facts.append(f"{quantity(len(night.benchmarks), 'benchmark')} imported, of {night.benchmarks_at}")
    yield Items(facts)


def against_report(against: Against) -> TrackingReport:
    """The whole report."""
    slower = sum(each.pairs.answer == "slower" for each in against.subjects)
    worse = sum(each.outcome == "worse" for each in against.subjects)
    if slower or worse:
        verdict = Paragraph(f"{slower} slower, {worse} with a worse plan or more work.", "bad")
    elif against.verdict == "inconclusive":
        verdict = Paragraph("Inconclusive: it is not known that nothing became worse.", "warn")
    else:
        verdict = Paragraph("Nothing became worse.", "good")
    return TrackingReport(
        f"{against.distribution}: {against.after} against {against.before}", [verdict, *_revision_blocks(against)]
    )


def _revision_blocks(against: Against) -> Iterator[Block]:
    if against.notices:
        yield Items(against.notices)
    yield Heading("Search times")
    unit = "CPU time over that of the calibration beside it" if against.calibrated else "CPU time"
    yield Paragraph(f"{unit}, after / before, processes in turns; the interval misses the median in 1 % of cases.")
    yield BlockTable(
        ("planner and problem", "change", "interval", "pairs", "answer"),
        [_revision_row(each) for each in against.subjects],
        figures=(1, 2, 3),
    )
    unknown = [f"{each.subject}: {each.unknown}" for each in against.subjects if each.unknown]
    if unknown:
        yield Heading("Not known")
        yield Items(unknown)
    changed = [each for each in against.subjects if each.columns or each.notice]
    if changed:
        yield Heading("Plans and work")
        yield Items([_exact_lines(each) for each in changed])


def _revision_row(each: ComparedSubject) -> list[str]:
    pairs = each.pairs
    interval = "-"
    if pairs.low is not None and pairs.high is not None:
        interval = f"{percent(pairs.low)} … {percent(pairs.high)}"
    change = percent(pairs.change) if pairs.count else "-"
    return [each.subject, change, interval, str(pairs.count), pairs.answer if pairs.count else "not timed"]


def _exact_lines(each: ComparedSubject) -> str:
    told = change_words(each.columns, each.failure)
    return f"{each.subject}: {each.notice or f'{each.outcome}: {told}'}"
