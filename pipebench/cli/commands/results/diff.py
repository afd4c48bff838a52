"""pipebench diff: what changed between two plans or two sets of results."""

from typing import Any

import click

from pipebench.cli.completion import files
from pipebench.cli.terminal import console, print_json
from pipebench.domain.errors import ExitCode, PipebenchError


@click.command()
@click.argument("before", shell_complete=files)
@click.argument("after", shell_complete=files)
@click.option("--json", "as_json", is_flag=True, help="The difference as JSON.")
@click.option("--exit-code", is_flag=True, help="Exit code 1 when they differ.")
def command(before: str, after: str, as_json: bool, exit_code: bool) -> int:
    """Compare two plans (operators moved, stages split, memory moved), or two sets of results.

    BEFORE and AFTER: two plan files, or two sets of results: a store (a folder of `compare --out`),
    a packed one, or what `compare --json` printed.
    Search times are shown for information; they never make two sets differ.
    """
    from pipebench.documents.decoding import collector_paused

    with collector_paused():  # of large stores nearly all that is made is kept
        same = _print_difference(before, after, as_json)
    return ExitCode.CONDITION_FAILED if exit_code and not same else ExitCode.OK


def _print_difference(before: str, after: str, as_json: bool) -> bool:
    """Whether the two are the same."""
    from pipebench.bench.difference.operands import PlanSide, ResultsSide, open_side

    first, second = open_side(before), open_side(after)
    if isinstance(first, PlanSide) and isinstance(second, PlanSide):
        from pipebench.bench.difference.plans import compare_plans
        from pipebench.report.text.comparisons.differences import print_plan_difference

        plans = compare_plans(first, second)
        same = plans.same
        if as_json:
            _print_json("plans", same, plans)
        else:
            print_plan_difference(console(), plans)
    elif isinstance(first, ResultsSide) and isinstance(second, ResultsSide):
        from pipebench.bench.difference.results import compare_results
        from pipebench.report.text.comparisons.differences import print_results_difference

        results = compare_results(first, second)
        same = results.same
        if as_json:
            _print_json("results", same, results)
        else:
            print_results_difference(console(), results)
    else:
        plan, rows = (before, after) if isinstance(first, PlanSide) else (after, before)
        raise PipebenchError(
            f"{plan!r} holds a plan and {rows!r} results", "give two plans or two sets of results"
        )
    return same


def _print_json(compared: str, same: bool, difference: Any) -> None:
    import msgspec

    print_json({"compared": compared, "same": same, **msgspec.to_builtins(difference, builtin_types=())})
