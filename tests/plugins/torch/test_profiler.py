"""Profiles measured on this CPU: of captured modules and of the project's own models."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.bench.problems.plugin_sources import profile_of
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Profile
from pipebench.hooks.context import ProfileRequest
from tests.plugins.running import services
from tests.plugins.torch.small import cpu_cluster, run, stages

BUILD = "tests.plugins.torch.user_module:build"
REQUEST = ProfileRequest(devices=(DeviceType(name="cpu", memory_bytes=1),), micro_batches=(2, 4))


def measured(model: str, options: str = "repeats=3,least_s=0", request: ProfileRequest = REQUEST) -> Profile:
    return profile_of(services().host, model, f"torch[{options}]", request)


def test_a_module_by_import_path() -> None:
    profile = measured(BUILD)
    by_name = {op.name: op for op in profile.graph.operators}
    assert {"table", "layers.0.norm", "layers.1.inner", "layers.1.outer", "head"} <= set(by_name)
    assert by_name["layers.1.inner"].layer == 1
    assert by_name["head"].kind == "linear"
    weights = 11 * 16 + 2 * (2 * 16 + 4 * 16 * 16 + 4 * 16 + 2 * 16 * 32 + 32 + 16) + 3 * 16 + 3
    assert sum(profile.graph.parameter_bytes.values()) == 4 * weights
    (costs,) = profile.costs
    inner = costs.operators[profile.graph.index["layers.0.inner"]]
    assert all(time > 0 for time in (*inner.forward_s, *inner.backward_s))
    # it keeps its input, which nothing before it keeps
    assert inner.saved_bytes_per_sample in (0, 4 * 6 * 16)
    assert profile.provenance.model == BUILD
    assert sum("whole model" in note for note in profile.provenance.notes) == 2


def test_what_does_not_depend_on_the_input_is_constant() -> None:
    profile = measured(f"{BUILD}[layers=1]", "repeats=1,least_s=0,group=node")
    constant = {op.name for op in profile.graph.operators if op.constant}
    assert any(name.startswith("ones") for name in constant)
    assert not any(name.startswith(("linear", "embedding")) for name in constant)


def test_groups_by_module_are_coarser() -> None:
    sizes = [
        len(measured(BUILD, f"repeats=1,least_s=0,{o}").graph.operators)
        for o in ("group=node", "depth=0", "depth=2")
    ]
    assert sizes[0] > sizes[1] > sizes[2]


def test_a_project_model_keeps_its_graph() -> None:
    profile = measured("tiny-mmt[layers=1]")
    assert [op.kind for op in profile.graph.operators] == ["attention", "linear", "linear"] * 2 + ["concat"]
    assert profile.costs[0].operators[0].forward_s[1] > 0


def test_the_sum_of_operators_is_near_the_whole_model() -> None:
    """Threshold of the project's issue: 15 %, forward and backward, at each size. Of three measurements, as others
    may disturb one; a profiler that is off is off in all.
    """
    worst = []
    while len(worst) < 3 and not any(apart < 15 for apart in worst):
        profile = measured("resnet50[image_size=64]", "repeats=7,least_s=1")
        notes = [note for note in profile.provenance.notes if "whole model" in note]
        apart = [float(found) for note in notes for found in re.findall(r"([+-][0-9.]+) %", note)]
        assert len(apart) == 4
        worst.append(max(map(abs, apart)))
    assert min(worst) < 15


def test_a_name_of_both_is_captured_where_the_project_s_operators_cannot_be_computed() -> None:
    pytest.importorskip("transformers", reason="captures a model of transformers")
    profile = measured("bert", "repeats=1,least_s=0,warmup=0,depth=1", replace(REQUEST, micro_batches=(1,)))
    assert profile.provenance.model == "bert"


def test_a_stopped_measurement_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipebench_torch.profiling import passes

    scratch = tmp_path / "p.json.partial"
    asked: list[int] = []
    real = passes.measure

    def counted(model: object, samples: int, *rest: object) -> object:
        if asked and len(asked) == 1 and asked[0] == 2 and samples == 4:
            asked.append(-1)
            raise KeyboardInterrupt
        asked.append(samples)
        return real(model, samples, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(passes, "measure", counted)
    request = replace(REQUEST, scratch=str(scratch))
    with pytest.raises(KeyboardInterrupt):
        measured("tiny-mmt[layers=1]", request=request)
    measured("tiny-mmt[layers=1]", request=request)
    assert asked == [2, -1, 4]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("bertt", "unknown model 'bertt'.*did you mean 'bert'"),
        ("no.such.package:build", "cannot be imported"),
        ("tests.plugins.torch.user_module:nothing", "cannot be imported"),
        ("tests.plugins.torch.user_module:without_inputs", "without example inputs"),
        ("tests.plugins.torch.user_module:no_module", "gives int"),
    ],
)
def test_models_that_cannot_be_captured(model: str, reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        measured(model)


def test_other_devices_are_refused() -> None:
    with pytest.raises(PipebenchError, match="measures this machine"):
        measured("tiny-mmt", request=replace(REQUEST, devices=(DeviceType(name="A100", memory_bytes=1),)))


@pytest.mark.usefixtures("warm")
def test_a_captured_module_runs_in_stages() -> None:
    profile = measured(BUILD)
    names = [op.name for op in profile.graph.operators]
    on = replace_type(cpu_cluster(2))
    problem = Problem(profile=profile, cluster=on, mini_batch=8, regime=Regime(mode="sync"))
    middle = names.index("layers.1.norm")
    plan = Plan(stages=stages([names[:middle], names[middle:]], micro_batch=2))
    _, said = run(problem, plan, services().schedule("1f1b", problem, plan))
    assert said == "gradients equal those of a single process: exactly, in float64"


@pytest.mark.usefixtures("warm")
def test_a_table_that_two_operators_use_counts_once_and_is_not_cut() -> None:
    profile = measured("tests.plugins.torch.user_module:tied")
    graph = profile.graph
    assert graph.parameter_bytes == {"table.weight": 4 * 11 * 16, "inner.weight": 4 * 256, "inner.bias": 4 * 16}
    assert [op.parameters for op in graph.operators if op.name in ("table", "head")] == [("table.weight",)] * 2
    problem = Problem(
        profile=profile, cluster=replace_type(cpu_cluster(2)), mini_batch=8, regime=Regime(mode="sync")
    )
    names = [op.name for op in graph.operators]
    cut = Plan(stages=stages([names[:-1], names[-1:]], micro_batch=2))
    with pytest.raises(UnsupportedProblem, match=r"'table.weight' is used in stages 0 and 1"):
        run(problem, cut, services().schedule("1f1b", problem, cut))
    whole = Plan(stages=stages([names], micro_batch=2))
    _, said = run(problem, whole, services().schedule("1f1b", problem, whole))
    assert said.startswith("gradients equal those of a single process")


def replace_type(cluster):  # type: ignore[no-untyped-def]
    from msgspec.structs import replace as replace_fields

    kinds = tuple(replace_fields(kind, name="cpu") for kind in cluster.types)
    return replace_fields(cluster, types=kinds, devices=("cpu",) * cluster.size)
