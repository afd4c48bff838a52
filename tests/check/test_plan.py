"""check_plan: a valid plan, and one mutation for each rule that breaks exactly that rule."""

import msgspec
import pytest

from pipebench.check import check_plan
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.verdict import Witness
from tests.builders import chain_problem, cluster, dag_problem, stages_plan

FOUR = chain_problem([1] * 4, [2] * 4, cluster(4), mode="sync", mini_batch=8)
FORK = dag_problem([1] * 4, [2] * 4, [(0, (1, 2), 1), (1, (3,), 1), (2, (3,), 1)], cluster(4), mini_batch=8)
"""op0 -> op1, op2 -> op3."""


def broken(problem: Problem, plan: Plan) -> Witness:
    verdict = check_plan(problem, plan)
    assert verdict.status == "invalid"
    assert verdict.witness is not None
    return verdict.witness


def changed(plan: Plan, position: int, **fields: object) -> Plan:
    stages = list(plan.stages)
    stages[position] = msgspec.structs.replace(stages[position], **fields)
    return msgspec.structs.replace(plan, stages=tuple(stages))


VALID = stages_plan([[0, 1], [2], [3]], micro_batch=2, replicas=[1, 2, 1])


def test_a_valid_plan_is_valid() -> None:
    assert check_plan(FOUR, VALID).status == "valid"
    assert check_plan(FORK, stages_plan([[0], [1], [2], [3]])).status == "valid"


@pytest.mark.parametrize(
    ("position", "fields", "rule", "stage", "said"),
    [
        (1, {"operators": ("op2", "op1")}, "coverage", 1, "in stages 0 and 1"),
        (1, {"operators": ("op2", "op2")}, "coverage", 1, "twice in stage 1"),
        (1, {"operators": ("op9",)}, "coverage", 1, "does not have"),
        (1, {"operators": ()}, "coverage", 1, "no operator"),
        (2, {"operators": ("op2",)}, "coverage", 2, "in stages 1 and 2"),
        (1, {"devices": (1,)}, "shape", 1, "needs 2"),
        (1, {"tensor_parallel": 2}, "shape", 1, "needs 4"),
        (2, {"devices": (4,)}, "shape", 2, "device 4"),
        (0, {"micro_batch": 3}, "shape", 0, "does not divide"),
        (1, {"micro_batch": 1}, "shape", 1, "2 replicas share"),
        (0, {"choice": ("", "none-such")}, "shape", 0, "no alternative 'none-such'"),
        (0, {"sharding": ({}, {"out": 2})}, "shape", 0, "no dim 'out'"),
        (0, {"sharding": ({}, {"batch": 2})}, "shape", 0, "over 2 of 1 devices"),
        (1, {"sharding": ({"batch": 3},)}, "shape", 1, "size 1 is split into 3"),
        (2, {"devices": (2,)}, "C3", 2, "does not declare"),
        (1, {"devices": (1, 1)}, "C3", 1, "twice"),
    ],
)
def test_one_mutation_breaks_one_rule(
    position: int, fields: dict[str, object], rule: str, stage: int, said: str
) -> None:
    witness = broken(FOUR, changed(VALID, position, **fields))
    assert (witness.rule, witness.stage) == (rule, stage)
    assert said in witness.message


def test_an_operator_left_out_is_named() -> None:
    witness = broken(FOUR, changed(VALID, 0, operators=("op0",)))
    assert (witness.rule, witness.operator) == ("coverage", "op1")


def test_moving_one_operator_breaks_convexity_and_names_where_the_path_leaves() -> None:
    witness = broken(FOUR, stages_plan([[0, 3], [1], [2]]))
    assert (witness.rule, witness.stage, witness.operator) == ("C1", 0, "op1")
    assert "op0 (stage 0) -> op1 (stage 1) -> op2 (stage 2) -> op3 (stage 0)" in witness.message


