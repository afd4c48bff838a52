"""Which compiled kernels a child finds, and which of its own are kept."""

import os
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


def test_what_a_child_reads_no_other_child_learns(folders: ChildFolders) -> None:
    _found(folders, SUITE)
    before = [os.lstat(path).st_atime_ns for path in sorted(folders.kernels.rglob("*"))]
    _found(folders, SUITE)
    assert [os.lstat(path).st_atime_ns for path in sorted(folders.kernels.rglob("*"))] == before


@pytest.mark.parametrize("change", ["times", "mode", "file", "link", "entry"])
def test_what_a_child_changes_no_other_child_finds(folders: ChildFolders, change: str) -> None:
    folders.renew(SUITE)
    folders.note()
    inside = folders.kernels / "algorithms"
    if change == "times":
        read_s = os.lstat(inside / "one.nbc").st_atime
        os.utime(inside / "one.nbc", (read_s, 17), follow_symlinks=False)
    elif change == "mode":
        inside.chmod(0o701)
    elif change == "file":
        (inside / "memo").write_text("the plan")
    elif change == "link":
        (inside / "one.nbc").unlink()
        (inside / "one.nbc").symlink_to("/the/plan")
    else:
        (folders.kernels / "memo").write_text("the plan")
    assert set(_found(folders, SUITE)) == {"algorithms/index", "algorithms/one"}
    assert {path.name for path in folders.kernels.rglob("*")} == {"algorithms", "index.nbi", "one.nbc"}
    assert os.lstat(inside / "one.nbc").st_mtime != 17
    assert inside.stat().st_mode & 0o777 != 0o701


def test_what_nobody_changes_stays(folders: ChildFolders) -> None:
    folders.renew(SUITE)
    before = os.lstat(folders.kernels / "algorithms" / "one.nbc")
    folders.renew("stranger")
    after = os.lstat(folders.kernels / "algorithms" / "one.nbc")
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
