"""pipebench show: what is in a file."""

from typing import Any

import click

from pipebench.cli.application import console, print_json


@click.command()
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="The value as JSON.")
def command(file: str, as_json: bool) -> int:
    """Show a plan, profile, set of rows or any other pipebench file, or a foreign profile."""
    from pipebench.formats.any_file import read_any

    kind, value = read_any(file)
    if as_json:
        print_json(value)
        return 0
    printers: dict[str, Any] = {"plan": _plan, "rows": _rows, "profile": _profile}
    printers.get(kind, _other)(kind, value)
    return 0


def _plan(kind: str, value: Any) -> None:
    from pipebench.check import check_plan, check_schedule
    from pipebench.report.plan_text import print_plan

    del kind
    out = console()
    verdict = (
        check_plan(value.problem, value.plan)
        if value.schedule is None
        else check_schedule(value.problem, value.plan, value.schedule)
    )
    problem = value.problem
    out.print(
        f"plan by {value.planner or 'unknown'} for {problem.profile.name}, {problem.cluster.size} x "
        f"{problem.cluster.name}, mini-batch {problem.mini_batch}, {problem.regime.mode}: {verdict.status}",
        markup=False,
        soft_wrap=True,
    )
    if verdict.witness is not None:
        out.print(f"{verdict.witness.rule}: {verdict.witness.message}", markup=False, soft_wrap=True)
    if verdict.witness is None or verdict.witness.rule == "memory":
        print_plan(out, problem, value.plan, verdict)


def _rows(kind: str, value: Any) -> None:
    from pipebench.report.table import print_rows

    del kind
    print_rows(console(), value.rows)


def _profile(kind: str, value: Any) -> None:
    from pipebench.report.profile_text import print_profile

    del kind
    print_profile(console(), value)


def _other(kind: str, value: Any) -> None:
    click.echo(f"{kind}:")
    print_json(value)
