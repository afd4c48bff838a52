"""Standings across problems as people read them, 80 columns wide."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.bench.standings import Agreement, Duel, Entrant, RegimeStandings, Standings
from pipebench.report.text.tables import print_table
from pipebench.report.units import seconds

MOST_DUELS = 10


def print_standings(console: Console, standings: Standings) -> None:
    """One block a regime in which several met: means, duels, rank agreement, and what the figures mean."""
    for regime in standings.regimes:
        if len(regime.standings) < 2:
            continue
        console.print(Text(heading(regime), style="bold"))
        print_table(console, means_table(regime))
        for line in (*explanations(regime), *regime.notices):
            _line(console, line)
        if regime.duels:
            console.print()
            print_table(console, duels_table(shown_duels(regime)))
            if len(regime.duels) > MOST_DUELS:
                _line(console, f"{len(regime.duels) - MOST_DUELS} more pairs are in the JSON")
            if any(duel.p is not None for duel in regime.duels):
                _line(console, "p: exact signed-rank test over problems, corrected for all pairs (Holm)")
        if regime.agreements:
            console.print()
            _line(console, agreement_line(regime.agreements))
        console.print()


def heading(regime: RegimeStandings) -> str:
    """What a block is about."""
    return f"{regime.regime}: {_count(regime.problems, 'problem')}, {len(regime.standings)} planners x schedulers"


def means_table(regime: RegimeStandings) -> Table:
    """Solved of asked, mean ratio to the best known, wins/ties/losses, mean search CPU; best first."""
    made = _table("planner", "scheduler")
    for title in ("solved", "x best", "w/t/l", "search"):
        made.add_column(title, justify="right", no_wrap=True)
    for each in regime.standings:
        made.add_row(
            *_names(each.entrant),
            f"{each.solved}/{each.asked}",
            "-" if each.ratio is None else f"{each.ratio:.3f}",
            f"{each.wins}/{each.ties}/{each.losses}",
            seconds(each.search_s),
        )
    return made


def explanations(regime: RegimeStandings) -> list[str]:
    """What the columns mean, and why search times are missing where they are."""
    lines = [
        f"x best: geometric mean of time / best known; unsolved (or worse) counts {regime.penalty_ratio:g}",
        f"w/t/l: against every other line, problem by problem; a tie is within {100 * regime.tie:g} %",
    ]
    if regime.search_refused:
        lines.append(f"search times are not compared: {regime.search_refused}")
    else:
        lines.append(
            f"search: geometric mean of CPU, shifted by {seconds(regime.shift_s)}; "
            f"unsolved counts {seconds(regime.penalty_search_s)}"
        )
    return lines


def shown_duels(regime: RegimeStandings) -> list[Duel]:
    """The clearest duels: smallest p, then the most contests."""
    order = sorted(regime.duels, key=lambda duel: (1.0 if duel.p is None else duel.p, -duel.contests))
    return order[:MOST_DUELS]


def duels_table(duels: list[Duel]) -> Table:
    """Each pair: median of time / time (below 1: the first is faster), wins/ties/losses of the first, p."""
    made = _table("first", "second")
    for title in ("time ratio", "w/t/l", "p"):
        made.add_column(title, justify="right", no_wrap=True)
    for duel in duels:
        made.add_row(
            escape(str(duel.first)),
            escape(str(duel.second)),
            "-" if duel.median_ratio is None else f"{duel.median_ratio:.3f}",
            f"{duel.wins}/{duel.ties}/{duel.losses}",
            "-" if duel.p_holm is None else f"{duel.p_holm:.2g}",
        )
    return made


def agreement_line(agreements: tuple[Agreement, ...]) -> str:
    """Mean tau-b of each pair of rungs, and over how many problems."""
    told = [
        f"{each.lower}/{each.upper} {each.mean_tau:.2f} ({_count(each.counted, 'problem')})"
        for each in agreements
        if each.mean_tau is not None
    ]
    return f"rank agreement (Kendall's tau-b): {', '.join(told) or 'all planners are equal on one side'}"


def _names(entrant: Entrant) -> tuple[str, str]:
    planner = f"{entrant.planner} (adapted)" if entrant.adapted else entrant.planner
    return escape(planner), escape(entrant.scheduler or "-")


def _table(*names: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        made.add_column(name, overflow="fold")
    return made


def _line(console: Console, text: str) -> None:
    console.print(Text(f"  {text}", overflow="fold"))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
