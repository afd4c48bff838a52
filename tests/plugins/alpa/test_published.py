"""The rows that Alpa's own DP returned: as tables of costs, and through the planner as a profile."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipebench.check import check_plan
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench_alpa.interval_dp import best_cut
from pipebench_alpa.planner import plan as alpa
from pipebench_alpa.plugin import AlpaOptions
from tests.plugins.running import context

NOTES = Path(__file__).resolve().parents[4] / "shared" / "notes" / "pase-reference.json"


def rows() -> list[dict[str, Any]]:
    if not NOTES.exists():
        return []
    return [row for row in json.loads(NOTES.read_text())["figures"] if row["reference"].startswith("Alpa")]


def weights(count: int) -> np.ndarray:
    return 1 + ((7 * np.arange(count)) % 5) / 5


ROWS = pytest.mark.parametrize(
    "row", rows(), ids=lambda row: "-".join(str(v) for v in row["settings"].values())[:40]
)


def test_the_notes_are_read() -> None:
    if not NOTES.exists():
        pytest.skip("needs the shared notes")
    assert len(rows()) == 8


@ROWS
def test_dp_on_the_tables(row: dict[str, Any]) -> None:
    asked = row["settings"]
    count, devices, memory = asked["L"], asked["hosts"] * asked["dev_per_host"], asked["mem"]
    done = np.concatenate([[0.0], np.cumsum(weights(count))])
    sizes = np.array([a * b for a, b in asked["submeshes"]], np.int64)
    times = np.full((count, count + 1, len(sizes)), np.inf)
    deepest = np.full(times.shape, 4096, np.int64)
    for i in range(count):
        for e in range(i + 1, count + 1):
            for m, n in enumerate(sizes):
                if n < devices or e - i == count:
                    work = done[e] - done[i]
                    times[i, e, m] = work / n ** asked["alpha"]
                    if memory is not None:
                        deepest[i, e, m] = np.clip(np.floor((memory * n - 2 * work) / (0.25 * work) - 1), -1, 4096)
    cut, counters = best_cut(times, deepest, sizes, devices, asked["B"])
    assert counters["transitions"] > 0
    if row["objective"] is None:
        assert cut is None
    else:
        assert cut is not None
        assert cut.objective_s == pytest.approx(row["objective"], rel=1e-6)


def as_problem(asked: dict[str, Any]) -> Problem:
    """Operators of which n devices take 1 / n^alpha of the time; weights and activations in proportion."""
    devices = asked["hosts"] * asked["dev_per_host"]
    scale = 10**9
    operators, costs, tensors = [], [], []
    for i, w in enumerate(weights(asked["L"])):
        operators.append(Operator(name=f"l{i}", kind="op", inputs=(f"t{i - 1}",) if i else ()))
        tensors.append(
            Tensor(name=f"t{i}", producer=f"l{i}", forward_bytes_per_sample=0.0, gradient_bytes_per_sample=0.0)
        )
        ways = tuple(
            Alternative(
                id=f"tp{n}",
                tensor_parallel=n,
                forward_s=(w / n ** asked["alpha"] / 3,),
                backward_s=(w / n ** asked["alpha"] * 2 / 3,),
                parameter_bytes=0,
                fixed_bytes=round(2 * w / n * scale),
                saved_bytes_per_sample=round(0.25 * w / n * scale),
            )
            for n in sorted({2**p for p in range(devices.bit_length())})
        )
        costs.append(
            OperatorCosts(
                operator=f"l{i}",
                forward_s=(1e3,),
                backward_s=(1e3,),
                alternatives=ways,
            )
        )
    graph = OperatorGraph(name="layers", operators=tuple(operators), tensors=tuple(tensors))
    profile = Profile(
        name="layers",
        graph=graph,
        costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=tuple(costs)),),
    )
    memory = round(asked["mem"] * scale) if asked["mem"] else 10**15
    levels = [LinkLevel(name="host", group=asked["dev_per_host"], bandwidth_bytes_s=1e9)]
    if asked["hosts"] > 1:
        levels.append(LinkLevel(name="net", group=devices, bandwidth_bytes_s=1e9))
    cluster = Cluster(
        name="hosts",
        types=(DeviceType(name="gpu", memory_bytes=memory),),
        devices=("gpu",) * devices,
        levels=tuple(levels),
    )
    return Problem(
        profile=profile,
        cluster=cluster,
        mini_batch=asked["B"],
        regime=Regime(mode="sync"),
        pins=Pins(micro_batch=1),
    )


@ROWS
def test_planner(row: dict[str, Any]) -> None:
    asked = row["settings"]
    if asked["hosts"] > 1 and any(rows > 1 for rows, _ in asked["submeshes"][:-1]):
        pytest.skip("a submesh of several hosts is data parallel across them, one sample is not")
    problem = as_problem(asked)
    ctx = context(AlpaOptions())
    if row["objective"] is None:
        with pytest.raises(InfeasibleProblem):
            alpa(problem, ctx)
        return
    found = alpa(problem, ctx)
    assert found.claimed_native == pytest.approx(row["objective"], rel=1e-6)
    assert check_plan(problem, found.plan).status == "valid"
    assert ctx.counters["transitions"] > 0
