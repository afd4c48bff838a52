"""What a rule finds against its false alarms, as a report."""

from collections.abc import Iterator, Sequence

from pipebench.report.tracking.blocks import Block, BlockTable, Heading, Paragraph, TrackingReport
from pipebench.track.roc.histories import BEFORE, CHANGES, CVS, STEP_NIGHTS, TOLD_BY, Planted
from pipebench.track.roc.judges import DEFAULTS, THRESHOLDS, Tool
from pipebench.track.roc.trade_off import FalseAlarms, Found, TradeOff

TURNED: dict[Tool, str] = {"pipebench": "limits x", "asv": "threshold", "otava": "p below"}


def trade_off_report(trade_off: TradeOff) -> TrackingReport:
    """The whole report."""
    beside = ", ".join(f"{name} {version}" for name, version in trade_off.versions.items())
    counts = {each.tool: each.histories for each in trade_off.found}
    judged = ", ".join(f"{count} by {tool}" for tool, count in counts.items())
    return TrackingReport(
        "What the rule finds, and its false alarms",
        [
            Paragraph(
                f"Histories are made up: seed {trade_off.seed}, {BEFORE} steady nights before a change, each "
                f"night judged by what was known that night; of each kind {judged}."
                + (f" Beside it {beside}." if beside else "")
            ),
            *_false_alarms(trade_off),
            *(block for cv in CVS for block in _found(trade_off, cv)),
        ],
    )


def _false_alarms(trade_off: TradeOff) -> Iterator[Block]:
    yield Heading("False alarms, per mille of series and nights")
    yield Paragraph("Nothing was planted. Behind the rate its 95 % interval. Usual thresholds are marked with *.")
    rows = []
    for tool, threshold in _rules(trade_off):
        mine = [each for each in trade_off.false_alarms if (each.tool, each.threshold) == (tool, threshold)]
        cells = {each.cv: _rate(each) for each in mine}
        rows.append([_rule_words(tool, threshold), *(cells.get(cv, "-") for cv in CVS)])
    yield BlockTable(("rule", *(f"CV {100 * cv:g} %" for cv in CVS)), rows, figures=(1, 2, 3))


def _rate(each: FalseAlarms) -> str:
    rate = 1000 * each.alarms / each.nights if each.nights else 0.0
    return f"{rate:.2f} ({1000 * each.low:.2f} … {1000 * each.high:.2f})"


def _found(trade_off: TradeOff, cv: float) -> Iterator[Block]:
    yield Heading(f"Found at CV {100 * cv:g} %")
    yield Paragraph(
        f"Steps: share told within {STEP_NIGHTS} nights, median nights until told. Drifts a night: share told by "
        f"the night in which they sum up to {100 * TOLD_BY:g} %, median sum when told."
    )
    rows = []
    for tool, threshold in _rules(trade_off):
        mine = [each for each in trade_off.found if (each.tool, each.threshold, each.cv) == (tool, threshold, cv)]
        cells = {(each.shape, each.size): _cell(each) for each in mine}
        rows.append([_rule_words(tool, threshold), *(cells.get((each.shape, each.size), "-") for each in CHANGES)])
    yield BlockTable(("rule", *map(_change_words, CHANGES)), rows, figures=tuple(range(1, len(CHANGES) + 1)))


def _cell(each: Found) -> str:
    share = f"{100 * each.told / each.histories:.0f} %"
    if each.delay is None or each.summed is None:
        return f"{share}, -"
    return f"{share}, {f'{100 * each.summed:.1f} %' if each.shape == 'drift' else f'{each.delay:.0f}'}"


def _rules(trade_off: TradeOff) -> Sequence[tuple[Tool, float]]:
    tools = {each.tool for each in trade_off.found}
    return [(tool, threshold) for tool, values in THRESHOLDS.items() if tool in tools for threshold in values]


def _rule_words(tool: Tool, threshold: float) -> str:
    return f"{tool}, {TURNED[tool]} {threshold:g}{' *' if threshold == DEFAULTS[tool] else ''}"


def _change_words(planted: Planted) -> str:
    return f"{'step' if planted.shape == 'step' else 'drift'} {100 * planted.size:g} %"
