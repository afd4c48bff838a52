"""What a foreign file carries comes back the same; what it cannot carry is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.profiles.files import WRITERS, read_profile, write_profile
from pipebench.formats.profiles.parts import only, with_setting
from pipebench.formats.profiles.shipped import load_profile
from tests.builders import chain_problem, cluster
from tests.formats.graph_txt import DIAMOND, read_text
from tests.shared_data import shared_data

PIPEDREAM = ("alexnet", "densenet121", "gnmt", "inception_v3", "resnet50", "vgg16")
SETTING: dict[str, Any] = {"devices": 4, "memory_bytes": 10**9, "bandwidth_bytes_s": 1e9, "mini_batch": 16}


def again(profile: Profile, folder: Path, name: str, **options: str) -> Profile:
    path = folder / name
    path.write_bytes(write_profile(profile, name).data)
    return read_profile(str(path), options)


def figures(profile: Profile) -> dict[str, Any]:
    """All that a one-output, one-size file carries, by operator."""
    graph, costs = profile.graph, profile.costs[0]
    size = {t.name: (t.producer, t.forward_bytes_per_sample) for t in graph.tensors}
    return {
        operator.name: (
            each.forward_s,
            each.backward_s,
            pytest.approx(each.saved_bytes_per_sample),
            sorted(str(size[tensor][0]) for tensor in operator.inputs if size[tensor][0]),
            [pytest.approx(graph.tensors[tensor].forward_bytes_per_sample) for tensor in graph.outputs[position]],
            sum(graph.parameter_bytes[name] for name in operator.parameters),
        )
        for position, (operator, each) in enumerate(zip(graph.operators, costs.operators, strict=True))
    }


@pytest.mark.parametrize("name", PIPEDREAM)
def test_graph_txt(name: str, tmp_path: Path) -> None:
    profile = read_profile(str(shared_data(f"pipedream/{name}.txt")))
    batch = profile.costs[0].micro_batches[0]
    back = again(profile, tmp_path, f"{name}.txt", batch=str(batch))
    assert figures(back) == figures(profile)
    assert [op.kind for op in back.graph.operators] == [op.kind for op in profile.graph.operators]
    assert len(back.graph.tensors) == len(profile.graph.tensors)


def test_stage_ids_of_a_graph_txt(tmp_path: Path) -> None:
    text = DIAMOND.replace("parameter_size=128\n", "parameter_size=128 -- stage_id=2\n")
    profile = read_text(text)
    back = again(profile, tmp_path, "net.txt", batch="2")
    assert back.graph.operators[-1].attributes == {"stage_id": 2}
    assert figures(back) == figures(profile)


@pytest.mark.parametrize("name", ["resnet50", "gnmt"])
@pytest.mark.parametrize("end", [".csv", ".layers.json"])
def test_layer_table(name: str, end: str, tmp_path: Path) -> None:
    profile = read_profile(str(shared_data(f"pipedream/{name}.txt")))
    back = again(profile, tmp_path, name + end)
    assert back.costs[0].micro_batches == profile.costs[0].micro_batches
    assert figures(back) == figures(profile)


@pytest.mark.parametrize("name", ["bert32a100", "gnmt"])
def test_piper(name: str, tmp_path: Path) -> None:
    path = shared_data(f"piper/{name}.json")
    profile = read_profile(str(path))
    back = again(profile, tmp_path, f"{name}.piper.json")
    assert back.name == name
    assert {op.name: set(op.inputs) for op in back.graph.operators} == {
        op.name: set(op.inputs) for op in profile.graph.operators
    }
    assert set(back.graph.tensors) == set(profile.graph.tensors)
    assert back.graph.parameters == profile.graph.parameters
    assert back.provenance.setting == profile.provenance.setting
    for mine, their in zip(back.costs[0].operators, profile.costs[0].operators, strict=True):
        assert [way.id for way in mine.alternatives] == [way.id for way in their.alternatives]
        assert [way.boundary_bytes for way in mine.alternatives] == [
            way.boundary_bytes for way in their.alternatives
        ]
        assert [way.fixed_bytes for way in mine.alternatives] == [way.fixed_bytes for way in their.alternatives]
    ours, theirs = json.loads((tmp_path / f"{name}.piper.json").read_text()), json.loads(path.read_text())
    assert {key: ours[key] for key in theirs if key not in ("nodes", "edges")} == {
        key: theirs[key] for key in theirs if key not in ("nodes", "edges")
    }
    assert sorted((e["sourceId"], e["destId"], e["communicationCost"]) for e in ours["edges"]) == sorted(
        (e["sourceId"], e["destId"], e["communicationCost"]) for e in theirs["edges"]
    )
    for our, their in zip(ours["nodes"], theirs["nodes"], strict=True):
        for degree, tmpcs in their["TMPCs"].items():
            for own, tmpc in zip(our["TMPCs"][degree], tmpcs, strict=True):
                assert own["id"] == tmpc["id"]
                assert own["syncTimeFw"] == tmpc["syncTimeFw"]
                assert own["syncTimeBw"] == tmpc["syncTimeBw"]
                for key in ("timePerSample", "memoryUsageA"):
                    assert own[key] == pytest.approx(tmpc[key], rel=1e-12)
                for key in ("parameterSize", "memoryUsageB"):
                    assert own[key] == pytest.approx(tmpc[key], abs=1.5)


@pytest.mark.parametrize(
    "name", ["bert24_inference", "bert24_training", "inceptionv3_inference", "resnet50_training"]
)
def test_tarnawski_layer_graphs(name: str, tmp_path: Path) -> None:
    profile = read_profile(str(shared_data(f"tarnawski/LayerGraphs/{name}.json")))
    back = again(profile, tmp_path, f"{name}.tarnawski.json")
    assert [op.name for op in back.graph.operators] == [op.name for op in profile.graph.operators]
    for mine, their in zip(back.costs, profile.costs, strict=True):
        for one, other in zip(mine.operators, their.operators, strict=True):
            assert one.forward_s == pytest.approx(other.forward_s)
            assert one.backward_s == pytest.approx(other.backward_s)
            assert one.saved_bytes_per_sample == other.saved_bytes_per_sample
    ratio = back.provenance.setting.bandwidth_bytes_s / profile.provenance.setting.bandwidth_bytes_s  # type: ignore[union-attr,operator]
    assert [t.forward_bytes_per_sample for t in back.graph.tensors] == pytest.approx(
        [t.forward_bytes_per_sample * ratio for t in profile.graph.tensors]
    )
    assert [t.gradient_bytes_per_sample for t in back.graph.tensors] == pytest.approx(
        [t.gradient_bytes_per_sample * ratio for t in profile.graph.tensors]
    )


@pytest.mark.parametrize("name", list(WRITERS))
def test_our_own_profiles_can_be_written(name: str, tmp_path: Path) -> None:
    profile = with_setting(chain_problem([1000, 2000], [3000, 4000], cluster(1)).profile, **SETTING)
    end = WRITERS[name][0]
    back = again(profile, tmp_path, f"own{end}", **({"batch": "1"} if name == "pipedream" else {}))
    forward, backward = (
        sum(times)
        for times in zip(*((c.forward_s[0], c.backward_s[0]) for c in back.costs[0].operators), strict=True)
    )
    assert forward + backward == pytest.approx(10e-6)
    assert forward == pytest.approx(10e-6 / 3 if name == "piper" else 3e-6)


def test_what_is_left_out_is_told() -> None:
    profile = with_setting(only(load_profile("mmt"), None, 8), **SETTING)
    told = " ".join(write_profile(profile, "mmt.csv").lost)
    assert "inputs of the model" in told


@pytest.mark.parametrize("end", [".csv", ".txt", ".layers.json", ".piper.json", ".tarnawski.json"])
def test_several_sizes_are_refused(end: str) -> None:
    with pytest.raises(PipebenchError, match="micro-batch"):
        write_profile(with_setting(load_profile("mmt"), **SETTING), f"mmt{end}")


@pytest.mark.parametrize("end", [".piper.json", ".tarnawski.json"])
def test_a_setting_is_needed(end: str) -> None:
    with pytest.raises(PipebenchError, match="say --devices, --memory and --bandwidth"):
        write_profile(chain_problem([1], [1], cluster(1)).profile, f"own{end}")


def test_a_name_that_tells_no_format() -> None:
    profile = chain_problem([1], [1], cluster(1)).profile
    with pytest.raises(PipebenchError, match="does not say which format"):
        write_profile(profile, "own.xlsx")
    with pytest.raises(PipebenchError, match=r"unknown format to write 'pipper'.*did you mean 'piper'"):
        write_profile(profile, "own.json", "pipper")
