"""The profiles that ship are what the manifest makes, and small."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.formats.devices import load_device
from pipebench.formats.profiles import shipped
from pipebench.formats.profiles.shipped import load_profile, profile_names
from tests.analytic.profiling import run
from tests.models.zoo import model
from tests.profiles.regenerate import documents

NAMES = ["densenet121", "inception_v3", "mmt", "resnet101", "resnet50", "transformer"]
ON_CPU = ["bert-cpu", "clip-cpu", "gpt2-cpu", "llama70b-cpu", "resnet50-cpu", "tiny-mmt-cpu"]
ON_CARD = ["bert-h200", "clip-h200", "llama3-8b-h200", "resnet50-h200", "transformer-h200"]
MEASURED = [*ON_CPU, *ON_CARD]
LEAN = ["densenet121", "inception_v3", "resnet101"]


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Path, bytes]]:
    return {path.stem: (path, data) for path, data in documents()}


def test_the_manifest_names_every_file(made: dict[str, tuple[Path, bytes]]) -> None:
    assert sorted(made) == NAMES
    assert profile_names() == sorted([*NAMES, *MEASURED])


@pytest.mark.parametrize("name", MEASURED)
def test_measured_ones_say_where_and_how(name: str) -> None:
    profile = load_profile(name)
    origin = profile.provenance
    assert origin.profiler.startswith("torch[")
    assert origin.device
    assert origin.date
    assert origin.versions["torch"]
    assert origin.relative_spread is not None
    assert (shipped.profiles_folder() / f"{name}.json").stat().st_size < 300_000
    # the project's bar: the sum of operators within 15 % of the whole model, at every size
    whole = [note for note in origin.notes if "the sum of its operators" in note]
    assert len(whole) == len(profile.costs[0].micro_batches)
    apart = [float(found) for note in whole for found in re.findall(r"([+-][0-9.]+) %", note)]
    assert len(apart) == 2 * len(whole)
    assert max(map(abs, apart)) < 15
    assert all(sum(costs.forward_s) > 0 for costs in profile.costs[0].operators if costs.saved_bytes_per_sample)


@pytest.mark.parametrize("name", ON_CARD)
def test_those_of_a_card_are_of_a_device_of_the_table(name: str) -> None:
    profile = load_profile(name)
    (device,) = profile.device_types
    assert load_device(device).memory_bytes > 10**11
    assert {"cuda", "cudnn", "driver"} <= profile.provenance.versions.keys()
    assert any(costs.workspace_bytes for costs in profile.costs[0].operators)
    told = [note for note in profile.provenance.notes if "queued before the card begins" in note]
    assert len(told) == len(profile.costs[0].micro_batches)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_made_again_byte_for_byte(made: dict[str, tuple[Path, bytes]], name: str) -> None:
    path, data = made[name]
    assert path.read_bytes() == data, "run: python -m tests.profiles.regenerate"
    assert len(data) < 2**18


@pytest.mark.parametrize(
    ("name", "operators", "sizes"),
    [
        ("mmt", 97, (1, 2, 4, 8, 16, 32, 64, 128)),
        ("densenet121", 427, (8,)),
        ("inception_v3", 314, (8,)),
        ("resnet101", 345, (8,)),
        ("resnet50", 175, (1, 2, 4, 8)),
        ("transformer", 96, (1, 2, 4, 8, 16, 32, 64, 128)),
    ],
)
def test_what_they_hold(name: str, operators: int, sizes: tuple[int, ...]) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert len(profile.graph.operators) == operators
    assert profile.on("V100-SXM2-16GB").micro_batches == sizes
    assert profile.provenance.profiler.startswith("analytic[")
    assert profile.provenance.notes[0].startswith(f"model {name}")


@pytest.mark.parametrize("name", LEAN)
def test_a_lean_file_reads_as_what_was_profiled(name: str) -> None:
    """But for the axes."""
    device = load_device("V100-SXM2-16GB")
    made = run(model(name, image_size=1000), (8,), device, max_tensor_parallel=1, recompute=False)
    read = load_profile(name)
    assert read.costs == made.costs
    assert read.graph.tensors == made.graph.tensors
    assert [replace(operator, axes={}) for operator in made.graph.operators] == list(read.graph.operators)


def test_an_installed_package_has_them_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "pipebench"
    (package / "_profiles").mkdir(parents=True)
    (package / "_profiles" / "manifest.toml").write_text("")
    (package / "_profiles" / "inside.json").write_text("{}")
    monkeypatch.setattr(shipped.pipebench, "__file__", str(package / "__init__.py"))
    shipped.profiles_folder.cache_clear()
    try:
        assert profile_names() == ["inside"]
    finally:
        shipped.profiles_folder.cache_clear()
