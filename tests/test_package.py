"""The package: what its wheel holds, and what it says of itself."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import pipebench

ROOT = Path(__file__).parents[1]
METADATA_SOURCES = (
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "hatch_build.py",
    "pipebench/__init__.py",
    "pyproject.toml",
)
REPOSITORY = "https://example.org/someone/pipebench"
SITE = "https://someone.example.org/pipebench"


@pytest.fixture(scope="module")
def citation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_citation", ROOT / "docs" / "citation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def project_copy(folder: Path, **settings: str) -> Path:
    """What the package's metadata are made from, with lines of the settings changed."""
    for name in METADATA_SOURCES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    text = (folder / "pyproject.toml").read_text()
    for name, value in settings.items():
        text, changed = re.subn(rf'^{name} = ".*"$', f'{name} = "{value}"', text, flags=re.MULTILINE)
        assert changed == 1, f"{name} has one home"
    (folder / "pyproject.toml").write_text(text)
    return folder


def package_metadata(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "metadata"], cwd=folder, check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def relative_links(text: str) -> list[str]:
    return re.findall(r"\]\((?!https?://|#)([^)]*)\)", text)


def test_the_type_checker_reads_every_package_of_the_wheel(wheel_files: set[str]) -> None:
    packages = {name.partition("/")[0] for name in wheel_files if ".dist-info" not in name}
    assert packages == {"pipebench", *(path.name for path in (ROOT / "plugins").glob("pipebench_*"))}
    assert {package for package in packages if f"{package}/py.typed" not in wheel_files} == set()


def test_the_wheel_holds_what_the_code_reads_beside_it(wheel_files: set[str]) -> None:
    read = {
        path.relative_to(base).as_posix()
        for base, folder in ((ROOT, "pipebench"), (ROOT / "plugins", "."))
        for path in (base / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    profiles = {f"pipebench/_profiles/{path.name}" for path in (ROOT / "profiles").iterdir()}
    assert {"pipebench/documents/glossary.toml", "pipebench/bench/suites/quick.toml"} <= read
    assert (read | profiles) - wheel_files == set()
    assert any(name.endswith("licenses/LICENSE") for name in wheel_files)


def test_a_place_that_is_not_known_is_left_out(tmp_path: Path, citation: ModuleType) -> None:
    folder = project_copy(tmp_path, repository="", documentation="")
    found = package_metadata(folder)
    assert found.get("urls", {}) == {}
    assert relative_links(found["readme"]["text"]) == []
    assert "![" not in found["readme"]["text"]
    assert not {"repository-code", "url"} & set(yaml.safe_load(citation.citation(folder)))


def test_one_line_sets_all_links_to_the_repository(tmp_path: Path, citation: ModuleType) -> None:
    folder = project_copy(tmp_path, repository=REPOSITORY)
    found = package_metadata(folder)
    assert {"Source": REPOSITORY, "Issues": f"{REPOSITORY}/issues"}.items() <= found["urls"].items()
    text = found["readme"]["text"]
    assert relative_links(text) == []
    assert f"({REPOSITORY}/blob/HEAD/docs/CONTRIBUTING.md" in text
    pictures = re.findall(r"!\[[^\]]*\]\((.*?)\)", text)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture.removeprefix(f"{REPOSITORY}/raw/HEAD/")).is_file(), picture
    assert yaml.safe_load(citation.citation(folder))["repository-code"] == REPOSITORY


def test_one_line_sets_the_link_to_the_documentation(tmp_path: Path, citation: ModuleType) -> None:
    folder = project_copy(tmp_path, documentation=SITE)
    assert package_metadata(folder)["urls"]["Documentation"] == SITE
    assert yaml.safe_load(citation.citation(folder))["url"] == SITE


def test_code_of_the_readme_is_not_taken_for_links(tmp_path: Path) -> None:
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    text = package_metadata(project_copy(tmp_path))["readme"]["text"]
    assert blocks.findall(text) == blocks.findall((ROOT / "README.md").read_text())


def test_the_version_is_that_of_the_code_and_has_a_date(tmp_path: Path, citation: ModuleType) -> None:
    assert package_metadata(project_copy(tmp_path))["version"] == pipebench.__version__
    cited = yaml.safe_load(citation.citation())
    assert cited["version"] == pipebench.__version__
    assert f"## [{pipebench.__version__}] - {cited['date-released']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_is_current_and_has_what_its_format_requires(citation: ModuleType) -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert text == citation.citation(), "python docs/citation.py"
    cited = yaml.safe_load(text)
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert all(author["name"] for author in cited["authors"])
    assert cited["license"] == "Apache-2.0"
