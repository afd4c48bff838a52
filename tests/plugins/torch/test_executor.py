"""Plans on real processes compute what a single process computes, and their traces are valid."""

import pytest
from msgspec.structs import replace

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.check import check_schedule
from pipebench.check.trace import check_trace
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.domain.workload import WorkloadSpec
from tests.plugins.running import services
from tests.plugins.torch.small import diamond, image, problem_of, run, stages

pytestmark = pytest.mark.usefixtures("warm")

CLOCK_NS = 2_000_000
"""How far a completed receive may be seen late, when the receiver was busy."""


def scheduled_run(problem: Problem, plan: Plan, scheduler: str, **options: object) -> str:
    schedule = services().schedule(scheduler, problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    trace, said = run(problem, plan, schedule, **options)
    assert trace.origin == "measured"
    assert trace.total_ns > 0
    assert len(trace.kinds) >= 2 * sum(problem.mini_batch // stage.micro_batch for stage in plan.stages)
    assert len(trace.memory) == len({device for stage in plan.stages for device in stage.devices})
    return said


def test_a_diamond_of_stages_on_four_processes_is_exact() -> None:
    problem = problem_of(diamond(), 4, 8)
    plan = Plan(stages=stages([("a",), ("b0", "b"), ("c",), ("concat", "d", "e")], micro_batch=2))
    assert scheduled_run(problem, plan, "1f1b").endswith("exactly, in float64")


def test_non_contiguous_madpipe_on_four_processes_is_exact() -> None:
    spec = WorkloadSpec(
        model="transformer[layers=6,hidden=64,ffn=256,heads=4,sequence=32]",
        devices=4,
        mini_batch=16,
        micro_batch=2,
        memory="2MB",
        profiler="analytic[workspace_bytes=0]",
    )
    problem = WorkloadBuilder(services().host).workload(spec).problem("async")
    result = services().plan("madpipe", problem)
    assert result.plan.placement == "listed"
    assert result.schedule is not None
    trace, said = run(problem, result.plan, result.schedule, iterations=4)
    assert said.startswith(
        "gradients equal those of a single process with weights 1 updates old: exactly, in float64"
    )
    assert trace.period_ns is not None
    # a receive is seen when its process looks: instants tell nothing of who had the link
    free = replace(problem, cluster=replace(problem.cluster, link_mode="delay"))
    without = replace(trace, memory=())  # of a process; a few MB of it are not the plan's
    verdict = check_trace(free, result.plan, result.schedule, without, tolerance_ns=CLOCK_NS)
    assert verdict.status == "valid", verdict.witness


def test_replicas_and_micro_batches_of_several_sizes() -> None:
    """Batch statistics follow the replicas' parts, 3 samples in two parts of 1 and 2."""
    problem = problem_of(image(), 4, 12)
    names = [op.name for op in problem.profile.graph.operators]
    plan = Plan(
        stages=stages([names[:3], names[3:7], names[7:]], micro_batch=[2, 3, 6], devices=[(0,), (1, 3), (2,)])
    )
    said = scheduled_run(problem, plan, "gpipe")
    assert said.startswith("gradients equal those of a single process")


def test_copies_recomputation_and_a_split_backward() -> None:
    problem = problem_of(diamond(), 4, 8)
    plan = Plan(
        stages=stages([("a", "b0", "b"), ("c", "concat", "d", "e")], micro_batch=2, recompute=True), copies=2
    )
    tasks = [
        [(0, 0, "F"), (0, 1, "F"), (0, 0, "I"), (0, 0, "W"), (0, 1, "B"), (0, 0, "R")],
        [(1, 0, "F"), (1, 0, "B"), (1, 1, "F"), (1, 1, "B"), (1, 0, "R")],
    ]
    lanes = tuple(
        Lane(
            devices=(device,),
            stage=tuple(task[0] for task in rows),
            micro_batch=tuple(task[1] for task in rows),
            kinds="".join(task[2] for task in rows),
        )
        for device, rows in enumerate(tasks)
    )
    _, said = run(problem, plan, FiniteSchedule(lanes=lanes))
    assert said.startswith("gradients equal those of a single process")


@pytest.mark.parametrize("recompute", [False, True])
def test_stages_of_one_device_hand_tensors_on_without_messages(recompute: bool) -> None:
    """One tensor is the input of two stages of the process, and each has a gradient for it."""
    problem = problem_of(diamond(), 1, 8)
    parts = [("a",), ("b0", "b"), ("c",), ("concat", "d", "e")]
    on_one = stages(parts, micro_batch=2, devices=[(0,)] * 4, recompute=recompute)
    plan = Plan(stages=on_one, placement="listed")
    assert scheduled_run(problem, plan, "greedy").endswith("exactly, in float64")
