"""Small tables of runs."""

import csv
import io
from collections.abc import Mapping

from pipebench.bench.accuracy.reader import parse_runs
from pipebench.bench.accuracy.run import COLUMNS, Run

SMALL = {
    "id": "small",
    "model": "gpt",
    "layers": "8",
    "hidden": "1024",
    "heads": "16",
    "seq": "512",
    "vocab": "50257",
    "gpus": "8",
    "device": "A100-80GB",
    "nodes_gpus": "1x8",
    "tp": "2",
    "pp": "2",
    "dp": "2",
    "mbs": "4",
    "gbs": "32",
    "schedule": "1f1b",
    "recompute": "full",
    "precision": "fp16",
    "framework": "Megatron-DeepSpeed",
    "iter_s": "0.25",
}


def table(*rows: Mapping[str, str], columns: tuple[str, ...] = COLUMNS) -> bytes:
    """A CSV of rows; what a row does not say is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def run(**changes: str) -> Run:
    """The small run with some cells changed."""
    (made,) = parse_runs(table(SMALL | changes), "runs.csv")
    return made
