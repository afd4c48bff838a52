"""Sources of both sides: a commit as it was, the working tree as it is, the repository untouched."""

import os
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.track.against.installation import (
    Side,
    check_out,
    commit_of,
    copy_working_tree,
    describe_revision,
    install,
    install_sides,
    project_name,
    repository,
)
from tests.track.against import made_repository
from tests.track.against.made_repository import git


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """One commit, then: a change, a new file, a file that is gone, an ignored one."""
    folder = made_repository.repository(tmp_path / "repository")
    (folder / "mine" / "planner.py").write_text("STEPS = 120\n")
    (folder / "mine" / "new.py").write_text("")
    (folder / "mine" / "plugin.py").unlink()
    (folder / "build").mkdir()
    (folder / "build" / "old.py").write_text("")
    return folder


def test_a_commit_is_checked_out_as_it_was(top: Path, tmp_path: Path) -> None:
    commit = commit_of(top, "HEAD")
    assert commit is not None
    check_out(top, commit, tmp_path / "out")
    assert (tmp_path / "out" / "mine" / "planner.py").read_text() == made_repository.PLANNER
    assert (tmp_path / "out" / "mine" / "plugin.py").exists()


def test_the_working_tree_is_copied_as_it_is(top: Path, tmp_path: Path) -> None:
    (top / "link").symlink_to("pyproject.toml")
    copy_working_tree(top, tmp_path / "out")
    assert (tmp_path / "out" / "mine" / "planner.py").read_text() == "STEPS = 120\n"
    assert (tmp_path / "out" / "mine" / "new.py").exists()
    assert not (tmp_path / "out" / "mine" / "plugin.py").exists()
    assert not (tmp_path / "out" / "build").exists()
    assert (tmp_path / "out" / "link").is_symlink()


def test_the_repository_stays_as_it_is(top: Path, tmp_path: Path) -> None:
    before = git(top, "status", "--porcelain"), git(top, "worktree", "list"), git(top, "branch", "-a")
    copy_working_tree(top, tmp_path / "out")
    assert (git(top, "status", "--porcelain"), git(top, "worktree", "list"), git(top, "branch", "-a")) == before


@pytest.mark.parametrize("revision", ["nothing", "--all", "HEAD~7"])
def test_what_names_no_commit(top: Path, revision: str) -> None:
    assert commit_of(top, revision) is None


def test_where_there_is_no_repository(tmp_path: Path) -> None:
    assert repository(tmp_path) is None
    with pytest.raises(PipebenchError, match="not in a git repository with a pyproject"):
        install_sides("HEAD", tmp_path, tmp_path / "scratch")


def test_a_revision_that_is_neither_a_commit_nor_a_version(top: Path, tmp_path: Path) -> None:
    with pytest.raises(PipebenchError, match=r"'no-such' is neither a revision of .* nor a version"):
        install_sides("no-such", top, tmp_path / "scratch")


def test_described(top: Path, tmp_path: Path) -> None:
    assert describe_revision(top).endswith("-dirty")
    assert describe_revision(tmp_path) == ""


def test_the_name_of_the_project(top: Path, tmp_path: Path) -> None:
    assert project_name(top) == "mine"
    (tmp_path / "pyproject.toml").write_text("[tool.x]\n")
    with pytest.raises(PipebenchError, match="names no project"):
        project_name(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[")
    with pytest.raises(PipebenchError, match="not valid TOML"):
        project_name(tmp_path)


def test_what_pip_cannot_install_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(PipebenchError, match=r"pip install .*source"):
        install(str(tmp_path / "source"), tmp_path / "site")


def test_a_side_comes_first_on_the_path_and_keeps_its_own_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "relative:/absolute")
    side = Side("x", tmp_path / "site", tmp_path / "kernels")
    environment = side.environment()
    assert environment["PYTHONPATH"].split(":") == [
        str(tmp_path / "site"),
        str(Path.cwd() / "relative"),
        "/absolute",
    ]
    assert environment.get("NUMBA_CACHE_DIR") == os.environ.get("NUMBA_CACHE_DIR")
    (tmp_path / "site" / "pipebench").mkdir(parents=True)
    (tmp_path / "site" / "pipebench" / "__init__.py").write_text("")
    assert side.environment()["NUMBA_CACHE_DIR"] == str(tmp_path / "kernels")


def test_a_version_is_fetched_and_a_revision_is_built(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "pipebench.track.against.installation.install", lambda what, target, source=None: asked.append(what)
    )
    first = install_sides("0.9", top, tmp_path / "one")
    assert (first.distribution, first.before.name) == ("mine", "mine 0.9")
    assert asked == ["mine==0.9", str(tmp_path / "one" / "after-source")]
    git(top, "tag", "0.9")
    asked.clear()
    install_sides("0.9", top, tmp_path / "two")
    assert asked == [str(tmp_path / "two" / name) for name in ("before-source", "after-source")]
