"""pipebench certify: what proves that a plan takes its time and fits, and what proves the bound, as a file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.completion import files, of_slot, some_of
from pipebench.cli.terminal import console, print_json, say
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.certification import Outcome, Verification


@click.command()
@click.argument("sources", nargs=-1, required=True, shell_complete=files)
@click.option("--row", "rows", multiple=True, help="Only rows whose key starts so (see compare --json).")
@click.option("--planner", "planners", shell_complete=some_of(of_slot("planners")), help="Only rows of these.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The folder for the certificates, one a row.")
@click.option("--fresh", is_flag=True, help="Write those anew that stand in the folder already, too.")
@click.option(
    "--check", "checking", is_flag=True, help="SOURCES are certificates, or folders of them: check them."
)
@click.option(
    "--against", shell_complete=files, help="With --check: the store whose problems the tables are to be of."
)
@click.option("--json", "as_json", is_flag=True, help="What was written or proven, as JSON.")
def command(
    sources: tuple[str, ...],
    rows: tuple[str, ...],
    planners: str | None,
    out: Path | None,
    fresh: bool,
    checking: bool,
    against: str | None,
    as_json: bool,
) -> int:
    """Write what proves the figures of rows, or check it.

    SOURCES: stores, packed stores (.zip) or plan files. A certificate holds the costs of the plan as whole
    numbers, the start and end of each task and message, and the tables behind the bound. --check follows every
    rule with a small checker that uses nothing else of the suite, and names the place where one is broken.
    A certificate of the same row that this version wrote into the folder before is left as it is.
    --against STORE asks besides whether the tables are those of the stored problem.
    Exit code 5 where a plan could not be certified, 1 where a certificate is refused.
    """
    if checking:
        if rows or planners or out is not None or fresh:
            raise PipebenchError("--check reads certificates", "leave out --row, --planner, -o and --fresh")
        return _check(sources, against, as_json)
    if against is not None:
        raise PipebenchError("--against goes with --check", "leave it out")
    if out is None:
        raise PipebenchError("no folder for the certificates", "name one with -o, or check some with --check")
    from pipebench.hooks.syntax import split_list

    return _write(sources, rows, split_list(planners) if planners else [], out, fresh, as_json)


def _write(
    sources: tuple[str, ...], rows: tuple[str, ...], planners: list[str], out: Path, fresh: bool, as_json: bool
) -> int:
    from pipebench.bench.certification import certify, subjects
    from pipebench.bench.store.access import storing
    from pipebench.certificates.write import BoundParts
    from pipebench.cli.progress import long_work
    from pipebench.report.problem_names import short_subject
    from pipebench.report.text.certificates import print_outcomes

    chosen = [subject for source in sources for subject in subjects(source, rows, planners)]
    with storing(out, "folder"):
        out.mkdir(parents=True, exist_ok=True)
    done: list[Outcome] = []
    bounds = BoundParts()
    try:
        with long_work("starting …") as working:
            for count, subject in enumerate(chosen, 1):
                working(f"{count} of {len(chosen)}: {subject.planner} on {short_subject(subject.model)} …")
                done.append(certify(subject, out, bounds, fresh))
    except KeyboardInterrupt:
        say(f"{_count(done, out)}; the same command goes on after them", err=True)
        raise
    if as_json:
        print_json({"certificates": [_plain(each) for each in done]})
    else:
        print_outcomes(console(), done)
    without_plan = sum(each.subject.row is not None and each.subject.row.plan_id is None for each in done)
    certified = sum(each.file is not None for each in done)
    say(f"{_count(done, out)}; check them: pipebench certify --check {out}", err=True)
    if certified == 0:
        return ExitCode.NOTHING_RAN
    return ExitCode.OK if certified + without_plan == len(done) else ExitCode.SOME_FAILED


def _count(done: "list[Outcome]", out: Path) -> str:
    certified, stood = sum(each.file is not None for each in done), sum(each.stood for each in done)
    before = f", {stood} of them from before (--fresh writes them anew)" if stood else ""
    return f"{quantity(certified, 'certificate')} in {out}{before}"


def _plain(each: "Outcome") -> dict[str, object]:
    there = each.file is not None
    return {
        "row": each.subject.key,
        "planner": each.subject.planner,
        "regime": each.subject.regime,
        "file": str(each.file) if there else None,
        "stood": each.stood,
        "time_ns": each.time_ns if there else None,
        "bound_ns": each.bound_ns if there else None,
        "reason": each.reason,
        "seconds": each.seconds,
    }


def _check(paths: tuple[str, ...], against: str | None, as_json: bool) -> int:
    from pipebench.bench.certification import certificate_files, verify
    from pipebench.bench.store.results import open_results
    from pipebench.certificates.write import BoundParts
    from pipebench.report.text.certificates import sentence

    store = None if against is None else open_results(against)
    found: list[Verification] = []
    bounds = BoundParts()
    for path in certificate_files(paths):
        found.append(verify(path, store, bounds))
        if not as_json:
            say(sentence(found[-1]))
    if as_json:
        print_json({"certificates": [_proof(each) for each in found]})
    return ExitCode.OK if all(each.proven for each in found) else ExitCode.CONDITION_FAILED


def _proof(each: "Verification") -> dict[str, object]:
    proven = each.proven
    return {
        "file": each.path,
        "proven": proven is not None,
        "planner": proven.about["planner"] if proven else None,
        "problem": proven.about["model"] if proven else None,
        "regime": proven.regime if proven else None,
        "time_ns": proven.time_ns if proven else None,
        "bound_ns": proven.bound_ns if proven else None,
        "reason": each.reason,
    }
