"""Which part would explain a measured step: a part that was scaled is named with its factor."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.attachment.explanation import LARGEST_FACTOR, PartAlone, explain_step
from pipebench.domain.errors import UnsupportedProblem
from pipebench.simulation.step_parts import MILLION, PARTS, TASK_PARTS, Part, PartedStep
from tests.bench.attachment.logged_row import logged_run
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import gpipe_schedule, one_f_one_b_schedule


def alone(explained: Any, part: Part) -> PartAlone:
    (found,) = [each for each in explained.parts if each.part == part]
    assert isinstance(found, PartAlone)
    return found


@settings(max_examples=30, deadline=None)
@given(part=st.sampled_from([*TASK_PARTS, "messages"]), factor=st.integers(0, LARGEST_FACTOR * MILLION))
def test_a_scaled_part_of_a_run_is_named_back(part: Part, factor: int) -> None:
    """The factor that is said gives the same step, and changes the part no more than the true one."""
    problem, plan, schedule, _ = logged_run()
    step = PartedStep(problem, plan, schedule)
    measured_ns = step.scaled_ns({part: factor})
    found = alone(explain_step(problem, plan, schedule, measured_ns / 1e9), part)
    assert found.factor is not None
    assert found.reached_ns == measured_ns
    assert step.scaled_ns({part: round(found.factor * MILLION)}) == measured_ns
    assert abs(found.factor - 1) <= abs(factor / MILLION - 1) + 1e-12
    if measured_ns != step.total_ns:
        nearer = round(found.factor * MILLION) + (1 if factor < MILLION else -1)
        assert step.scaled_ns({part: nearer}) != measured_ns


def test_of_each_part_the_factor_or_that_it_explains_nothing() -> None:
    """Kernels alone: two stages of 30 ns, two micro-batches, messages of 5 ns: 3 x 30 + 2 x 5 = 100 ns."""
    problem = chain_problem([10, 10], [20, 20], cluster(2), activations=[0, 5, 0], mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1]])
    made = explain_step(problem, plan, gpipe_schedule(problem, plan), 145e-9)
    assert (made.simulated_ns, made.measured_ns, made.devices) == (100, 145, (0,))
    assert alone(made, "kernels").simulated_ns == 60
    assert alone(made, "kernels").factor == pytest.approx(1.5, abs=0.05)
    assert alone(made, "kernels").reached_ns == 145
    assert (alone(made, "bubble").simulated_ns, alone(made, "bubble").factor) == (35, pytest.approx(80 / 35))
    assert alone(made, "optimizer").factor is None
    assert alone(made, "optimizer").reached_ns == 100
    assert [each.part for each in made.parts[:2]] == ["kernels", "bubble"]
    little = explain_step(problem, plan, gpipe_schedule(problem, plan), 110e-9)
    assert alone(little, "messages").factor == pytest.approx(1.9)  # 9.5 ns and more are 10
    faster = explain_step(problem, plan, gpipe_schedule(problem, plan), 80e-9)
    assert alone(faster, "kernels").factor == pytest.approx(70 / 90, abs=0.02)
    assert (alone(faster, "messages").factor, alone(faster, "messages").reached_ns) == (None, 90)
    slower = explain_step(problem, plan, gpipe_schedule(problem, plan), 1e-6)
    assert (alone(slower, "messages").factor, alone(slower, "messages").reached_ns) == (
        None,
        260,
    )  # one after the other
    assert (alone(slower, "bubble").factor, alone(slower, "bubble").reached_ns) == (None, 65 + 350)


@pytest.mark.parametrize("factor", [0.8, 1.3])
def test_the_least_change_is_named_first_whichever_way(factor: float) -> None:
    """By the ratio: half as long is as far as twice as long."""
    problem, plan, schedule, _ = logged_run()
    measured_ns = PartedStep(problem, plan, schedule).scaled_ns({"kernels": round(factor * MILLION)})
    made = explain_step(problem, plan, schedule, measured_ns / 1e9)
    ratios = [max(each.factor, 1 / each.factor) for each in made.parts if each.factor]
    assert len(ratios) > 1
    assert ratios == sorted(ratios)
    assert [each.factor is None for each in made.parts] == sorted(each.factor is None for each in made.parts)


def test_nothing_is_to_be_explained_where_both_agree() -> None:
    problem, plan, schedule, simulated_s = logged_run()
    made = explain_step(problem, plan, schedule, simulated_s)
    assert {each.factor for each in made.parts} == {1.0}
    assert {each.part for each in made.parts} == set(PARTS)


def test_a_part_that_is_given_explains_no_more() -> None:
    """With kernels 1.2 times as long given, what is left of a difference in both is the other part's."""
    problem, plan, schedule, _ = logged_run()
    both: dict[Part, int] = {"kernels": 1_200_000, "tensor_parallel": 1_700_000}
    measured_ns = PartedStep(problem, plan, schedule).scaled_ns(both)
    made = explain_step(problem, plan, schedule, measured_ns / 1e9, given={"kernels": 1_200_000})
    assert made.given == {"kernels": 1.2}
    assert "kernels" not in {each.part for each in made.parts}
    assert alone(made, "tensor_parallel").factor == pytest.approx(1.7, abs=1e-5)


def test_collectives_that_are_not_told_apart() -> None:
    problem, plan, schedule, simulated_s = logged_run()
    assert explain_step(problem, plan, schedule, simulated_s).collectives_told
    chain = chain_problem([10], [20], cluster(2), mode="sync", mini_batch=2)
    split = stages_plan([[0]], replicas=[2])
    (stage,) = split.stages
    from msgspec.structs import replace

    whole = replace(split, stages=(replace(stage, data_parallel=1, tensor_parallel=2),))
    assert not explain_step(chain, whole, one_f_one_b_schedule(chain, whole), 1e-6).collectives_told


def test_a_plan_without_a_flush_is_not_explained() -> None:
    problem = chain_problem([1], [1], cluster(1), mode="async")
    plan = stages_plan([[0]])
    with pytest.raises(UnsupportedProblem, match="no step"):
        explain_step(problem, plan, gpipe_schedule(problem, plan), 1.0)
