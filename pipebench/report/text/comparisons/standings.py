"""Standings across problems as people read them, 80 columns wide."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.standings import Agreement, Duel, Entrant, RegimeStandings, Standing, Standings
from pipebench.documents.units import quantity
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import seconds

MOST_DUELS = 10
FEWEST_AGREEING = 2
"""One problem says nothing of how well two kinds of figures agree in rank."""


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
                _line(console, "p: signed-rank test over problems, corrected for all pairs (Holm)")
        if any(each.counted >= FEWEST_AGREEING for each in regime.agreements):
            console.print()
            _line(console, agreement_line(regime.agreements))
        console.print()


def heading(regime: RegimeStandings) -> str:
    """What a block is about."""
    return f"{regime.regime}: {quantity(regime.problems, 'problem')}, {quantity(len(regime.standings), 'entrant')}"


COLUMNS = ("solved", "x best", "common", "w/t/l", "search", "PAR2")
DUEL_COLUMNS = ("first", "second", "time ratio", "w/t/l", "p")


def figures(regime: RegimeStandings, standing: Standing) -> tuple[str, ...]:
    """One text for each of COLUMNS; `n/a` where an entrant was not run at all."""
    if not standing.asked:
        return ("n/a",) * len(COLUMNS)
    return (
        f"{standing.solved}/{regime.problems}",
        _ratio(standing.ratio),
        _ratio(standing.common_ratio),
        f"{standing.wins}/{standing.ties}/{standing.losses}",
        seconds(standing.search_s),
        seconds(standing.par2_s),
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def means_table(regime: RegimeStandings) -> Table:
    """Solved of all, mean ratios to the best known, wins/ties/losses, search CPU; best first."""
    named = any(each.entrant.scheduler for each in regime.standings)
    made = _table("planner", "scheduler") if named else _table("planner")
    for title in COLUMNS:
        made.add_column(title, justify="right", no_wrap=True)
    for each in regime.standings:
        who = _names(each.entrant)
        made.add_row(*(who if named else who[:1]), *figures(regime, each))
    return made


def explanations(regime: RegimeStandings) -> list[str]:
    """What the columns mean, and why search times are missing where they are."""
    lines = [
        "solved: of all problems of the block; those that an entrant does not take count nowhere else (n/a)",
        "x best: geometric mean of time / best known, over what it solved; common: the same over the "
        f"{quantity(regime.common, 'problem')} that all with a plan solved",
        f"w/t/l: against every other line, problem by problem; a tie is within {100 * regime.tie:g} %",
    ]
    if regime.search_refused:
        lines.append(f"search times are not compared: {regime.search_refused}")
    else:
        lines.append(
            f"search: geometric mean of CPU over what it solved, shifted by {seconds(regime.shift_s)}; "
            f"PAR2: mean of CPU, unsolved counts {seconds(regime.unsolved_search_s)}"
        )
    return lines


def shown_duels(regime: RegimeStandings) -> list[Duel]:
    """The clearest duels: smallest p, then the most contests."""
    order = sorted(regime.duels, key=lambda duel: (1.0 if duel.p is None else duel.p, -duel.contests))
    return order[:MOST_DUELS]


def duels_table(duels: list[Duel]) -> Table:
    """Each pair: median of time / time (below 1: the first is faster), wins/ties/losses of the first, p."""
    made = _table(*DUEL_COLUMNS[:2])
    for title in DUEL_COLUMNS[2:]:
        made.add_column(title, justify="right", no_wrap=True)
    for duel in duels:
        made.add_row(
            str(duel.first),
            str(duel.second),
            "-" if duel.median_ratio is None else f"{duel.median_ratio:.3f}",
            f"{duel.wins}/{duel.ties}/{duel.losses}",
            "-" if duel.p_holm is None else f"{duel.p_holm:.2g}",
        )
    return made


def agreement_line(agreements: tuple[Agreement, ...]) -> str:
    """Mean tau-b of each pair of rungs, and over how many problems."""
    told = [
        f"{each.lower}/{each.upper} {each.mean_tau:.2f} ({quantity(each.counted, 'problem')})"
        for each in agreements
        if each.mean_tau is not None and each.counted >= FEWEST_AGREEING
    ]
    return f"rank agreement (Kendall's tau-b): {', '.join(told) or 'all planners are equal on one side'}"


def _names(entrant: Entrant) -> tuple[str, str]:
    planner = entrant.planned_by
    return planner, entrant.scheduler or "-"


def _table(*names: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        made.add_column(name, overflow="fold")
    return made


def _line(console: Console, text: str) -> None:
    print_line(console, f"  {text}")
