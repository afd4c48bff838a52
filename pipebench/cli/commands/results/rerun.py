"""pipebench rerun: stored trials once more, each marked same, different or not runnable."""

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import files
from pipebench.cli.parameters import trust_in_files, trust_option
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError


@click.command()
@click.argument("results", shell_complete=files)
@click.option("--row", "rows", multiple=True, help="Only rows whose key starts so (see compare --json).")
@trust_option
@click.option("--json", "as_json", is_flag=True, help="Each row with what differs, as JSON.")
def command(results: str, rows: tuple[str, ...], trust: bool, as_json: bool) -> int:
    """Run the trials of a store, or of a packed one, again and compare.

    RESULTS: a store folder or a packed store (.zip). The store is only read. A row is `same` when all its
    columns but the times of search are; beside it stands what differs in code, packages and machine.
    A row whose planner is a program or a Python file runs with --trust alone: look at it first.
    Exit code 0 when all are the same, 1 when one is different, 5 when one could not be run.
    """
    from pipebench.bench.reproduction.rerun import Rerun, rerun
    from pipebench.bench.store.results import open_results
    from pipebench.cli.progress import long_work
    from pipebench.report.text.measurements.runs import print_reruns

    opened = open_results(results)
    for notice in opened.notices:
        say(f"warning: {notice}", err=True)
    chosen = [stored for stored in opened.stored if not rows or stored.key.startswith(rows)]
    if not chosen:
        hint = "leave --row out to run all" if opened.stored else "give a store or a packed store (.zip)"
        raise PipebenchError(f"{results!r} has no such trial", hint, ExitCode.NOTHING_RAN)
    host = open_host()
    done: list[Rerun] = []
    trusting = trust_in_files(trust)
    with long_work("starting …") as working:
        for count, stored in enumerate(chosen, 1):
            what = f"{stored.row.planner} on {stored.row.profile}"
            working(f"{count} of {len(chosen)}: {what} …")
            done.append(rerun(host, stored, opened.behind, trusting, results))
    show_new_warnings(host)
    if as_json:
        print_json({"rows": done})
    else:
        print_reruns(console(), done)
    if any(each.mark == "different" for each in done):
        return ExitCode.CONDITION_FAILED
    return ExitCode.SOME_FAILED if any(each.mark != "same" for each in done) else ExitCode.OK
