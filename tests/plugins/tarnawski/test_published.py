"""Rows measured with the released program: the largest load in ms, to the digits that it prints."""

from typing import Literal

import pytest

from pipebench.check import check_plan, check_schedule
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.problem import Problem, Regime
from pipebench.formats.profiles.files import read_profile
from pipebench_tarnawski.planner import plan as tarnawski
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from tests.plugins.running import context, scheduled
from tests.shared_data import shared_data

ROWS = [
    ("LayerGraphs/bert24_inference", 6, False, "17.7899"),
    ("LayerGraphs/bert24_inference", 6, True, "17.7899"),
    ("LayerGraphs/bert24_training", 6, False, "41.7458"),
    ("LayerGraphs/bert24_training", 6, True, "41.7458"),
    ("LayerGraphs/resnet50_training", 6, False, "78.6318"),
    ("LayerGraphs/resnet50_training", 6, True, "78.6498"),
    ("LayerGraphs/inceptionv3_inference", 6, True, "51.5519"),
    ("OperatorGraphs/bert_l-3_inference", 3, False, "27.9186"),
    ("OperatorGraphs/bert_l-3_inference", 3, True, "27.9186"),
    ("OperatorGraphs/bert_l-3_training", 3, False, "65.3031"),
    ("OperatorGraphs/bert_l-3_training", 3, True, "65.3031"),
]


COUNTS: tuple[Literal["released"], Literal["suite"]] = ("released", "suite")


def problem(name: str, accelerators: int, cpus: int = 1) -> Problem:
    profile = read_profile(str(shared_data(f"tarnawski/{name}.json")), {})
    setting = profile.provenance.setting
    assert setting
    assert setting.memory_bytes
    assert setting.bandwidth_bytes_s
    device = profile.costs[0].device_type
    cluster = Cluster(
        name="flat",
        types=(
            DeviceType(name=device, memory_bytes=setting.memory_bytes),
            DeviceType(name="cpu", memory_bytes=2**50),
        ),
        devices=(device,) * accelerators + ("cpu",) * cpus,
        levels=(LinkLevel(name="flat", group=accelerators + cpus, bandwidth_bytes_s=setting.bandwidth_bytes_s),),
    )
    return Problem(profile=profile, cluster=cluster, mini_batch=8, regime=Regime(mode="sync"))


@pytest.mark.parametrize(("name", "accelerators", "linearize", "printed"), ROWS)
def test_largest_load(name: str, accelerators: int, linearize: bool, printed: str) -> None:
    asked = problem(name, accelerators)
    ctx = context(TarnawskiPlannerOptions(memory="released", linearize=linearize))
    found = tarnawski(asked, ctx)
    assert found.claimed_native is not None
    assert f"{found.claimed_native:.6g}" == printed
    assert check_plan(asked, found.plan).status == "valid"
    assert ctx.counters["pairs"] > 0


@pytest.mark.parametrize(
    "name",
    ["LayerGraphs/inceptionv3_training", "LayerGraphs/inceptionv3_inference", "LayerGraphs/resnet50_training"],
)
def test_published_inputs_fit_by_default(name: str) -> None:
    """By the released count the plans of these hold a micro-batch each, and under 1F1B up to seven."""
    asked = problem(name, 6)
    of_released, found = (
        tarnawski(asked, context(TarnawskiPlannerOptions(linearize=True, memory=memory))) for memory in COUNTS
    )
    assert check_schedule(asked, of_released.plan, scheduled(asked, of_released.plan)).status == "invalid"
    assert check_schedule(asked, found.plan, scheduled(asked, found.plan)).status == "valid"
    assert found.claimed_native is not None
    assert of_released.claimed_native is not None
    assert found.claimed_native >= of_released.claimed_native * (1 - 1e-9)
