"""Look at the problems, or at as many as fit in the time, and print the tables."""

import argparse
import time
from pathlib import Path

import msgspec

from pipebench.bench.cage.installed import installed_host
from tests.nearness.distances import Distance, tables
from tests.nearness.problems import apart, distance, problems


def read(file: Path) -> dict[str, Distance]:
    """Those that stand in a file, by their problem."""
    if not file.exists():
        return {}
    rows = [msgspec.json.decode(text, type=Distance) for text in file.read_text().splitlines()]
    return {row.problem: row for row in rows}


def main() -> None:
    """See the package."""
    options = argparse.ArgumentParser(prog="python -m tests.nearness")
    options.add_argument("results", type=Path)
    options.add_argument("--cells", type=int, default=120, help="of the suite chains")
    options.add_argument("--dags", type=int, default=50, help="random graphs with tight memory")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=float, default=20.0, help="seconds of `best` for each problem")
    options.add_argument(
        "--apart", action="store_true", help="workloads with a flush, also with links and memory free"
    )
    options.add_argument("--shard", default="1/1", help="K/N: every N-th problem")
    options.add_argument("--for", type=float, default=float("inf"), dest="seconds", help="start none after this")
    given = options.parse_args()
    number, count = map(int, given.shard.split("/"))
    began_s, host = time.monotonic(), installed_host()
    looked_at = apart(given.cells, given.seed) if given.apart else problems(given.cells, given.dags, given.seed)
    for each in list(looked_at)[number - 1 :: count]:
        if time.monotonic() - began_s > given.seconds:
            break
        if each.label in read(given.results):
            continue
        row = distance(host, each, given.limit)
        with given.results.open("a") as file:
            file.write(msgspec.json.encode(row).decode() + "\n")
        print(f"{row.problem}: {row.of_bound} {row.bound_kind}", flush=True)
    print(tables(list(read(given.results).values())))


if __name__ == "__main__":
    main()
