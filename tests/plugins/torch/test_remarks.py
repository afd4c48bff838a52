"""What a user is told beside a measured trace."""

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_torch.executor import judge_gradients, note_other_device
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.job import Difference
from tests.plugins.torch.small import diamond, problem_of, stages

CPU = "Some CPU 3.0"


def said(difference: Difference, tolerance: float = 0.0) -> str:
    context = Context(options=ExecutorOptions())
    judge_gradients(difference, tolerance, context)
    return "; ".join(context.notices)


def test_some_roundings_are_no_difference_and_more_are() -> None:
    fine = Difference(
        parameters=11, exact=5, worst=1e-15, name="w", kind="a single process", numbers="float64", rounding=2**-52
    )
    assert (
        said(fine) == "gradients equal those of a single process: 5 of 11 exactly, the rest to 1e-15, in float64"
    )
    assert said(replace(fine, exact=11, worst=0.0)).endswith(": exactly, in float64")
    # what float32 would round away is a difference in float64
    for worst, tolerance in ((1e-6, 0.0), (float("inf"), 0.0), (1e-15, 1e-16)):
        with pytest.raises(PipebenchError, match="gradients differ from those of a single process"):
            said(replace(fine, worst=worst), tolerance)
    assert said(replace(fine, worst=1e-6), 1e-5)
    assert said(replace(fine, worst=1e-6, numbers="float32", rounding=2**-23)).endswith("float32")


def of_device(kind: str, profiler: str, name: str) -> Problem:
    """A problem on devices of this type, whose profile comes from that profiler on that machine."""
    problem = problem_of(diamond(), 2, 4)
    types = tuple(replace(each, name=kind) for each in problem.cluster.types)
    cluster = replace(problem.cluster, types=types, devices=(kind, kind))
    costs = tuple(replace(each, device_type=kind) for each in problem.profile.costs)
    origin = replace(problem.profile.provenance, profiler=profiler, device=name)
    return replace(problem, cluster=cluster, profile=replace(problem.profile, costs=costs, provenance=origin))


@pytest.mark.parametrize(
    ("kind", "profiler", "name", "named"),
    [
        ("cpu", "torch[]", CPU, None),
        ("cpu", "analytic[calibrate=p.json]", "cpu", None),
        ("V100-16GB", "analytic[]", "V100-16GB", "V100-16GB"),
        ("cpu", "torch[]", "Another CPU", "Another CPU"),
        ("the table's name of it", "torch[]", CPU, None),
    ],
)
def test_a_profile_of_another_device_is_said(kind: str, profiler: str, name: str, named: str | None) -> None:
    problem = of_device(kind, profiler, name)
    names = [op.name for op in problem.profile.graph.operators]
    layout = layout_of(Plan(stages=stages([names[:3], names[3:]])), 4)
    context = Context(options=ExecutorOptions())
    note_other_device(problem, layout, "cpu", CPU, context)
    if named is None:
        assert context.notices == []
    else:
        (notice,) = context.notices
        assert notice.startswith(f"the profile is of {named} and this ran on {CPU}")
        assert "pipebench profile MODEL --profiler torch --device cpu" in notice
