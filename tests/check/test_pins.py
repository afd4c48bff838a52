"""check_pins: each pin honoured, and broken by one other plan."""

import msgspec
import pytest

from pipebench.check import check_pins
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import RecomputePin
from pipebench.testing.cases import layers
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([1] * 4, [1] * 4, cluster(8), mode="sync", mini_batch=8)
PLAIN = stages_plan([[0, 1], [2, 3]], micro_batch=2, replicas=[2, 2])


def stage(*operators: str, devices: tuple[int, ...] = (0,), choice: tuple[str, ...] = ()) -> Stage:
    return Stage(operators=operators, devices=devices, micro_batch=2, choice=choice)


WAVES = Plan(
    stages=(stage("op0"), stage("op1", devices=(1,)), stage("op2"), stage("op3", devices=(1,))),
    placement="listed",
)


@pytest.mark.parametrize(
    ("pins", "plan", "honoured"),
    [
        (Pins(), PLAIN, True),
        (Pins(micro_batch=2), PLAIN, True),
        (Pins(micro_batch=4), PLAIN, False),
        (Pins(tensor_parallel=1), PLAIN, True),
        (Pins(tensor_parallel=2), PLAIN, False),
        (Pins(data_parallel=2), PLAIN, True),
        (Pins(data_parallel=1), PLAIN, False),
        (Pins(data_parallel=2), msgspec.structs.replace(PLAIN, copies=2), False),
        (Pins(data_parallel=4), msgspec.structs.replace(PLAIN, copies=2), True),
        (Pins(pipeline=2), PLAIN, True),
        (Pins(pipeline=4), PLAIN, False),
        (Pins(pipeline=2, virtual_stages=2), WAVES, True),
        (Pins(pipeline=4), WAVES, False),
        (Pins(virtual_stages=1), WAVES, False),
        (Pins(virtual_stages=1), PLAIN, True),
        (Pins(recompute="none"), PLAIN, True),
        (Pins(recompute="stage"), PLAIN, False),
    ],
)
def test_pins(pins: Pins, plan: Plan, honoured: bool) -> None:
    verdict = check_pins(msgspec.structs.replace(PROBLEM, pins=pins), plan)
    assert (verdict.status == "valid") == honoured
    if verdict.witness is not None:
        assert "is pinned to" in verdict.witness.message


@pytest.mark.parametrize(
    ("choice", "found"), [(("again", "again"), "stage"), (("again", ""), "part"), (("", ""), "none")]
)
def test_recomputation_by_stage_or_by_all_of_its_operators(choice: tuple[str, ...], found: str) -> None:
    costs = PROBLEM.profile.costs[0]
    again = Alternative(
        id="again", recompute=True, forward_s=(1e-9,), backward_s=(2e-9,), parameter_bytes=0,
        saved_bytes_per_sample=0.0,
    )  # fmt: skip
    operators = tuple(msgspec.structs.replace(c, alternatives=(again,)) for c in costs.operators)
    profile = msgspec.structs.replace(
        PROBLEM.profile, costs=(msgspec.structs.replace(costs, operators=operators),)
    )
    whole = msgspec.structs.replace(
        stage("op2", "op3", devices=(1,)), recompute="stage" if found == "stage" else "none"
    )
    plan = Plan(stages=(stage("op0", "op1", choice=choice), whole))
    for pinned in ("none", "stage"):
        pins = Pins(recompute="stage" if pinned == "stage" else "none")
        problem = msgspec.structs.replace(PROBLEM, profile=profile, pins=pins)
        assert (check_pins(problem, plan).status == "valid") == (found == pinned)


FULL, HALF, PLAIN_WAY = "recompute", "selective", ""


@pytest.mark.parametrize(
    ("choice", "whole", "found"),
    [
        ((FULL, FULL, FULL), "none", "full"),
        ((HALF, HALF, HALF), "none", "selective"),
        ((FULL, HALF, FULL), "none", "part"),
        ((FULL, PLAIN_WAY, FULL), "none", "part"),
        ((), "none", "none"),
        ((), "stage", "stage"),
        ((FULL, FULL, FULL), "stage", "stage"),
    ],
)
@pytest.mark.parametrize("pin", ["full", "selective", "none", "stage"])
def test_every_layer_of_every_stage_recomputes_as_it_is_pinned(
    choice: tuple[str, ...], whole: str, found: str, pin: RecomputePin
) -> None:
    """What recomputes all of its layers also honours `stage`, as profiles of operators have it."""
    problem = msgspec.structs.replace(layers("sync", Pins()), pins=Pins(recompute=pin))
    first = Stage(
        operators=("op0", "op1", "op2"), devices=(0,), micro_batch=2, choice=choice,
        recompute="stage" if whole == "stage" else "none",
    )  # fmt: skip
    rest = {"full": FULL, "selective": HALF}.get(pin, PLAIN_WAY)
    second = Stage(
        operators=("op3", "op4", "op5"), devices=(1,), micro_batch=2, choice=(rest,) * 3,
        recompute="stage" if pin == "stage" else "none",
    )  # fmt: skip
    verdict = check_pins(problem, Plan(stages=(first, second)))
    honours = pin == found or (pin, found) == ("stage", "full")
    assert (verdict.status == "valid") == honours
    if verdict.witness is not None:
        assert verdict.witness.message == f"recompute is pinned to {pin}, stage 0 has {found}"
        assert verdict.witness.stage == 0


def test_operators_of_no_layer_run_as_they_like() -> None:
    given = layers("sync", Pins(recompute="full"))
    graph = given.profile.graph
    last = msgspec.structs.replace(graph.operators[-1], layer=None)
    headed = msgspec.structs.replace(
        given.profile, graph=msgspec.structs.replace(graph, operators=(*graph.operators[:-1], last))
    )
    problem = msgspec.structs.replace(given, profile=headed)
    names = tuple(operator.name for operator in headed.graph.operators)
    for way in (PLAIN_WAY, FULL, HALF):
        plan = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=2, choice=(FULL,) * 5 + (way,)),))
        assert check_pins(problem, plan).status == "valid"
    other = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=2, choice=(HALF,) * 5 + (PLAIN_WAY,)),))
    witness = check_pins(problem, other).witness
    assert witness is not None
    assert witness.message == "recompute is pinned to full, stage 0 has selective"
    head = Stage(operators=names[5:], devices=(1,), micro_batch=2)
    body = Stage(operators=names[:5], devices=(0,), micro_batch=2, choice=(FULL,) * 5)
    assert check_pins(problem, Plan(stages=(body, head))).status == "valid"
