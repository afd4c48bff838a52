"""Rows measured with the released program: the slowest stage in seconds, to the digits that it prints."""

import json
from typing import Any

import pytest

from pipebench.check import check_plan
from pipebench.domain.errors import InfeasibleProblem
from pipebench.formats.profiles.piper import PiperOptions, read
from pipebench_piper import search
from pipebench_piper.planner import plan as piper
from pipebench_piper.plugin import PiperPlannerOptions
from tests.plugins.piper.problems import BANDWIDTH, GIB, on_cluster, published
from tests.plugins.running import context
from tests.shared_data import shared_data

ROWS: list[tuple[int, float, int, float, dict[str, int], str]] = [
    (10, 80e9, 1920, 25e9, {}, "0.0977274"),
    (8, 8 * GIB, 1920, BANDWIDTH, {}, "0.165856"),
    (32, 8 * GIB, 1920, BANDWIDTH, {}, "0.0415155"),
    (64, 8 * GIB, 1920, BANDWIDTH, {}, "0.0202006"),
    (8, 80 * GIB, 1920, BANDWIDTH, {}, "0.122007"),
    (32, 80 * GIB, 1920, BANDWIDTH, {}, "0.030844"),
    (32, 2 * GIB, 1920, BANDWIDTH, {}, "0.0665495"),
    (64, 80 * GIB, 1920, BANDWIDTH, {}, "0.0156502"),
    (64, 2 * GIB, 1920, BANDWIDTH, {}, "0.0320301"),
    (64, 8 * GIB, 1920, BANDWIDTH, {"data_parallel": 1}, "0.0739063"),
    (64, 8 * GIB, 1920, BANDWIDTH, {"tensor_parallel": 1}, "0.0202006"),
    (64, 8 * GIB, 8, BANDWIDTH, {}, "0.0503087"),
]


@pytest.mark.parametrize("choice", ["greedy", "exact"])
@pytest.mark.parametrize(("devices", "memory", "batch", "bandwidth", "pins", "printed"), ROWS)
def test_bert(
    devices: int, memory: float, batch: int, bandwidth: float, pins: dict[str, Any], printed: str, choice: Any
) -> None:
    problem = on_cluster(published("bert32a100"), devices, memory, batch, bandwidth, **pins)
    found = piper(problem, context(PiperPlannerOptions(memory="piper", choice=choice)))
    assert found.claimed_native is not None
    assert f"{found.claimed_native:.6g}" == printed
    assert found.claimed_s == pytest.approx(found.claimed_native * batch)
    assert check_plan(problem, found.plan).status == "valid"


@pytest.mark.parametrize("choice", ["greedy", "exact"])
def test_stage_times_are_remembered(choice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under tight memory most stages need a knapsack, at every target of the bisection the same ones."""
    problem = on_cluster(published("bert32a100"), 32, 2 * GIB, 1920)
    plans, knapsacks = [], []
    for places in (search.MOST_REMEMBERED, 1):
        monkeypatch.setattr(search, "MOST_REMEMBERED", places)
        ctx = context(PiperPlannerOptions(memory="piper", choice=choice))
        plans.append(piper(problem, ctx))
        knapsacks.append(ctx.counters["knapsacks"])
    assert plans[0] == plans[1]
    assert 3 * knapsacks[0] < knapsacks[1]


def test_bert_does_not_fit() -> None:
    with pytest.raises(InfeasibleProblem, match="no stages on 8 devices"):
        piper(on_cluster(published("bert32a100"), 8, 2 * GIB, 1920), context(PiperPlannerOptions(memory="piper")))


def test_gnmt_that_the_released_program_does_not_finish() -> None:
    # 17914 downsets. Without a memory limit four replicas of everything win: the times are summed in
    # milliseconds, the bandwidth is in bytes a second.
    problem = on_cluster(published("gnmt"), 4, 80 * GIB, 256)
    ctx = context(PiperPlannerOptions(memory="piper", choice="greedy"))
    found = piper(problem, ctx)
    assert ctx.counters["downsets"] == 17914
    assert found.claimed_native is not None
    assert found.claimed_native == pytest.approx(130.1137349588, rel=1e-9)
    assert check_plan(problem, found.plan).status == "valid"


def longer(layers: int) -> bytes:
    """The BERT input with copies of a transformer layer put behind the last that stands between two others."""
    document = json.loads(shared_data("piper/bert32a100.json").read_text())
    nodes = {node["id"]: node for node in document["nodes"]}
    layer = {i for i, node in nodes.items() if node["name"] == "ParallelTransformerLayer"}
    after = {e["sourceId"]: e for e in document["edges"] if e["sourceId"] in layer and e["destId"] in layer}
    before = {e["destId"]: e["sourceId"] for e in after.values()}
    at = max(i for i in layer if i in after and i in before)
    for new in range(10_000, 10_000 + layers - len(layer)):
        edge = after[at]
        follower, previous = edge["destId"], before[at]
        copy = json.loads(json.dumps(nodes[at])) | {"id": new}
        for ways, copies, behind in zip(
            nodes[at]["TMPCs"].values(), copy["TMPCs"].values(), nodes[follower]["TMPCs"].values(), strict=True
        ):
            for way, copied, following in zip(ways, copies, behind, strict=True):
                copied["syncTimeFw"] = {str(at): way["syncTimeFw"][str(previous)]}
                copied["syncTimeBw"] = {str(follower): way["syncTimeBw"][str(follower)]}
                way["syncTimeBw"][str(new)] = way["syncTimeBw"].pop(str(follower))
                following["syncTimeFw"][str(new)] = following["syncTimeFw"].pop(str(at))
        edge["destId"] = new
        after[new] = edge | {"sourceId": new, "destId": follower}
        before[new], before[follower] = at, new
        document["nodes"].append(copy)
        document["edges"].append(after[new])
        nodes[new] = copy
    return json.dumps(document).encode()


@pytest.mark.parametrize("choice", ["greedy", "exact"])
def test_bert_of_64_layers(choice: Any) -> None:
    profile = read(longer(64), "bert64.json", PiperOptions())
    ctx = context(PiperPlannerOptions(memory="piper", choice=choice))
    found = piper(on_cluster(profile, 64, 8 * GIB, 1920), ctx)
    assert ctx.counters["downsets"] == 75
    assert f"{found.claimed_native:.6g}" == "0.0435713"
