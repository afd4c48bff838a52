"""Ranks that share out sequences: a device that stands for several ranks is priced as these ranks are.

The oracle: C ranks that have one part each of every sample are C times as many replicas, each with samples of one
part. State, rings, messages, memory and the simulated step of both are the same.
"""

import msgspec
import pytest
from msgspec.structs import replace

from pipebench.check import check_plan
from pipebench.costs.links import flows
from pipebench.costs.model import CostModel
from pipebench.costs.shapes.context import refuse_context_ranks, with_context_devices, with_context_ranks
from pipebench.defaults import scheduler_for
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, Ranks
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.framework import StepCosts
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import OptimizerSharding, Pins, Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from pipebench.formats.profiles.format import own_parameter_bytes
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.costs.test_experts import one_layer, one_stage
from tests.models.zoo import model
from tests.plugins.running import services

WEIGHTS = 48_000
"""Bytes of fp32 weights of an operator."""
STEP = StepCosts(framework="drawn", optimizer_s_per_element=8e-9, gradient_s_per_element=1e-9, reduce_overlap=0.25)


def nodes(devices: int) -> Cluster:
    """Nodes of 8 devices at 10 GB/s, whose cards carry 4 GB/s together, 1 GB/s for each device."""
    return Cluster(
        name="nodes",
        types=(DeviceType(name="gpu", memory_bytes=10**9),),
        devices=("gpu",) * devices,
        levels=(
            LinkLevel(name="node", group=8, bandwidth_bytes_s=10e9, latency_s=1e-6),
            LinkLevel(
                name="network",
                group=devices,
                bandwidth_bytes_s=1e9,
                latency_s=5e-6,
                shared_bandwidth_bytes_s=4e9,
            ),
        ),
    )


def graph() -> OperatorGraph:
    """Two operators; what the first makes takes 6000 bytes of each sample, or of a part of one."""
    return OperatorGraph(
        name="two",
        operators=(
            Operator(name="a", kind="op", parameters=("wa",)),
            Operator(name="b", kind="op", inputs=("t",), parameters=("wb",)),
        ),
        tensors=(Tensor(name="t", producer="a", forward_bytes_per_sample=6e3, gradient_bytes_per_sample=6e3),),
        parameters=(Parameter(name="wa", bytes=WEIGHTS), Parameter(name="wb", bytes=WEIGHTS)),
    )


def problem(
    ranks: int, sharding: OptimizerSharding = "none", step: StepCosts | None = None, *, parts: int = 1
) -> Problem:
    """Of 32 accelerators and 8 samples. ranks: that share out each. parts: of which a sample is one."""
    costs = tuple(
        OperatorCosts(operator=name, forward_s=(1e-4,), backward_s=(3e-4,), saved_bytes_per_sample=5e3)
        for name in "ab"
    )
    return Problem(
        profile=Profile(
            name="two",
            graph=graph() if ranks == 1 else replace(graph(), context_parallel=ranks),
            costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=costs),),
        ),
        cluster=with_context_devices(nodes(32), ranks),
        mini_batch=8 * parts,
        regime=Regime(
            mode="sync", optimizer="adam", optimizer_sharding=sharding, step=step, context_parallel=ranks
        ),
    )


def plan(replicas: int, micro_batch: int, first: int = 0, copies: int = 1) -> Plan:
    """Two stages of so many replicas, from a device on."""
    behind = first + replicas
    stage = Stage(
        operators=("a",),
        devices=tuple(range(first, behind)),
        data_parallel=replicas,
        micro_batch=micro_batch,
    )
    other = replace(stage, operators=("b",), devices=tuple(range(behind, behind + replicas)))
    return Plan(stages=(stage, other), copies=copies)


CASES = [(2, 1, 2), (2, 4, 4), (4, 2, 4), (8, 1, 1), (8, 2, 4), (16, 1, 2)]
"""Ranks of a sequence, replicas, micro-batch."""


