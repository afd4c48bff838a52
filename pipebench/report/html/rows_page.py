"""The page of a comparison, a suite or a store."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pipebench.bench.services import HostServices
from pipebench.bench.standings import standings
from pipebench.domain.row import Row
from pipebench.hooks.manager import Host
from pipebench.report.html.cells import COLUMNS
from pipebench.report.html.entry import Entries, Plans
from pipebench.report.html.template import page, picture
from pipebench.report.quality_svg import quality_svg
from pipebench.report.rounds import merged_rounds
from pipebench.report.standings_text import explanations
from pipebench.report.standings_text import heading as standings_heading
from pipebench.report.units import seconds


def rows_page(
    host: Host,
    rows: Iterable[Row],
    plans: Plans,
    repeat: Callable[[Row], str],
    title: str,
    *,
    source: str = "",
    command: str = "",
) -> str:
    """The whole page. repeat: the command that runs a row again."""
    shown = merged_rounds(rows)
    made = Entries(plans, HostServices(host))
    entries = [made.entry(number, row, repeat(row)) for number, row in enumerate(shown, 1)]
    return page(
        "rows.html",
        title=title,
        source=source,
        command=command,
        columns=COLUMNS,
        entries=entries,
        problems=len({row.problem_id for row in shown}),
        choices={
            "regime": _values(row.regime for row in shown),
            "planner": _values(row.planner for row in shown),
            "problem": _values(entry.problem for entry in entries),
            "status": _values(row.status for row in shown),
        },
        charts=[picture(svg) for svg in _charts(shown)],
        standings=list(_standings(shown)),
        environment=_environment(shown),
    )


def _values(found: Iterable[str]) -> list[str]:
    return sorted(set(found))


def _charts(rows: Sequence[Row]) -> Iterable[str]:
    for regime in ("sync", "async"):
        some = [row for row in rows if row.regime == regime and row.search_cpu_s and row.simulated_s]
        if some:
            yield quality_svg(some, f"{regime}: quality against search time")


def _standings(rows: Sequence[Row]) -> Iterable[dict[str, Any]]:
    """Across problems, where there are several and several entrants."""
    if len({row.workload_id for row in rows}) < 2:
        return
    for regime in standings(rows).regimes:
        if len(regime.standings) < 2:
            continue
        yield {
            "heading": f"Standings, {standings_heading(regime)}",
            "columns": ("planner", "scheduler", "solved", "x best", "w/t/l", "search"),
            "lines": [
                (
                    f"{each.entrant.planner}{' (adapted)' if each.entrant.adapted else ''}",
                    each.entrant.scheduler,
                    f"{each.solved}/{each.asked}",
                    "-" if each.ratio is None else f"{each.ratio:.3f}",
                    f"{each.wins}/{each.ties}/{each.losses}",
                    seconds(each.search_s),
                )
                for each in regime.standings
            ],
            "words": [*explanations(regime), *regime.notices],
        }


def _environment(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Each figure once; several values of one where rows differ."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in row.environment.items():
            found.setdefault(name, {})[value] = None
    return [
        (name, ", ".join(values) if len(values) <= 4 else f"{len(values)} values")
        for name, values in found.items()
    ]
