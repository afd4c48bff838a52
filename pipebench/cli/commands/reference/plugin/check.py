"""pipebench plugin check: the conformance kit."""

from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import of_every_slot, one_of
from pipebench.cli.terminal import print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError, PluginNotLoaded

if TYPE_CHECKING:
    from pipebench.testing.verdicts import CheckOutcome, ConformanceReport


MARKS = {"passed": "ok", "waived": "waived", "failed": "FAILED"}


@click.command()
@click.argument("name", shell_complete=one_of(of_every_slot))
@click.option("--only", multiple=True, help="Only this check; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="Every outcome as JSON.")
def command(name: str, only: tuple[str, ...], as_json: bool) -> int:
    """Check a plugin: does it do what it says, on problems small enough to know what is right?

    NAME: a component, an installed distribution, or a planner as ./file.py or cmd:program. Every call is made in
    a process of its own, with a limit. A check is waived where it does not apply, or where the plugin's
    PIPEBENCH_WAIVED says why it does not hold. Exit code 0 when none failed, 1 when one did.
    """
    from pipebench.testing.kit import check_plugin

    host = open_host()
    show = None if as_json else _show
    try:
        report = check_plugin(host, name, show, only, _tell)
    except PluginNotLoaded as error:
        why = [each.advice for each in host.troubles if name in str(each)]
        raise PluginNotLoaded(": ".join([error.message, *why[:1]]), error.hint) from error
    show_new_warnings(host)
    if as_json:
        print_json({"target": name, "totals": _totals(report), "outcomes": report.outcomes})
    else:
        say(f"{name}: {report.totals}")
    if report.count("waived") == len(report.outcomes):
        raise PipebenchError(f"{name}: no check ran", exit_code=ExitCode.NOTHING_RAN)
    return ExitCode.CONDITION_FAILED if report.count("failed") else ExitCode.OK


def _tell(words: str) -> None:
    say(words, err=True)


def _show(outcome: "CheckOutcome") -> None:
    line = f"{MARKS[outcome.status]:<7} {outcome.slot} {outcome.component}: {outcome.check}"
    say(f"{line}: {outcome.reason}" if outcome.reason else line)


def _totals(report: "ConformanceReport") -> dict[str, int]:
    waived, failed = report.count("waived"), report.count("failed")
    return {"run": len(report.outcomes) - waived, "waived": waived, "failed": failed}
