"""Cells in which a planner's claim, under its own assumptions, is what the simulator finds, within 3 %.

A claim is of the planner's own model: most count the steady state of a pipeline and leave its fill and drain out,
or take memory for granted. So each cell gives a planner what it assumes: its regime, its scheduler, memory enough.
Where it assumes the steady state of a flushed pipeline, a mini-batch of many micro-batches stands for that.
"""

from typing import Any

import pytest

from pipebench.api import compare
from tests.nightly import mostly_at_night

TOLERANCE = 0.03
QUICK = {"profiles": "transformer", "cluster": "flat", "devices": 8}
"""GraphPipe's Transformer, a chain of equal layers."""
BERT = {"profiles": "bert-cpu", "devices": 4, "memory": "64GB", "mini_batch": 64}
RESNET = {"profiles": "resnet50", "devices": 4, "memory": "64GB", "mini_batch": 64}
WIDE = {
    "models": "transformer[ffn=8192,heads=32,hidden=2048]",
    "cluster": "madpipe",
    "devices": 8,
    "memory": "11GB",
    "optimizer": "adam",
}
"""A Transformer of 1.6 billion weights, which no device holds."""
LANGUAGE = {
    "models": "llm[ffn=11008,heads=32,hidden=4096,layers=32,sequence=2048]",
    "cluster": "dgx-h100",
    "devices": 8,
    "precision": "fp16",
    "gradient_precision": "fp32",
    "optimizer": "adam",
}
FLUSHED = {"regime": "sync", "schedulers": ["1f1b"], "mini_batch": 2048}
"""So many micro-batches that fill and drain are below 3 %."""

CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "madpipe-resnet50": ("madpipe", {**RESNET, "regime": "async"}),
    "madpipe-transformer": ("madpipe", {**QUICK, "regime": "async", "mini_batch": 128}),
    "pipedream-transformer": ("pipedream", {**QUICK, "regime": "async", "mini_batch": 128}),
    "pipedream-resnet50": ("pipedream", {**RESNET, "regime": "async"}),
    "tarnawski-transformer": ("tarnawski", {**QUICK, "regime": "async", "mini_batch": 128}),
    "tarnawski-bert": ("tarnawski", {**BERT, "regime": "async"}),
    "alpa-inter-language": ("alpa-inter", {**LANGUAGE, **FLUSHED}),
    "rannc-wide": ("rannc", {**WIDE, "regime": "sync", "mini_batch": 64}),
    "piper-wide": ("piper", {**WIDE, **FLUSHED}),
    "graphpipe-language": ("graphpipe[variant=paper]", {**LANGUAGE, **FLUSHED}),
    "graphpipe-wide": ("graphpipe[variant=paper]", {**WIDE, **FLUSHED}),
}
FIRST = {planner: name for name, (planner, _) in reversed(CELLS.items())}.values()
BY_DAY = [name for name in FIRST if name not in ("tarnawski-transformer", "rannc-wide")]
"""The first cell of most planners."""


@pytest.mark.parametrize("cell", mostly_at_night(CELLS, BY_DAY))
def test_the_claim_is_what_the_simulator_finds(cell: str) -> None:
    planner, where = CELLS[cell]
    (row,) = compare([planner], **where)
    assert (row.status, row.verdict) == ("ok", "valid"), row.reason
    assert row.stages is not None
    assert row.stages > 1
    assert row.claimed_s is not None
    assert row.simulated_s == pytest.approx(row.claimed_s, rel=TOLERANCE)
