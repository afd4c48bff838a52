"""On a CUDA device: what a profile of it says, and that plans compute there what a single process computes."""

import re

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch
from msgspec.structs import replace

from pipebench.bench.problems.plugin_sources import profile_of
from pipebench.domain.cluster import DeviceType
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Profile
from pipebench.hooks.context import ProfileRequest
from tests.plugins.running import services
from tests.plugins.torch.small import cpu_cluster, diamond, image, problem_of, run, stages

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

REQUEST = ProfileRequest(devices=(DeviceType(name="cuda", memory_bytes=1),), micro_batches=(2, 8))


def measured(model: str, options: str) -> Profile:
    return profile_of(services().host, model, f"torch[{options}]", REQUEST)


def seconds(profile: Profile, size: int) -> float:
    (costs,) = profile.costs
    place = costs.micro_batches.index(size)
    return sum(each.forward_s[place] + each.backward_s[place] for each in costs.operators)


def test_a_profile_says_what_the_card_is_and_how_long_it_waits_for_the_processor() -> None:
    profile = measured("tiny-mmt", "repeats=5,least_s=0.2")
    origin = profile.provenance
    assert origin.device == torch.cuda.get_device_name(0)
    assert {"cuda", "cudnn", "driver"} <= origin.versions.keys()
    notes = [note for note in origin.notes if "queued before the card begins" in note]
    told = [[float(found) for found in re.findall(r"([\d.e-]+) s\b", note)] for note in notes]
    assert len(told) == 2
    for launched_forward, launched_backward, forward, backward in told:
        assert 0 < forward + backward < launched_forward + launched_backward
    (costs,) = profile.costs
    assert all(min(each.forward_s) > 0 for each in costs.operators)
    assert any(each.workspace_bytes > 0 for each in costs.operators)


def test_a_held_card_takes_no_longer_than_one_that_waits_for_the_processor() -> None:
    """The kernels of this model are so small that launching them takes longer than they do."""
    waiting, held = (measured("tiny-mmt", f"repeats=9,least_s=0.3,queued={way}") for way in ("false", "true"))
    assert seconds(held, 2) < seconds(waiting, 2)


@pytest.mark.parametrize("recompute", [False, True])
def test_stages_of_one_card_compute_what_a_single_process_computes(recompute: bool) -> None:
    problem = problem_of(diamond(), 1, 8)
    names = [op.name for op in problem.profile.graph.operators]
    parts = [names[:2], names[2:]]
    on_one = stages(parts, micro_batch=2, devices=[(0,), (0,)], recompute=recompute)
    plan = Plan(stages=on_one, placement="listed")
    schedule = services().schedule("greedy", problem, plan)
    trace, said = run(problem, plan, schedule, device="cuda")
    assert said.startswith("gradients equal those of a single process")
    assert trace.memory[0].bytes


def test_processes_that_share_a_card_compute_what_a_single_process_computes() -> None:
    problem = problem_of(image(), 3, 12)
    names = [op.name for op in problem.profile.graph.operators]
    plan = Plan(stages=stages([names[:4], names[4:]], micro_batch=[2, 6], devices=[(0,), (1, 2)]))
    schedule = services().schedule("gpipe", problem, plan)
    _, said = run(problem, plan, schedule, device="cuda", backend="gloo")
    assert said.startswith("gradients equal those of a single process")


def test_a_run_on_one_card_takes_what_its_profile_says() -> None:
    """Loosely, as others may use the card; docs/explanation/accuracy.md has the figures."""
    profile = measured("transformer[layers=2,hidden=1024,ffn=4096,heads=16,sequence=512]", "repeats=9,least_s=0.3")
    kind = replace(cpu_cluster(1, 4 * 10**10).types[0], name=profile.device_types[0])
    cluster = replace(cpu_cluster(1), types=(kind,), devices=(kind.name,))
    problem = Problem(profile=profile, cluster=cluster, mini_batch=64, regime=Regime(mode="sync"))
    names = [op.name for op in profile.graph.operators]
    plan = Plan(stages=stages([names], micro_batch=8))
    schedule = services().schedule("1f1b", problem, plan)
    trace, _ = run(problem, plan, schedule, device="cuda", verify="no")
    assert 8 * seconds(profile, 8) == pytest.approx(trace.total_ns / 1e9, rel=0.25)