@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
@pytest.mark.parametrize("step", [None, STEP, replace(STEP, spreads_rings=False)])
@pytest.mark.parametrize(("ranks", "replicas", "micro_batch"), CASES)
def test_ranks_of_a_sequence_are_replicas_with_a_part_each(
    sharding: OptimizerSharding, step: StepCosts | None, ranks: int, replicas: int, micro_batch: int
) -> None:
    shared, parted = problem(ranks, sharding, step), problem(1, sharding, step, parts=ranks)
    ours, theirs = plan(replicas, micro_batch), plan(replicas * ranks, micro_batch * ranks)
    one, other = CostModel(shared), CostModel(parted)
    assert one.messages(ours) == other.messages(theirs)
    for at in range(2):
        assert one.stage_times(ours.stages[at], ours) == other.stage_times(theirs.stages[at], theirs)
        assert one.stage_memory(ours, at, one.messages(ours)) == other.stage_memory(
            theirs, at, other.messages(theirs)
        )
    for here, there in zip(flows(one, ours), flows(other, theirs), strict=True):
        assert abs(here.duration_ns - there.duration_ns) <= 1
    seconds = []
    for given, made in ((shared, ours), (parted, theirs)):
        schedule = services().schedule(scheduler_for("sync", made.placement, False), given, made)
        seconds.append(metrics(given, made, simulate(given, made, schedule)).seconds)
    assert seconds[0] == pytest.approx(seconds[1], rel=1e-4)


def test_copies_reduce_together() -> None:
    shared, parted = problem(2), problem(1, parts=2)
    ours, theirs = plan(2, 2, copies=4), plan(4, 4, copies=4)
    for at in range(2):
        reduced = CostModel(shared).all_reduce_ns(ours.stages[at], ours)
        assert reduced == CostModel(parted).all_reduce_ns(theirs.stages[at], theirs) > 0


