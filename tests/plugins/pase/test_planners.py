"""The planners on whole problems: plans that the suite accepts, awkward sizes, what they refuse."""

import msgspec
import pytest

from pipebench.check import check_plan
from pipebench.costs.estimate import estimate
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench_pase.plugin import CostOptions, MCMCOptions, PaSEOptions
from tests.altered import EACH_WORLD, altered
from tests.builders import cluster, dag_problem
from tests.models.zoo import model
from tests.plugins.pase.problems import MODELS, by_experts, by_walk, of_graph, pase, problem
from tests.plugins.running import time_ns


def splits(plan: Plan) -> dict[str, dict[str, int]]:
    (stage,) = plan.stages
    return dict(zip(stage.operators, stage.sharding, strict=True))


def fullest(problem: Problem, plan: Plan) -> int:
    return CostModel(problem).stage_memory(plan, 0, []).peak(1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [pase, by_experts, by_walk])
def test_plans_are_valid_and_simulated_as_estimated(name: str, make: object) -> None:
    given = problem(name, 4)
    result = make(given, **({"iterations": 300} if make is by_walk else {}))  # type: ignore[operator]
    assert check_plan(given, result.plan).status == "valid"
    assert time_ns(given, result.plan) == estimate(given, result.plan) > 0


@pytest.mark.parametrize("name", MODELS)
def test_no_search_is_better_than_the_optimum(name: str) -> None:
    given = problem(name, 8)
    best = pase(given).claimed_native
    assert best is not None
    start = by_experts(given).claimed_native
    for walked in (by_walk(given, iterations=3000), by_walk(given, seed=1, iterations=3000)):
        assert best * (1 - 1e-9) <= walked.claimed_native <= start  # type: ignore[operator]
    assert by_walk(given, iterations=500) == by_walk(given, iterations=500)


def test_a_walk_ends_at_half_its_iterations_without_improvement() -> None:
    notices = by_walk(problem("rnnlm", 1), iterations=400).notices
    assert any("half the search without improvement" in notice for notice in notices)


def test_one_device_splits_nothing() -> None:
    for result in (pase(problem("transformer", 1)), by_experts(problem("transformer", 1))):
        assert not any(splits(result.plan).values())


@pytest.mark.parametrize("devices", [3, 5, 6, 12])
def test_devices_that_are_no_power_of_two(devices: int) -> None:
    given = problem("rnnlm", devices)
    result = pase(given)
    assert check_plan(given, result.plan).status == "valid"
    assert result.claimed_native <= by_experts(given, strategy="data-parallel").claimed_native  # type: ignore[operator]
    assert result.claimed_native <= pase(problem("rnnlm", devices - 1)).claimed_native  # type: ignore[operator]


def test_prime_sizes_are_cut_whole_or_not_at_all() -> None:
    given = problem("rnnlm", 8, 127, vocabulary=7, units=11, layers=2, sequence=3)
    for split in splits(pase(given).plan).values():
        assert set(split.values()) <= {2, 3, 7}
    assert by_experts(given, strategy="data-parallel").claimed_native == pase(problem_alone(given)).claimed_native


def problem_alone(given: Problem) -> Problem:
    return msgspec.structs.replace(given, cluster=given.cluster.first(1))


def test_operators_without_dims_are_named_and_cut_by_samples() -> None:
    given = dag_problem(
        [100, 300], [200, 600], [(0, (1,), 8)], cluster(4), weights=[40, 0], mini_batch=8, micro_batches=(8,)
    )
    result = pase(given)
    assert splits(result.plan) == {"op0": {"batch": 4}, "op1": {"batch": 4}}
    (notice,) = result.notices
    assert notice.startswith("operators op0, op1 without dims: cut by samples only")
    # 300 and 900 ns at 10^13 multiply-adds a second, in four parts, and 10 words of weights over four devices.
    assert result.claimed_native == pytest.approx((300 + 900) * 1e4 / 4 + 5000 * 2 * 3 * 10 / 4)
    assert check_plan(given, result.plan).status == "valid"


