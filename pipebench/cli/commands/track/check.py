"""pipebench track check: did anything become slower or worse?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.commands.track import options
from pipebench.cli.commands.track.options import (
    acknowledged_option,
    duration_s,
    history_option,
    html_option,
    markdown_option,
)
from pipebench.cli.completion import of_slot, some_of
from pipebench.cli.option_groups import HOW, OUTPUT, WHO, GroupedCommand, option
from pipebench.cli.parameters import trust_option
from pipebench.cli.terminal import console, say
from pipebench.cli.workload_options import workload_options
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.hooks.trust import OPTION


@click.command(cls=GroupedCommand)
@history_option
@acknowledged_option
@option(HOW, "--against", help="A git revision or a version of this repository's package to compare with.")
@option(
    WHO,
    "--planners",
    shell_complete=some_of(of_slot("planners")),
    multiple=True,
    help="With --against: planners, by commas  [default: the package's]",
)
@option(HOW, "--budget", callback=duration_s, default="20m", show_default=True, help="With --against: time.")
@trust_option
@html_option
@markdown_option
@option(OUTPUT, "--json", "as_json", is_flag=True, help="The judgement as JSON on stdout.")
@workload_options
def command(
    history: Path,
    acknowledged: Path | None,
    against: str | None,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
    **choice: Any,
) -> int:
    """Judge the last night: exit code 1 when something became worse, 4 when nothing was measured.

    Reports are written before that. With --against both revisions are installed side by side and run in turns on
    this machine; no history is needed. Exit code 6 says that this was inconclusive: a search was not timed, or its
    pairs do not tell 10 % more.
    """
    options.prepare(html, markdown)
    if against is not None:
        return _against(against, choice, html, markdown, as_json)
    from pipebench.report.tracking.reports import night_report
    from pipebench.track.judgement.judgement import require_nights
    from pipebench.track.nights.history import open_history

    _refuse_choice(choice)
    judgement = options.judged(open_history(history), acknowledged)
    report = night_report(judgement)
    if judgement.night is None and not as_json:
        options.write(report, html, markdown)
    else:
        answer = {"verdict": judgement.verdict, "judgement": judgement}
        options.tell(report, html, markdown, answer if as_json else None)
    require_nights(judgement)
    return judgement.exit_code


def _refuse_choice(choice: dict[str, Any]) -> None:
    """Options of --against alone."""
    written = _option_names()
    unsaid = (None, ())
    said = [name for name, value in choice.items() if value is not False and value not in unsaid]
    named = [written[name] for name in said if name != "budget"]
    if named:
        raise PipebenchError(f"{', '.join(named)} would be for --against", "name a revision, or leave them out")


def _option_names() -> dict[str, str]:
    """The options of the command, by the names under which they arrive."""
    options = click.get_current_context().command.params
    return {option.name: option.opts[0] for option in options if option.name is not None}


def _against(named: str, choice: dict[str, Any], html: Path | None, markdown: Path | None, as_json: bool) -> int:
    from pipebench.bench.suites.selection import suites_named
    from pipebench.report.tracking.reports import against_report
    from pipebench.system.scratch import scratch_folder
    from pipebench.track.against.comparison import compare_sides
    from pipebench.track.against.installation import install_sides

    suites_named(choice["suites"])
    budget_s = choice.pop("budget")
    with scratch_folder() as scratch:
        say("installing both …", err=True)
        sides = install_sides(named, Path.cwd(), scratch)
        arguments = _arguments(choice, sides.distribution)
        say(f"{sides.after.name} against {sides.before.name}: running in turns …", err=True)
        found = compare_sides(sides, arguments, Path.cwd(), budget_s, _print_pair)
    report = against_report(found)
    answer = {"verdict": found.verdict, "worse": found.worse, "against": found}
    options.tell(report, html, markdown, answer if as_json else None)
    return found.exit_code


def _arguments(choice: dict[str, Any], distribution: str) -> Sequence[str]:
    """The options of `compare` for both sides."""
    planners = choice.pop("planners") or (",".join(_planners_of(distribution)),)
    words = [word for name in planners for word in ("--planners", name)]
    words += [OPTION] if choice.pop("trust") else []
    written = _option_names()
    for name, value in choice.items():
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        words += [word for each in values for word in (written[name], str(each))]
    return words


def _planners_of(distribution: str) -> list[str]:
    """The planners that a distribution offers here. Raises PipebenchError where it offers none."""
    from packaging.utils import canonicalize_name

    host = open_host()
    offered = {name: registered.provider.distribution for name, registered in host.slot("planners").items()}
    show_new_warnings(host)
    found = sorted(
        name
        for name, provider in offered.items()
        if canonicalize_name(provider) == canonicalize_name(distribution)
    )
    if not found:
        raise PipebenchError(
            f"{distribution!r} offers no planner here", "install it, or name --planners", ExitCode.NOTHING_RAN
        )
    return found


def _print_pair(done: int, most: int) -> None:
    if console(stderr=True).is_terminal or done == 0:
        say(f"pair {done + 1} of at most {most}", err=True)
