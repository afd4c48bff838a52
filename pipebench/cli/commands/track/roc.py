"""pipebench track roc: what the rule finds, and what it costs in false alarms."""

from pathlib import Path
from typing import Any

import click

from pipebench.cli.commands.track import options
from pipebench.cli.commands.track.options import html_option, markdown_option
from pipebench.cli.option_groups import HOW, OUTPUT, GroupedCommand, option
from pipebench.cli.parameters import WholeFrom


@click.command(cls=GroupedCommand)
@option(
    HOW,
    "--histories",
    type=WholeFrom(1),
    default=20,
    show_default=True,
    help="Histories of each kind that the rule judges.",
)
@option(
    HOW,
    "--beside",
    type=WholeFrom(1),
    default=20,
    show_default=True,
    help="Histories of each kind that the other tools judge.",
)
@option(HOW, "--asv", metavar="PYTHON", help="The Python of an environment with asv: its rule beside.")
@option(HOW, "--otava", metavar="PYTHON", help="The Python of an environment with apache-otava: its rule beside.")
@option(HOW, "--seed", type=WholeFrom(0), default=0, show_default=True, help="Of the histories.")
@option(HOW, "--jobs", type=WholeFrom(1), default=1, show_default=True, help="Processes side by side.")
@html_option
@markdown_option
@option(OUTPUT, "--json", "as_json", is_flag=True, help="All figures as JSON on stdout.")
def command(
    histories: int,
    beside: int,
    seed: int,
    jobs: int,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
    **pythons: Any,
) -> int:
    """Plant steps and drifts in made-up histories, and say what the rule finds, how soon, and its false alarms.

    Steps of 3, 5, 10 and 20 %, drifts of 0.2, 0.3 and 0.5 % a night, at a CV of 2.5, 6 and 20 %, at several
    thresholds: the usual one and what it is traded for. The same seed gives the same figures. 20 histories take
    some ten seconds, 400 some minutes; another tool takes about a minute for 10.
    """
    from pipebench.cli.progress import long_work
    from pipebench.domain.limits import MOST_WORKERS
    from pipebench.report.tracking.trade_off import trade_off_report
    from pipebench.track.roc.judges import INSTALL, Judge
    from pipebench.track.roc.trade_off import measure_trade_off

    options.prepare(html, markdown)
    judges = [(Judge("pipebench"), histories)]
    judges += [(Judge(tool, pythons[tool]), beside) for tool in INSTALL if pythons[tool]]
    with long_work("judging made-up histories …") as working:
        found = measure_trade_off(
            judges,
            seed,
            min(jobs, MOST_WORKERS),
            lambda done, count: working(f"judging made-up histories: {done} of {count} kinds …"),
        )
    report = trade_off_report(found)
    options.tell(report, html, markdown, found if as_json else None)
    return 0