def test_models_of_the_zoo_without_formulas_are_planned_too() -> None:
    for name, options in (("mmt", {"layers": 1, "branches": 2}), ("vgg16", {"image_size": 64}), ("clip", {})):
        given = of_graph(model(name, **options), 4, 16)
        result = pase(given)
        assert check_plan(given, result.plan).status == "valid"
        assert result.claimed_native <= by_experts(given).claimed_native * (1 + 1e-9)  # type: ignore[operator]


@pytest.mark.parametrize("world", EACH_WORLD)
def test_the_limit_is_the_suites_memory_whatever_that_is(world: str) -> None:
    with altered(world):
        test_the_limit_is_the_suites_memory()


def test_the_limit_is_the_suites_memory() -> None:
    given = problem("alexnet", 4)
    free = pase(given, memory="ignored")
    needed = fullest(given, free.plan)

    def with_memory(bytes_each: int) -> Problem:
        kind = DeviceType(name="gpu", memory_bytes=bytes_each)
        return msgspec.structs.replace(given, cluster=msgspec.structs.replace(given.cluster, types=(kind,)))

    roomy = pase(with_memory(needed))
    assert roomy.claimed_native == free.claimed_native
    tight = with_memory(needed - 1)
    limited = pase(tight)
    assert fullest(tight, limited.plan) < needed
    assert limited.claimed_native > free.claimed_native  # type: ignore[operator]
    assert limited.termination == "optimal"
    with pytest.raises(InfeasibleProblem, match="bytes on each device for 128 samples at once"):
        pase(with_memory(1000))


def test_a_pinned_micro_batch_is_run_as_often_as_it_takes() -> None:
    whole, half = problem("alexnet", 4, 64), problem("alexnet", 4, 128, 64)
    one, two = pase(whole), pase(half)
    assert two.claimed_native == one.claimed_native
    assert two.claimed_s == 2 * one.claimed_s  # type: ignore[operator]
    assert two.plan.stages[0].micro_batch == 64


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        (Pins(tensor_parallel=2), "no degree of tensor parallelism"),
        (Pins(data_parallel=2), "no degree of data parallelism"),
        (Pins(pipeline=2), "one stage"),
        (Pins(virtual_stages=2), "one stage"),
        (Pins(recompute="stage"), "does not recompute"),
    ],
)
def test_pins_that_one_split_stage_cannot_honour(pins: Pins, said: str) -> None:
    given = msgspec.structs.replace(problem("rnnlm", 4), pins=pins)
    for make in (pase, by_experts, by_walk):
        with pytest.raises(UnsupportedProblem, match=said):
            make(given)


def test_asynchronous_updates_are_refused() -> None:
    given = msgspec.structs.replace(problem("rnnlm", 4), regime=Regime(mode="async"))
    with pytest.raises(UnsupportedProblem, match="synchronous"):
        pase(given)


def test_the_clusters_own_rates_may_be_asked_for() -> None:
    given = problem("rnnlm", 4)
    with pytest.raises(UnsupportedProblem, match="peak of 'gpu' in fp32"):
        pase(given, tflops=0.0)
    kind = DeviceType(name="gpu", memory_bytes=10**12, peak_flops={"fp32": 2e13})
    known = msgspec.structs.replace(given, cluster=msgspec.structs.replace(given.cluster, types=(kind,)))
    # 1 GB/s links: 10^13 multiply-adds a second on either way of asking.
    assert pase(known, tflops=0.0, bandwidth=0.0).claimed_native == pase(given, bandwidth=1.0).claimed_native


@pytest.mark.parametrize(
    "wrong", [{"tflops": -1.0}, {"bandwidth": float("inf")}, {"word_bytes": 0}, {"cutoff": -1}]
)
def test_wrong_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(wrong))):
        CostOptions(**wrong)  # type: ignore[arg-type]


def test_wrong_limits_are_refused() -> None:
    for make in (
        lambda: PaSEOptions(table_gb=0.0),
        lambda: PaSEOptions(nodes=0),
        lambda: MCMCOptions(iterations=0),
    ):
        with pytest.raises(InvalidValue):
            make()
