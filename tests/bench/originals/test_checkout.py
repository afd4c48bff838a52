"""What a folder must have to be run, and what is read of it."""

from pathlib import Path

import pytest

from pipebench.bench.originals import checkout as checkouts
from pipebench.bench.originals.checkout import open_checkout
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.originals import Original, OriginalCase

ORIGINAL = Original(
    system="mine",
    repository="me/mine",
    commit="a" * 40,
    language="python",
    source="run.py",
    files=("lib/graph.py",),
    answer="best:",
    cases=(OriginalCase(inputs="inputs/*.txt", devices=2),),
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    whole = tmp_path / "whole"
    for name in ("run.py", "lib/graph.py", "inputs/b.txt", "inputs/a.txt", "inputs/c.md"):
        (whole / name).parent.mkdir(parents=True, exist_ok=True)
        (whole / name).write_text(name)
    return whole


def test_what_is_missing_is_named_with_what_to_do(folder: Path) -> None:
    (folder / "lib" / "graph.py").unlink()
    with pytest.raises(PipebenchError, match=r"no checkout of me/mine: it lacks lib/graph.py") as caught:
        open_checkout(str(folder), ORIGINAL)
    assert "git clone https://github.com/me/mine; commit aaaaaaaaaaaa" in str(caught.value)
    with pytest.raises(PipebenchError, match="is no folder"):
        open_checkout(str(folder / "run.py"), ORIGINAL)


def test_inputs_are_sorted_and_lie_inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "outside.txt").write_text("")
    (folder / "inputs" / "link.txt").symlink_to(folder.parent / "outside.txt")
    opened = open_checkout(str(folder), ORIGINAL)
    assert opened.inputs("inputs/*.txt") == ("inputs/a.txt", "inputs/b.txt")
    monkeypatch.setattr(checkouts, "MOST_INPUTS", 1)
    with pytest.raises(PipebenchError, match="2 files inputs"):
        opened.inputs("inputs/*.txt")


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({}, ""),
        ({"HEAD": COMMIT}, COMMIT),
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": f"{COMMIT}\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/main", "packed-refs": f"# pack-refs\n{COMMIT} refs/heads/main\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/main"}, ""),
        ({"HEAD": "ref: refs/../../run.py"}, ""),
        ({"HEAD": "anything"}, ""),
    ],
)
def test_the_commit_is_read_off_gits_files(folder: Path, files: dict[str, str], commit: str) -> None:
    for name, text in files.items():
        path = folder / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert open_checkout(str(folder), ORIGINAL).commit == commit


def test_a_file_that_was_written_shows(folder: Path) -> None:
    opened = open_checkout(str(folder), ORIGINAL)
    before = opened.state()
    assert opened.state() == before
    (folder / "run.py").write_text("longer than it was")
    (folder / "new").write_text("")
    after = opened.state()
    assert sorted(name for name in after if after[name] != before.get(name)) == [
        str(folder / "new"),
        str(folder / "run.py"),
    ]


@pytest.mark.parametrize("name", ["/etc/passwd", "../run.py", "a/../../b"])
def test_a_source_lies_in_the_checkout(name: str) -> None:
    with pytest.raises(PipebenchError, match="is not in the checkout"):
        Original(
            system="mine",
            repository="me/mine",
            commit="",
            language="python",
            source=name,
            answer="best:",
            cases=ORIGINAL.cases,
        )


def test_a_case_has_inputs_or_a_model() -> None:
    with pytest.raises(PipebenchError, match="inputs or a model"):
        OriginalCase(devices=2)
    with pytest.raises(PipebenchError, match="inputs lie in the checkout"):
        OriginalCase(inputs="../*.txt", devices=2)
