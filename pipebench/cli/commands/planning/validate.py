"""pipebench validate: is a plan valid? The verdict of the suite, with or without a schedule."""

from typing import TYPE_CHECKING

import click

from pipebench.cli.completion import files
from pipebench.cli.terminal import print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.documents.document import PlannedProblem
    from pipebench.domain.verdict import Verdict


def verdict_of(planned: "PlannedProblem") -> "Verdict":
    """As `compare` judges it, pins included; without a schedule, what can be said before there is one."""
    from pipebench.bench.score import judge
    from pipebench.check import check_pins, check_plan
    from pipebench.domain.verdict import with_witness

    if planned.schedule is not None:
        return judge(planned.problem, planned.plan, planned.schedule)
    verdict = check_plan(planned.problem, planned.plan)
    if verdict.status == "invalid":
        return verdict
    return with_witness(verdict, check_pins(planned.problem, planned.plan).witness)


@click.command()
@click.argument("file", shell_complete=files)
@click.option(
    "--plan", shell_complete=files, help="For a schedule: the plan whose order it is, to check its memory as well."
)
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
def command(file: str, plan: str | None, as_json: bool) -> int:
    """Check the plan in FILE, its pins, and its schedule where it has one; exit code 1 when it is invalid.

    FILE may be a schedule of torch.distributed.pipelining or torchtitan (*.csv, compute only).
    """
    from pipebench.formats.documents import read_plan

    if file.endswith(".csv"):
        return _schedule(file, plan, as_json)
    if plan is not None:
        raise PipebenchError("--plan goes with a schedule (*.csv)", "leave it out")
    planned = read_plan(file)
    return _print_verdict(verdict_of(planned), planned.schedule is not None, as_json)


def _print_verdict(verdict: "Verdict", scheduled: bool, as_json: bool) -> int:
    from pipebench.report.units import gigabytes

    if as_json:
        print_json(verdict)
    elif verdict.status == "valid":
        peak = max(verdict.peak_bytes.values(), default=0)
        fit = f", {verdict.fit}: {gigabytes(peak)} on the fullest device" if verdict.fit else ""
        say(f"valid{fit}" if scheduled else "valid (the file holds no schedule)")
    else:
        witness = verdict.witness
        say(f"{verdict.status}: {f'{witness.rule}: {witness.message}' if witness else verdict.reason}")
    return ExitCode.OK if verdict.status == "valid" else ExitCode.CONDITION_FAILED


def _schedule(file: str, plan: str | None, as_json: bool) -> int:
    """A schedule by itself, or with the plan whose stages it orders."""

    from pipebench.bench.score import judge
    from pipebench.formats.documents import read_plan
    from pipebench.formats.frameworks.torch_schedule import as_schedule, read_torch_schedule

    try:
        found = read_torch_schedule(file)
    except PipebenchError as error:
        raise PipebenchError(error.message, error.hint, ExitCode.CONDITION_FAILED) from None
    if plan is not None:
        planned = read_plan(plan)
        # What the plan keeps in flight goes with its own order; this one says by itself what it keeps.
        ordered = planned.plan.without_in_flight()
        schedule = as_schedule(planned.problem, ordered, found, file)
        return _print_verdict(judge(planned.problem, ordered, schedule), True, as_json)
    if as_json:
        print_json(
            {
                "status": "valid",
                "ranks": len(found.ranks),
                "stages": len(found.rank_of),
                "micro_batches": found.micro_batches,
                "rank_of_stage": found.rank_of,
                "peak_in_flight": found.peaks,
            }
        )
    else:
        say(
            f"valid: {len(found.ranks)} ranks, {len(found.rank_of)} stages, {found.micro_batches} micro-batches; "
            f"most in flight by rank: {', '.join(map(str, found.peaks))} (bytes: with --plan)"
        )
    return ExitCode.OK