def test_crossing_stages_make_a_cycle() -> None:
    crossing = dag_problem([1] * 4, [1] * 4, [(0, (2,), 1), (1, (3,), 1)], cluster(4))
    assert check_plan(crossing, stages_plan([[0, 1], [2, 3]])).status == "valid"
    witness = broken(crossing, stages_plan([[0, 3], [1, 2]]))
    assert (witness.rule, witness.message) == ("C2", "cycle of stages: 0 -> 1 -> 0")


def test_reversing_one_order_edge_makes_a_cycle_that_is_spelt_out() -> None:
    split = stages_plan([[0], [1], [2], [3]], order_edges=[(1, 2)])
    assert check_plan(FORK, split).status == "valid"
    assert check_plan(FORK, msgspec.structs.replace(split, order_edges=((2, 1),))).status == "valid"
    witness = broken(FORK, msgspec.structs.replace(split, order_edges=((3, 1),)))
    assert (witness.rule, witness.message) == ("C2", "cycle of stages: 1 -> 3 -order-> 1")
    assert broken(FORK, msgspec.structs.replace(split, order_edges=((2, 2),))).rule == "C2"


def test_stages_may_share_identical_devices_when_the_plan_says_so() -> None:
    shared = changed(VALID, 2, devices=(0,))
    assert broken(FOUR, shared).rule == "C3"
    assert check_plan(FOUR, msgspec.structs.replace(shared, placement="listed")).status == "valid"
    overlapping = msgspec.structs.replace(changed(VALID, 2, devices=(2,)), placement="listed")
    witness = broken(FOUR, overlapping)
    assert (witness.rule, witness.device) == ("C3", 2)


def test_copies_fit_divide_and_stay_apart() -> None:
    two = stages_plan([[0, 1], [2, 3]], micro_batch=2)
    assert check_plan(FOUR, msgspec.structs.replace(two, copies=2)).status == "valid"
    assert broken(FOUR, msgspec.structs.replace(two, copies=4)).rule == "shape"
    assert "3 copies" in broken(FOUR, msgspec.structs.replace(two, copies=3)).message
    per_copy = stages_plan([[0, 1], [2, 3]], micro_batch=8)
    assert "4 samples of a copy" in broken(FOUR, msgspec.structs.replace(per_copy, copies=2)).message
    witness = broken(FOUR, msgspec.structs.replace(changed(two, 1, devices=(2,)), copies=2))
    assert (witness.rule, witness.device) == ("shape", 4)
    assert "8 copies need 16 devices" in broken(FOUR, msgspec.structs.replace(two, copies=8)).message
    wide = chain_problem([1] * 4, [2] * 4, cluster(8), mode="sync", mini_batch=8)
    witness = broken(wide, msgspec.structs.replace(changed(two, 1, devices=(2,)), copies=2))
    assert (witness.rule, witness.device) == ("C3", 2)


def test_a_relayed_chain_lists_its_stages_downstream() -> None:
    chain = msgspec.structs.replace(stages_plan([[0], [1], [2], [3]]), routing="relay")
    assert check_plan(FORK, chain).status == "valid"
    upstream = msgspec.structs.replace(chain, stages=tuple(chain.stages[i] for i in (1, 0, 2, 3)))
    witness = broken(FORK, upstream)
    assert (witness.rule, witness.stage) == ("shape", 1)
    against = msgspec.structs.replace(chain, order_edges=((2, 1),))
    assert broken(FORK, against).message == "cycle of stages: 1 -> 2 -order-> 1"


