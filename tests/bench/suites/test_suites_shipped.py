"""The suites that ship hold what their papers say."""

from collections import Counter
from itertools import product

import pytest

from pipebench.api import compare
from pipebench.bench.problems.workload import Workload
from pipebench.bench.suites import load_suite, suite_names
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.formats.clusters import load_cluster
from pipebench.formats.profiles.shipped import load_profile
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.bench.suite_files import selected

GB = 10**9


def test_quick_is_a_chain_branches_and_a_language_model() -> None:
    chain, branches, language = selected()
    assert selected("quick") == [chain, branches, language]
    assert branches.problem("async") == Problem(
        profile=load_profile("mmt"),
        cluster=load_cluster("summit", 8),
        mini_batch=128,
        regime=Regime(mode="async", optimizer="adam"),
    )
    assert chain.cluster == load_cluster("madpipe", 8, memory="11GB", device_type="V100-SXM2-16GB")
    assert (chain.mini_batch, chain.regime.optimizer, chain.pins) == (64, "adam", Pins())
    assert language.cluster == load_cluster("dgx-h100", 8)
    assert (language.regime.precision, language.regime.gradient_precision) == ("fp16", "fp32")
    weights = [sum(each.profile.graph.parameter_bytes.values()) for each in (chain, language)]
    assert weights[0] / 4 == pytest.approx(1.6e9, rel=0.01)
    assert weights[1] / 2 == pytest.approx(6.7e9, rel=0.01)


@pytest.mark.nightly
def test_on_quick_data_parallelism_does_not_fit_or_does_not_win() -> None:
    planners = ["data-parallel", "madpipe", "graphpipe[variant=paper]"]
    rows = compare(planners, suites="quick")
    for regime in ("sync", "async"):
        times = {
            (row.model, row.planner): row.simulated_s
            for row in rows
            if row.regime == regime and row.status == "ok"
        }
        for model in {row.model for row in rows}:
            own, *others = (times.get((model, planner)) for planner in planners)
            assert own is None or any(other is not None and other < 0.97 * own for other in others), model
    branches = {(row.planner, row.regime): row.simulated_s or 0.0 for row in rows if row.model == "mmt"}
    assert branches["graphpipe[variant=paper]", "sync"] < 0.95 * branches["madpipe", "sync"]
    memory = {(row.planner, row.regime): row.simulated_s or 0.0 for row in rows if row.model.startswith("trans")}
    assert memory["madpipe", "async"] < 0.99 * memory["graphpipe[variant=paper]", "async"]


def test_chains_is_the_grid_of_madpipe() -> None:
    """Section 5.1: 2 to 8 GPUs, 3 to 16 GB, 12 and 24 GB/s, images of 1000 x 1000, batch 8, no replicas."""
    networks: dict[str, list[Workload]] = {}
    for workload in selected("chains"):
        networks.setdefault(workload.profile.name, []).append(workload)
    assert list(networks) == ["resnet50", "resnet101", "inception_v3", "densenet121"]
    for found in networks.values():
        is_the_grid_of_madpipe(found)


def is_the_grid_of_madpipe(found: list[Workload]) -> None:
    points = [(w.cluster.size, w.cluster.memory_bytes, w.cluster.levels[-1].bandwidth_bytes_s) for w in found]
    assert Counter(points) == Counter(
        (size, gigabytes * GB, rate * GB) for size, gigabytes, rate in product(range(2, 9), range(3, 17), (12, 24))
    )
    assert {w.pins for w in found} == {Pins(micro_batch=8, data_parallel=1)}
    assert {w.cluster.link_mode for w in found} == {"half"}
    assert {id(w.profile) for w in found} == {id(found[0].profile)}
    image = next(tensor for tensor in found[0].profile.graph.tensors if tensor.producer is None)
    assert image.forward_bytes_per_sample == 1000 * 1000 * 3 * 4


def test_branches_has_the_mini_batches_of_graphpipe() -> None:
    """Appendix A.2: 64, 128, 256 and 512 samples on 4, 8, 16 and 32 devices; figure 7: micro-batches, branches."""
    found = selected("branches")
    sizes = {4: 64, 8: 128, 16: 256, 32: 512}
    times = {"dlrm": 4, "candle-uno": 64}  # 256 … 2048 and 4096 … 32768
    assert {w.cluster.size for w in found} == set(sizes)
    assert all(w.mini_batch == sizes[w.cluster.size] * times.get(w.model.partition("[")[0], 1) for w in found)
    for model in ("mmt", "transformer", "mmt[branches=2]", "dlrm", "candle-uno"):
        unpinned = [w for w in found if w.model == model and w.pins == Pins()]
        assert sorted(w.cluster.size for w in unpinned) == [4, 8, 16, 32]
    assert [w.pins.micro_batch for w in found if w.pins.micro_batch] == [1, 2, 4, 8, 16, 32, 64]
    assert {w.model for w in found if w.cluster.size == 32} == {
        "mmt",
        "transformer",
        "mmt[branches=2]",
        "mmt[branches=8]",
        "mmt[branches=16]",
        "dlrm",
        "clip",
        "candle-uno",
        *(f"candle-uno[branches={branches}]" for branches in (2, 4, 8, 16)),
    }
    assert {w.cluster.name for w in found} == {"summit"}
    assert {w.regime.optimizer for w in found} == {"adam"}


@pytest.mark.parametrize("name", suite_names())
def test_every_shipped_suite_names_itself_and_components_that_exist(name: str) -> None:
    suite = load_suite(name).suite
    assert suite.name == name
    assert len(suite.summary) <= 80
    host = Host()
    for text in suite.planners:
        component = host.find("planners", parse_reference(text).name).component
        assert isinstance(component, Planner)
        assert set(suite.regimes) <= set(component.capabilities.regimes)


def test_four_suites_ship() -> None:
    assert suite_names() == ["branches", "chains", "intra", "quick"]


def test_intra_is_the_grid_of_pase() -> None:
    """Section IV: four benchmarks on 4 to 64 devices; every operator names its iteration space."""
    found = selected("intra")
    assert Counter((w.profile.graph.name, w.cluster.size) for w in found) == Counter(
        (f"pase-{name}", devices)
        for name in ("alexnet", "inception_v3", "rnnlm", "transformer")
        for devices in (4, 8, 16, 32, 64)
    )
    assert {w.mini_batch for w in found if "net" in w.model or "inception" in w.model} == {128}
    assert {w.mini_batch for w in found if "rnnlm" in w.model or "transformer" in w.model} == {64}
    assert all(op.dims and op.axes for w in found for op in w.profile.graph.operators)
