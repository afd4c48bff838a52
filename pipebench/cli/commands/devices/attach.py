"""pipebench attach: a run that somebody else launched, by its log or its traces, beside a stored row."""

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
@click.argument("runs", nargs=-1, required=True, shell_complete=files)
@click.option(
    "--warmup", default=1, show_default=True, type=WholeFrom(0), help="Iterations of traces that do not count."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the row with what was measured.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def command(row: str, runs: tuple[str, ...], warmup: int, output: Path | None, as_json: bool) -> int:
    """Compare a row with a run of its plan, and say which part of the step would explain the difference.

    ROW: a store and the start of a row's key, such as results:3f2a (see compare --json); the key may be left out
    where there is one row. RUNS: a log of Megatron-LM or torchtitan, as `calibrate` reads them; traces of torch's
    profiler (Chrome JSON, plain or gzip), one file a rank; or both. measured_s is the median iteration of the log,
    else that of the slowest rank. Parts: kernels, tensor-parallel communication, point-to-point messages,
    gradient reduction, optimizer and bubble.
    """
    from msgspec.structs import replace

    from pipebench.bench.attachment.attachment import attach
    from pipebench.bench.services import HostServices
    from pipebench.bench.store import open_results
    from pipebench.documents.document import Rows
    from pipebench.documents.units import quantity
    from pipebench.formats.documents import write_document
    from pipebench.report.text.measurements.attachment import attachment_lines

    source, _, key = (row, "", "") if os.path.exists(row) or ":" not in row else row.rpartition(":")
    results = open_results(source)
    named = [each for each in results.rows if each.key.startswith(key) and (key or not each.yardstick)]
    if len(named) != 1:
        which = f" whose key starts with {key!r}" if key else " and one is asked for"
        of_rows = ", ".join(f"{source}:{each.key[:8]} ({each.planned_by}, {each.regime})" for each in results.rows)
        raise PipebenchError(f"{source!r} has {quantity(len(named), 'row')}{which}", f"name one: {of_rows}")
    chosen = named[0]
    made = attach(HostServices(open_host()), results, chosen, runs, warmup)
    if output is not None:
        figures = {"measured_s": made.measured_s, "measured_error": made.error, "replayed_s": None}
        rate = chosen.mini_batch / made.measured_s if made.measured_s else None
        write_document(output, "rows", Rows(rows=(replace(chosen, measured_throughput=rate, **figures),)))
    if as_json:
        print_json(made)
        return 0
    for line in attachment_lines(made):
        console().print(line, markup=False, soft_wrap=True)
    return 0