def test_constant_operators_may_be_cloned_and_a_clone_sends_nothing() -> None:
    graph = FORK.profile.graph
    operators = (msgspec.structs.replace(graph.operators[0], constant=True), *graph.operators[1:])
    profile = msgspec.structs.replace(FORK.profile, graph=msgspec.structs.replace(graph, operators=operators))
    problem = msgspec.structs.replace(FORK, profile=profile)
    cloned = stages_plan([[0, 1], [0, 2, 3]])
    assert check_plan(problem, cloned).status == "valid"
    assert broken(FORK, cloned).rule == "coverage"
    assert "twice in stage 1" in broken(problem, stages_plan([[0, 1], [0, 2, 0, 3]])).message
    # Stage 1 reads only its clone, so nothing goes from stage 0 to it and back.
    assert broken(problem, stages_plan([[0, 1, 3], [2]])).rule == "C1"
    assert check_plan(problem, stages_plan([[0, 1, 3], [0, 2]])).status == "valid"


def test_alternatives_must_match_the_tensor_parallel_degree() -> None:
    costs = FOUR.profile.costs[0]
    split = Alternative(
        id="tp2", tensor_parallel=2, forward_s=(1e-9,), backward_s=(1e-9,), parameter_bytes=0,
        saved_bytes_per_sample=0.0,
    )  # fmt: skip
    operators = (msgspec.structs.replace(costs.operators[0], alternatives=(split,)), *costs.operators[1:])
    profile = msgspec.structs.replace(FOUR.profile, costs=(msgspec.structs.replace(costs, operators=operators),))
    problem = msgspec.structs.replace(FOUR, profile=profile)
    wide = Stage(operators=("op0", "op1"), devices=(0, 1), tensor_parallel=2, micro_batch=2, choice=("tp2", ""))
    rest = Stage(operators=("op2", "op3"), devices=(2,), micro_batch=2)
    assert check_plan(problem, Plan(stages=(wide, rest))).status == "valid"
    cut = msgspec.structs.replace(wide, sharding=({"batch": 2}, {}))
    assert "is split and runs by alternative 'tp2'" in broken(problem, Plan(stages=(cut, rest))).message
    other = msgspec.structs.replace(wide, sharding=({}, {"batch": 2}))
    assert check_plan(problem, Plan(stages=(other, rest))).status == "valid"
    narrow = msgspec.structs.replace(wide, devices=(0,), tensor_parallel=1)
    witness = broken(problem, Plan(stages=(narrow, rest)))
    assert (witness.rule, witness.stage, witness.operator) == ("shape", 0, "op0")


def test_what_the_cost_model_cannot_price_is_unknown_not_valid() -> None:
    deep = msgspec.structs.replace(FOUR.profile.graph.operators[2], dims={"n": 2})
    operators = (*FOUR.profile.graph.operators[:2], deep, FOUR.profile.graph.operators[3])
    graph = msgspec.structs.replace(FOUR.profile.graph, operators=operators)
    silent = msgspec.structs.replace(FOUR, profile=msgspec.structs.replace(FOUR.profile, graph=graph))
    split = changed(VALID, 1, data_parallel=1, tensor_parallel=2, sharding=({"n": 2},))
    verdict = check_plan(silent, split)
    assert (verdict.status, verdict.witness) == ("unknown", None)
    assert "stage 1" in verdict.reason
    assert "'op2' does not say" in verdict.reason
    samples = changed(VALID, 1, data_parallel=1, tensor_parallel=2, sharding=({"batch": 2},))
    assert check_plan(silent, samples).status == "valid"
    mixed = Cluster(
        name="mixed",
        types=(DeviceType(name="gpu", memory_bytes=10), DeviceType(name="old", memory_bytes=10)),
        devices=("gpu", "gpu", "old", "gpu"),
        levels=(LinkLevel(name="flat", group=4, bandwidth_bytes_s=1e9),),
    )
    both = (FOUR.profile.costs[0], msgspec.structs.replace(FOUR.profile.costs[0], device_type="old"))
    profile = msgspec.structs.replace(FOUR.profile, costs=both)
    problem = msgspec.structs.replace(FOUR, profile=profile, cluster=mixed)
    assert "several types (gpu, old)" in check_plan(problem, VALID).reason
