"""pipebench track: what became slower or worse, night after night."""

import click

from pipebench.cli.groups import lazy_group

COMMANDS = {
    "record": "measure a night and add it to the history",
    "check": "judge the history, or two revisions side by side",
    "report": "the last night as HTML and Markdown",
    "page": "all nights on one page: a curve for each series",
    "ack": "acknowledge changes, with a reason",
    "convert": "make a history of nights that an earlier pipebench kept",
    "roc": "what the rule finds, and its false alarms, on made-up histories",
    "init": "write the nightly workflow of a repository",
}


@click.group(cls=lazy_group("pipebench.cli.commands.track", {"Commands": COMMANDS}, "track "))
def command() -> None:
    """Tell next morning that a planner became slower or its plans worse, without false alarms.

    record adds a night to the history, check judges it. Plans and work counters are compared exactly, from the
    second night; search times and benchmarks by their ratio to a calibration, after 30 nights of one class of
    machine.
    """
