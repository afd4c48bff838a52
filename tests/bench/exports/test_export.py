"""Exports: what they say of a plan is what the suite measures, and refusals come with a plan that works."""

from dataclasses import replace as dataclass_replace

import pytest
from msgspec.structs import replace

from pipebench.bench.exports.export import Export, Refusal, export
from pipebench.bench.exports.tolerance import Turn, turns
from pipebench.bench.services import HostServices
from pipebench.check import check_pins
from pipebench.documents.document import PlannedProblem
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.formats.frameworks.arrangement import arrange
from pipebench.formats.frameworks.targets import TARGETS
from pipebench.formats.frameworks.torch_schedule import read_cells
from pipebench.hooks.manager import Host
from pipebench.report.text.exports import export_lines, refusal_hint, refusal_lines
from tests.language_models import HEAVY_HEAD, TINY, planned, problem

HOST = Host()
PINS = Pins(tensor_parallel=2, pipeline=4, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")


@pytest.fixture(scope="module")
def given() -> Problem:
    return problem(devices=8, mini_batch=16, pins=PINS, **HEAVY_HEAD)


@pytest.fixture(scope="module")
def plan(given: Problem) -> Plan:
    return planned(given)


def exported(given: Problem, plan: Plan, name: str) -> Export | Refusal:
    return export(HOST, PlannedProblem(problem=given, plan=plan), TARGETS[name], "order.csv")


def test_it_says_what_the_suite_measures(given: Problem, plan: Plan) -> None:
    made = exported(given, plan, "megatron")
    assert isinstance(made, Export)
    services = HostServices(HOST)
    trace = services.simulate(given, plan, services.schedule("1f1b", given, plan))
    assert made.prediction.seconds == trace.total_ns / 1e9
    peak = max(memory.peak_bytes for memory in trace.memory)
    assert made.prediction.free_bytes == given.cluster.memory_bytes - peak
    assert made.uniform is not None
    assert made.uniform.seconds > made.prediction.seconds
    text = "\n".join(export_lines(made))
    for part in (
        "Megatron-LM d98e8a64dd",
        "uniform split takes",
        "free on the fullest device",
        "head:",
        "embedding:",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("framework", "target", "said"),
    [
        ("", "megatron", "priced without a framework's step (--framework)"),
        ("megatron", "megatron", "priced as megatron runs it"),
        ("torchtitan-eager", "torchtitan", "priced as torchtitan-eager runs it"),
        ("megatron", "pipelining", "priced as megatron runs it"),
        (
            "torchtitan",
            "megatron",
            "PRICED AS torchtitan RUNS IT, not as megatron does: plan with --framework megatron or --framework "
            "megatron-v2",
        ),
        ("megatron-deepspeed", "torchtitan", "PRICED AS megatron-deepspeed RUNS IT, not as torchtitan does"),
    ],
)
def test_it_says_whose_step_was_priced(given: Problem, plan: Plan, framework: str, target: str, said: str) -> None:
    step = StepCosts(framework=framework, optimizer_s_per_element=0.0) if framework else None
    made = exported(replace(given, regime=replace(given.regime, step=step)), plan, target)
    assert isinstance(made, Export)
    (line,) = [line for line in export_lines(made) if line.lower().startswith("priced")]
    assert line.startswith(said)


def test_where_it_says_another_wins_another_wins(given: Problem, plan: Plan) -> None:
    """Times of the head just beyond the factor make the named rival faster, and just short of it do not."""
    services = HostServices(HOST)
    head = {"head", "norm"}
    found = [turn for turn in turns(services, arrange(given, plan)) if turn.item == "head" and turn.factor]
    assert found
    for turn in found:
        assert turn.rival is not None
        assert turn.factor is not None
        beyond = turn.factor * (1.001 if turn.factor > 1 else 0.999)
        changed = scaled(given, head, beyond)
        mine, other = (
            services.simulate(changed, each, services.schedule("1f1b", changed, each)).total_ns
            for each in (plan, turn.rival)
        )
        assert other < mine
    assert scaled(given, head, 1.0) == given


def test_parts_of_times_stay_parts_of_them(given: Problem, plan: Plan) -> None:
    """Profiles that are priced with a framework say what collectives are of a time. Both are scaled."""
    costs = given.profile.costs[0]
    operators = tuple(
        replace(
            each,
            alternatives=tuple(
                replace(way, forward_collective_s=way.forward_s, backward_collective_s=way.backward_s)
                for way in each.alternatives
            ),
        )
        for each in costs.operators
    )
    told = replace(given, profile=replace(given.profile, costs=(replace(costs, operators=operators),)))
    services = HostServices(HOST)
    assert [turn.factor for turn in turns(services, arrange(told, plan))] == [
        turn.factor for turn in turns(services, arrange(given, plan))
    ]


def scaled(given: Problem, names: set[str], factor: float) -> Problem:
    """The problem with the times of these operators multiplied."""

    def times(seconds: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(each * factor for each in seconds)

    costs = given.profile.costs[0]
    operators = tuple(
        each
        if each.operator not in names
        else replace(
            each,
            forward_s=times(each.forward_s),
            backward_s=times(each.backward_s),
            weight_gradient_s=times(each.weight_gradient_s),
            alternatives=tuple(
                replace(a, forward_s=times(a.forward_s), backward_s=times(a.backward_s)) for a in each.alternatives
            ),
        )
        for each in costs.operators
    )
    profile = replace(given.profile, costs=(replace(costs, operators=operators),))
    return replace(given, profile=profile)


def test_a_refusal_offers_a_plan_that_works(given: Problem, plan: Plan) -> None:
    pinned = replace(given, pins=Pins(micro_batch=2))
    stages = tuple(
        replace(
            stage,
            micro_batch=2,
            in_flight=0,
            data_parallel=2 if k == 0 else 1,
            tensor_parallel=1,
            choice=(),
            devices=(2 * k, 2 * k + 1) if k == 0 else (2 * k,),
        )
        for k, stage in enumerate(plan.stages)
    )
    uneven = replace(plan, stages=stages)
    made = exported(pinned, uneven, "megatron")
    assert isinstance(made, Refusal)
    assert "replicas per stage differ" in made.reason
    assert made.nearest is not None
    assert made.nearest.prediction.fits
    assert TARGETS["megatron"].refusal(made.nearest.problem, made.nearest.plan) == ""
    assert check_pins(pinned, made.nearest.plan).status == "valid"
    assert "the nearest that it can" in "\n".join(refusal_lines(made))
    assert refusal_hint(made, None) == "plan with best, which keeps to what megatron can express"


def test_what_no_plan_has_words_for_names_the_option_alone() -> None:
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=2, virtual_stages=1, micro_batch=2)
    whole = problem(devices=4, mini_batch=16, pins=pins, sharding="zero3", **TINY)
    made = exported(whole, planned(whole), "megatron")
    assert isinstance(made, Refusal)
    assert made.nearest is None
    assert refusal_hint(made, None) == "plan with --optimizer-sharding zero1"


def test_torchtitan_gets_the_schedule(given: Problem, plan: Plan) -> None:
    made = exported(given, plan, "torchtitan")
    assert isinstance(made, Export)
    assert made.schedule is not None
    assert len(read_cells(made.schedule, "order.csv")) == 4


@pytest.mark.parametrize(
    ("framework", "keep", "whole"),
    [
        ("torchtitan", False, True),
        ("torchtitan-eager", False, True),
        ("torchtitan", True, False),
        ("", False, False),
    ],
)
def test_torchtitan_priced_gets_full_backwards_if_it_may(
    given: Problem, plan: Plan, framework: str, keep: bool, whole: bool
) -> None:
    """Split ones do not run with its usual attention: the block says so where it has them."""
    step = StepCosts(framework=framework, optimizer_s_per_element=0.0) if framework else None
    priced, plan = replace(given, regime=replace(given.regime, step=step)), plan.without_in_flight()
    schedule = HostServices(HOST).schedule("zb-h1", priced, plan)
    own = PlannedProblem(problem=priced, plan=plan, schedule=schedule, scheduler="zb-h1")
    made = export(HOST, own, TARGETS["torchtitan"], "order.csv", keep)
    assert isinstance(made, Export)
    assert made.schedule is not None
    assert (b"I" not in made.schedule) == whole
    assert made.prediction.scheduler == ("1f1b" if whole else "zb-h1")
    assert ("stage_backward_input stops on the BlockMask" in made.text) != whole
    said = "\n".join(export_lines(made))
    assert ("the plan's own order, zb-h1, takes" in said) == whole
    assert made.made.plan == plan


def test_torchtitan_reads_no_schedule_without_a_pipeline() -> None:
    pins = Pins(tensor_parallel=2, pipeline=1, data_parallel=2, virtual_stages=1, micro_batch=2)
    alone = problem(devices=4, mini_batch=8, pins=pins, **TINY)
    made = exported(alone, planned(alone), "torchtitan")
    assert isinstance(made, Export)
    assert made.schedule is None


def test_one_stage_has_no_turns(given: Problem) -> None:
    pins = Pins(tensor_parallel=8, pipeline=1, data_parallel=1, micro_batch=1)
    alone = problem(devices=8, mini_batch=4, pins=pins, **TINY)
    assert turns(HostServices(HOST), arrange(alone, planned(alone))) == []


def test_a_plan_without_flush_gets_a_micro_batch_of_its_own(given: Problem, plan: Plan) -> None:
    """There each stage takes the whole mini-batch at once, which with a flush would leave no pipeline."""
    pins = replace(PINS, micro_batch=None)
    stashed = replace(given, pins=pins, regime=replace(given.regime, mode="async"))
    whole = replace(plan, stages=tuple(replace(stage, micro_batch=16, in_flight=0) for stage in plan.stages))
    refused = exported(stashed, whole, "megatron")
    assert isinstance(refused, Refusal)
    assert refused.nearest is not None
    assert refused.nearest.plan.stages[0].micro_batch < 16


def test_a_search_that_time_ended_says_of_each_direction_how_far_it_came(given: Problem, plan: Plan) -> None:
    made = exported(given, plan, "megatron")
    assert isinstance(made, Export)
    cut = (
        Turn("head", 1.0, None, None, finished=False),
        Turn("head", 1.0, None, None, finished=False, upwards=False),
        Turn("embedding", 3.0, None, None, finished=False),
        Turn("embedding", 1.0, None, None, finished=False, upwards=False),
    )
    lines = [line for line in export_lines(dataclass_replace(made, turns=cut)) if "search" in line]
    assert lines == [
        "head: how wrong its time may be was not searched, the simulation takes too long",
        "embedding: no other cut wins up to 3 x its time; not searched further",
        "embedding: how much less time it may take was not searched, the simulation takes too long",
    ]
