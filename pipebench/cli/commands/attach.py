"""pipebench attach: traces of a run that somebody else launched, beside a stored row."""

import os
from pathlib import Path

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import files
from pipebench.cli.parameters import WholeFrom
from pipebench.cli.terminal import console, print_json
from pipebench.domain.errors import PipebenchError


@click.command()
@click.argument("row", shell_complete=files)
@click.argument("traces", nargs=-1, required=True, shell_complete=files)
@click.option("--warmup", default=1, show_default=True, type=WholeFrom(0), help="Iterations that do not count.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the row with what was measured.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def command(row: str, traces: tuple[str, ...], warmup: int, output: Path | None, as_json: bool) -> int:
    """Compare a row with traces of torch's profiler (Chrome JSON, plain or gzip), one file a rank.

    ROW: a store and the start of a row's key, such as results:3f2a (see compare --json); the key may be left out
    where there is one row. measured_s becomes the slowest rank's median iteration after warm-up.
    """
    from dataclasses import asdict

    from msgspec.structs import replace

    from pipebench.bench.attachment import attach_run
    from pipebench.bench.services import HostServices
    from pipebench.bench.store import open_results
    from pipebench.check import require_ordered
    from pipebench.documents.document import Rows
    from pipebench.formats.chrome_trace import read_chrome_trace
    from pipebench.formats.documents import write_document
    from pipebench.report.text.runs import attachment_lines

    source, _, key = (row, "", "") if os.path.exists(row) else row.rpartition(":")
    results = open_results(source)
    named = [each for each in results.rows if each.key.startswith(key) and (key or not each.yardstick)]
    if len(named) != 1:
        raise PipebenchError(
            f"{source!r} has {len(named)} rows whose key starts with {key!r}",
            f"keys: {', '.join(each.key[:8] for each in results.rows)}",
        )
    chosen = named[0]
    if chosen.plan_id is None or chosen.schedule_id is None:
        raise PipebenchError(f"the row of {chosen.planner} has no plan", f"its status is {chosen.status}")
    problem = results.behind.problem(chosen.problem_id)
    plan, schedule = results.behind.plan(chosen.plan_id), results.behind.schedule(chosen.schedule_id)
    require_ordered(problem, plan, schedule)
    simulated = HostServices(open_host()).simulate(problem, plan, schedule)
    made = attach_run(chosen, plan, simulated, [read_chrome_trace(path) for path in traces], warmup)
    if output is not None:
        figures = {"measured_s": made.measured_s, "measured_error": made.error, "replayed_s": None}
        rate = chosen.mini_batch / made.measured_s if made.measured_s else None
        write_document(output, "rows", Rows(rows=(replace(chosen, measured_throughput=rate, **figures),)))
    if as_json:
        print_json(asdict(made))
        return 0
    for line in attachment_lines(made):
        console().print(line, markup=False, soft_wrap=True)
    return 0
