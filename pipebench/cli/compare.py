"""pipebench compare: planners side by side on the same problems."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import console, open_host, print_json, show_new_warnings
from pipebench.cli.workload_options import chosen_workloads, workload_options
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.trial import Outcome

PLANNERS_HELP = (
    "Names, name[option=value], ./file.py or cmd:program, by commas. "
    "A cmd: reaches to the next comma outside quotes, such as cmd:./planner --opt 'a,b'."
)


@click.command()
@click.option("--planners", multiple=True, help=PLANNERS_HELP)
@click.option("--plans", multiple=True, type=str, help="Plan files to score beside the others.")
@click.option("--regime", type=click.Choice(["sync", "async"]), help="One regime for all planners.")
@click.option("--schedulers", multiple=True, help="Schedulers in place of each planner's default.")
@click.option("--executors", default="simulate", show_default=True, help="Executors, by commas.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(1), help="Warm searches to time.")
@click.option("--timeout", default=300.0, show_default=True, type=float, help="Seconds for one trial.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON on stdout.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for rows.json and the plans.")
@workload_options
def command(
    planners: tuple[str, ...],
    plans: tuple[str, ...],
    regime: Any,
    schedulers: tuple[str, ...],
    executors: str,
    repeat: int,
    timeout: float,
    seed: int,
    as_json: bool,
    out: Path | None,
    **choice: Any,
) -> int:
    """Run planners on the same problems; the suite scores every plan and shows a proven bound beside it.

    Without models, profiles or a suite: the quick suite. Each planner runs in its own regime unless --regime
    is given.
    """
    from pipebench.bench.comparison import Request
    from pipebench.bench.comparison import outcomes as run
    from pipebench.bench.components import ready_executor, ready_planner, ready_scheduler
    from pipebench.bench.planned import ready_plan
    from pipebench.cli.progress import Progress
    from pipebench.domain.document import Rows
    from pipebench.formats.native import read_plan
    from pipebench.hooks.syntax import parse_references, split_list
    from pipebench.report.table import print_rows

    if timeout <= 0:
        raise PipebenchError(f"--timeout is {timeout:g}, it must be above zero")
    host = open_host()
    ready = [ready_planner(host, reference) for reference in parse_references(planners)]
    ready += [ready_plan(path, read_plan(path)) for text in plans for path in split_list(text)]
    if not ready:
        raise PipebenchError(
            "no planner was named", "give --planners, such as --planners madpipe,graphpipe", ExitCode.NOTHING_RAN
        )
    chosen = tuple(name for text in schedulers for name in split_list(text))
    for name in chosen:
        ready_scheduler(host, name)
    runners = tuple(split_list(executors))
    for name in runners:
        ready_executor(host, name)
    request = Request(
        workloads=chosen_workloads(host, choice),
        planners=ready,
        regime=regime,
        schedulers=chosen,
        executors=runners,
        repeat=repeat,
        timeout_s=timeout,
        seed=seed,
    )
    show_new_warnings(host)
    outcomes: list[Outcome] = []
    interrupted = False
    with Progress() as progress:
        try:
            for outcome in run(host, request, progress.starting):
                outcomes.append(outcome)
        except KeyboardInterrupt:
            interrupted = True
    if interrupted and not outcomes:
        raise PipebenchError("interrupted", exit_code=ExitCode.INTERRUPTED)
    rows = tuple(outcome.row for outcome in outcomes)
    if out is not None:
        from pipebench.bench.output import write_outcomes

        write_outcomes(out, outcomes)
    if as_json:
        print_json(Rows(rows=rows))
    else:
        print_rows(console(), rows)
    if interrupted:
        raise PipebenchError(f"interrupted after {len(rows)} finished trials", exit_code=ExitCode.INTERRUPTED)
    return ExitCode.OK if all(row.status == "ok" for row in rows) else ExitCode.SOME_FAILED
