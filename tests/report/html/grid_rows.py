"""The rows of a small grid: two models, three memories, two bandwidths; two planners in both regimes."""

from collections.abc import Iterator

from pipebench.domain.row import Row
from tests.report.rows import row

MODELS, MEMORIES_GB, BANDWIDTHS = ("resnet50", "resnet101"), (4, 8, 16), ("12GB/s", "24GB/s")
SLOW_AT_GB = 8


def grid_rows() -> list[Row]:
    """48 rows of 12 problems. `fast` needs 1 s, on 8 GB 4 s; `slow` needs 2 s and has no plan on 4 GB.

    With a flush `slow` takes no resnet101, and `fast` has no plan for it on 4 GB.
    """
    return list(_rows())


def _rows() -> Iterator[Row]:
    for model in MODELS:
        for memory in MEMORIES_GB:
            for bandwidth in BANDWIDTHS:
                problem = f"{model} {memory} {bandwidth}"
                for regime in ("sync", "async"):
                    place = {
                        "model": model, "profile": model,
                        "workload_id": problem, "problem_id": f"{problem} {regime}",
                        "workload": f"{model} memory={memory}GB bandwidth={bandwidth}", "regime": regime,
                        "hardware": f"V100 {memory} GB", "device_memory_bytes": memory * 10**9,
                    }  # fmt: skip
                    refused = regime == "sync" and model == "resnet101"
                    seconds = 4.0 if memory == SLOW_AT_GB else 1.0
                    yield (
                        row("fast", **place, status="infeasible", reason="it does not fit", throughput=None)
                        if refused and memory == 4
                        else row("fast", **place, simulated_s=seconds, throughput=128 / seconds)
                    )
                    if refused:
                        yield row("slow", **place, status="unsupported", reason="no such graph", throughput=None)
                    elif memory == 4:
                        yield row("slow", **place, status="infeasible", reason="it does not fit", throughput=None)
                    else:
                        yield row("slow", **place, simulated_s=2.0, throughput=64.0)
