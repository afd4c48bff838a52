"""pipebench validate: is a plan valid?"""

import click

from pipebench.cli.application import print_json
from pipebench.domain.errors import ExitCode


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON.")
def command(file: str, as_json: bool) -> int:
    """Check the plan in FILE, its pins, and its schedule where it has one; exit code 1 when it is invalid."""
    from pipebench.cli.verdict import verdict_of
    from pipebench.formats.native import read_plan
    from pipebench.report.units import gigabytes

    planned = read_plan(file)
    verdict = verdict_of(planned)
    if as_json:
        print_json(verdict)
    elif verdict.status == "valid":
        peak = max(verdict.peak_bytes.values(), default=0)
        fit = f", {verdict.fit}: {gigabytes(peak)} on the fullest device" if verdict.fit else ""
        click.echo(f"valid{fit}" if planned.schedule is not None else "valid (the file holds no schedule)")
    else:
        witness = verdict.witness
        click.echo(f"{verdict.status}: {f'{witness.rule}: {witness.message}' if witness else verdict.reason}")
    return ExitCode.OK if verdict.status == "valid" else ExitCode.CONDITION_FAILED
