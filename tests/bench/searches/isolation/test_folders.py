"""Which compiled kernels a child finds, and which of its own are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipebench.bench.searches.isolation.folders import ChildFolders
from pipebench.hooks.discovery import SUITE


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildFolders]:
    """Of a user without a kernel, but for one of the suite."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    made = ChildFolders()
    made.renew(SUITE)
    _compile(made, "algorithms", index="one", one="suite")
    made.keep_kernels(SUITE)
    yield made
    made.remove()


def _compile(folders: ChildFolders, module: str, **files: str) -> None:
    """What numba does in a child: it replaces the index, and adds a data file."""
    folder = folders.kernels / module
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name}.{'nbi' if name == 'index' else 'nbc'}"
        path.unlink(missing_ok=True)
        path.write_text(text)


def _found(folders: ChildFolders, owner: str) -> dict[str, str]:
    folders.renew(owner)
    return {f"{file.parent.name}/{file.stem}": file.read_text() for file in folders.kernels.rglob("*.nb?")}


def test_everybody_finds_the_kernels_of_the_suite(folders: ChildFolders) -> None:
    suite = {"algorithms/index": "one", "algorithms/one": "suite"}
    assert _found(folders, SUITE) == _found(folders, "stranger") == suite


def test_only_its_distribution_finds_what_a_plugin_has_compiled(folders: ChildFolders) -> None:
    folders.renew("stranger")
    _compile(folders, "strange", index="x", x="stranger")
    folders.keep_kernels("stranger")
    assert "strange/x" in _found(folders, "stranger")
    assert "strange/x" not in _found(folders, "other")
    assert "strange/x" not in _found(folders, SUITE)


def test_an_index_that_a_plugin_has_extended_is_read_with_the_files_that_it_names(folders: ChildFolders) -> None:
    folders.renew("stranger")
    _compile(folders, "algorithms", index="one, two", two="stranger")
    folders.keep_kernels("stranger")
    folders.renew(SUITE)
    _compile(folders, "algorithms", index="other", one="compiled again, in another order")
    folders.keep_kernels(SUITE)
    assert _found(folders, "stranger") == {
        "algorithms/index": "one, two",
        "algorithms/one": "suite",
        "algorithms/two": "stranger",
    }


def test_a_link_that_a_child_has_made_is_not_followed(folders: ChildFolders, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("secret")
    folders.renew("stranger")
    _compile(folders, "algorithms", index="one, two")
    (folders.kernels / "algorithms" / "two.nbc").symlink_to(secret)
    folders.keep_kernels("stranger")
    assert "secret" not in _found(folders, "stranger").values()
    assert "algorithms/two" not in _found(folders, "stranger")
