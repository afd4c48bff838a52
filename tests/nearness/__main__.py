"""Look at the problems, or at as many as fit in the time, and print the tables."""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from pipebench.bench.cage.installed import installed_host
from tests.nearness import few_stages
from tests.nearness.blocks import InBlocks, distance_in_blocks, in_blocks
from tests.nearness.distances import Distance, tables
from tests.nearness.few_stages import Few
from tests.nearness.problems import Each, apart, distance, problems

Row = TypeVar("Row", Distance, Few)
Given = TypeVar("Given", bound=Each | InBlocks)


def read(file: Path, kind: type[Row]) -> dict[str, Row]:
    """Those that stand in a file, by their problem."""
    if not file.exists():
        return {}
    rows = [msgspec.json.decode(text, type=kind) for text in file.read_text().splitlines()]
    return {row.problem: row for row in rows}


def look(
    options: argparse.Namespace,
    looked_at: Iterator[Given],
    kind: type[Row],
    row_of: Callable[[Given], Row],
    table: Callable[[Sequence[Row]], str],
) -> None:
    """Append the rows of problems that have none yet, and print the table of all. options: of the command."""
    number, count = map(int, options.shard.split("/"))
    began_s = time.monotonic()
    for each in list(looked_at)[number - 1 :: count]:
        if time.monotonic() - began_s > options.seconds:
            break
        if each.label in read(options.results, kind):
            continue
        row = row_of(each)
        with options.results.open("a") as file:
            file.write(msgspec.json.encode(row).decode() + "\n")
        print(row, flush=True)
    print(table(list(read(options.results, kind).values())))


def main() -> None:
    """See the package."""
    options = argparse.ArgumentParser(prog="python -m tests.nearness")
    options.add_argument("results", type=Path)
    options.add_argument("--cells", type=int, default=120, help="of the suite chains")
    options.add_argument("--dags", type=int, default=50, help="random graphs with tight memory")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=float, default=20.0, help="seconds of `best` for each problem")
    which = options.add_mutually_exclusive_group()
    which.add_argument(
        "--apart", action="store_true", help="workloads with a flush, also with links and memory free"
    )
    which.add_argument("--few", action="store_true", help="cells on few devices: all rows of few stages")
    which.add_argument("--blocks", type=int, help="problems on few devices, in so many blocks: every plan")
    options.add_argument("--shard", default="1/1", help="K/N: every N-th problem")
    options.add_argument("--for", type=float, default=float("inf"), dest="seconds", help="start none after this")
    given = options.parse_args()
    host = installed_host()
    if given.few:
        cells = few_stages.on_few_devices(given.cells, given.seed)
        look(given, cells, Few, partial(few_stages.few, host, limit_s=given.limit), few_stages.table)
        return
    if given.blocks:
        few_blocks = in_blocks(given.blocks, given.cells, given.dags, given.seed)
        look(given, few_blocks, Distance, partial(distance_in_blocks, host), tables)
        return
    every = apart(given.cells, given.seed) if given.apart else problems(given.cells, given.dags, given.seed)
    look(given, iter(every), Distance, partial(distance, host, limit_s=given.limit), tables)


if __name__ == "__main__":
    main()
