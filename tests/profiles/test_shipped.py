"""The profiles that ship are what the manifest makes, and small."""

from pathlib import Path

import pytest

from pipebench.formats import profiles
from pipebench.formats.profiles import load_profile, profile_names
from tests.profiles.regenerate import documents


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Path, bytes]]:
    return {path.stem: (path, data) for path, data in documents()}


def test_the_manifest_names_every_file(made: dict[str, tuple[Path, bytes]]) -> None:
    assert profile_names() == sorted(made) == ["mmt", "resnet50", "transformer"]


@pytest.mark.parametrize("name", ["mmt", "resnet50", "transformer"])
def test_they_are_made_again_byte_for_byte(made: dict[str, tuple[Path, bytes]], name: str) -> None:
    path, data = made[name]
    assert path.read_bytes() == data, "run: python -m tests.profiles.regenerate"
    assert len(data) < 2**18


@pytest.mark.parametrize(
    ("name", "operators", "sizes"),
    [
        ("mmt", 97, (1, 2, 4, 8, 16, 32, 64, 128)),
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


def test_an_installed_package_has_them_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "pipebench"
    (package / "_profiles").mkdir(parents=True)
    (package / "_profiles" / "manifest.toml").write_text("")
    (package / "_profiles" / "inside.json").write_text("{}")
    monkeypatch.setattr(profiles.pipebench, "__file__", str(package / "__init__.py"))
    profiles.profiles_folder.cache_clear()
    try:
        assert profile_names() == ["inside"]
    finally:
        profiles.profiles_folder.cache_clear()