@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
@pytest.mark.parametrize("step", [None, STEP])
@pytest.mark.parametrize(("ranks", "experts", "degree"), [(2, 4, 1), (2, 4, 2), (4, 4, 1), (4, 2, 2), (8, 8, 1)])
def test_ranks_of_a_sequence_share_out_experts_too(
    sharding: OptimizerSharding, step: StepCosts | None, ranks: int, experts: int, degree: int
) -> None:
    """Eight accelerators again: those that hold the same experts are counted among all of them."""
    parted = one_layer(experts, sharding, step)
    graph = replace(parted.profile.graph, context_parallel=ranks)
    shared = replace(
        parted,
        profile=replace(parted.profile, graph=graph),
        cluster=with_context_devices(parted.cluster, ranks),
        regime=replace(parted.regime, context_parallel=ranks),
    )
    ours, theirs = one_stage(8 // degree // ranks, degree), one_stage(8 // degree, degree)
    one, other = CostModel(shared), CostModel(parted)
    assert check_plan(shared, ours).status == check_plan(parted, theirs).status == "valid"
    assert one.stage_memory(ours, 0, []) == other.stage_memory(theirs, 0, [])
    assert one.stage_times(ours.stages[0], ours) == other.stage_times(theirs.stages[0], theirs)
    assert one.update_ns(ours.stages[0], ours) == other.update_ns(theirs.stages[0], theirs)
    few = one_stage(1)
    verdict = check_plan(shared, few)
    assert verdict.status == ("valid" if ranks % experts == 0 else "invalid")
    if ranks < experts:
        assert verdict.witness is not None
        assert f"tensor_parallel 1 x context_parallel {ranks} = {ranks} ranks" in verdict.witness.message


def test_the_state_and_the_ring_of_one_replica_by_hand() -> None:
    """Two ranks of one node: a ring of two at 10 GB/s; weights and gradients whole, Adam's 8 bytes halved."""
    made, one = CostModel(problem(2, "zero1")), plan(1, 1)
    assert made.stage_memory(one, 0, []).held == 2 * WEIGHTS + 2 * WEIGHTS // 2
    assert made.all_reduce_ns(one.stages[0], one) == 2 * (1_000 + WEIGHTS // 2 // 10)


def test_links_of_devices_that_stand_for_ranks() -> None:
    two = with_context_devices(nodes(32), 2)
    assert (two.size, two.accelerators, two.rank_levels) == (16, 32, nodes(32).levels)
    assert [(level.group, level.shared_bandwidth_bytes_s) for level in two.levels] == [(4, None), (16, 2e9)]
    sixteen = with_context_devices(nodes(32), 16)  # two nodes each: eight of a node share its cards
    (network,) = sixteen.levels
    assert (network.group, network.bandwidth_bytes_s, network.shared_bandwidth_bytes_s) == (2, 1e9, 4e9 / 8)
    assert with_context_devices(nodes(32), 1) == nodes(32)
    inner, outer = nodes(48).levels
    uneven = replace(nodes(48), levels=(replace(inner, group=24), outer))
    with pytest.raises(InvalidValue, match="groups of 16 devices do not fit into those of 24"):
        with_context_devices(uneven, 16)


LLM = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100, "sequence": 96, "architecture": "llama"}


def test_the_graph_of_a_rank_has_its_tokens_and_all_weights() -> None:
    whole, shared = model("llm", **LLM), with_context_ranks(model("llm", **LLM), 4)
    assert {operator.dims["sequence"] for operator in shared.operators} == {24}
    assert shared.parameters == whole.parameters
    for one, all_of_it in zip(shared.tensors, whole.tensors, strict=True):
        assert 4 * one.forward_bytes_per_sample == all_of_it.forward_bytes_per_sample
        assert 4 * one.gradient_bytes_per_sample == all_of_it.gradient_bytes_per_sample
    assert with_context_ranks(whole, 1) is whole
    with pytest.raises(InvalidValue, match="96 tokens, which 5 ranks cannot share out evenly"):
        with_context_ranks(whole, 5)
    with pytest.raises(InvalidValue, match="'a' has no sequence"):
        with_context_ranks(graph(), 2)


@pytest.mark.parametrize(
    ("ranks", "pins", "reason", "hint"),
    [
        (32, Pins(), "2 of 64 chunks, which do not divide the sequence of 96 tokens", "--cp 4, 8, 16"),
        (3, Pins(), "it does not divide the 32 devices", "--cp 1, 2, 4"),
        (8, Pins(tensor_parallel=4, pipeline=2), "--tp 4 x --pp 2 x --cp 8 = 64 devices, there", "--cp 1, 2, 4"),
    ],
)
def test_a_wrong_number_of_ranks_names_the_nearest(ranks: int, pins: Pins, reason: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        refuse_context_ranks(model("llm", **LLM), ranks, nodes(32), pins, "llm")
    assert reason in refused.value.message
    assert hint in (refused.value.hint or "")
    refuse_context_ranks(model("llm", **LLM), 16, nodes(32), Pins(), "llm")


@pytest.mark.parametrize("partial", [{"window": 32}, {"chunk": 32}, {"sinks": 1}])
def test_queries_see_all_keys(partial: dict[str, int]) -> None:
    whole = model("llm", **LLM)
    banded = replace(
        whole,
        operators=tuple(replace(each, attributes=each.attributes | partial) for each in whole.operators),
    )
    with pytest.raises(InvalidValue, match=r"--cp 2: llm: queries of layer .* see a part of the keys"):
        refuse_context_ranks(banded, 2, nodes(32), Pins(), "llm")
    with pytest.raises(InvalidValue, match="see a part of the keys"):
        with_context_ranks(banded, 2)


def test_a_model_without_sequences_is_refused() -> None:
    with pytest.raises(InvalidValue, match="is no language model"):
        refuse_context_ranks(graph(), 2, nodes(32), Pins(), "two")


def test_profile_cluster_and_regime_say_the_same() -> None:
    given = problem(2)
    with pytest.raises(InvalidValue, match=r"context_parallel is 2, profile 'two' is of whole sequences"):
        replace(given, profile=problem(1).profile)
    with pytest.raises(InvalidValue, match=r"context_parallel is 1, profile 'two' is of 2 ranks"):
        replace(given, regime=replace(given.regime, context_parallel=1))
    with pytest.raises(InvalidValue, match="a device of cluster 'nodes' stands for 1 ranks"):
        replace(given, cluster=nodes(32))
    with pytest.raises(InvalidValue, match="spans less than 32"):
        replace(given.cluster, ranks=Ranks(count=2, levels=nodes(32).levels[:1]))


def test_files_of_others_have_no_word_for_it() -> None:
    assert own_parameter_bytes(problem(1).profile, "this") == [WEIGHTS, WEIGHTS]
    with pytest.raises(PipebenchError, match="this has no word for sequences that ranks share out"):
        own_parameter_bytes(problem(2).profile, "this")


def test_without_it_nothing_differs() -> None:
    """No document has a word of it, and no id covers it."""
    plain = problem(1)
    assert b"context" not in msgspec.json.encode(plain)
    assert b"ranks" not in msgspec.json.encode(plain)
    assert replace(plain, regime=replace(plain.regime, context_parallel=1)) == plain
    assert plain.problem_id.startswith("8f9c61b60c06072b")  # as before there was any
    assert problem(2).problem_id != plain.problem_id
    assert problem(2).workload_id != plain.workload_id
    assert msgspec.json.decode(msgspec.json.encode(problem(2)), type=Problem) == problem(2)
