"""Which format a file is in, and what its options may say."""

from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.formats.documents import write_document
from pipebench.formats.profiles.files import read_any, read_profile
from pipebench.formats.profiles.shipped import load_profile, profile_names
from tests.builders import chain_problem, cluster
from tests.formats.graph_txt import DIAMOND

PROFILE = chain_problem([1, 2], [3, 4], cluster(1)).profile


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.json"
    write_document(ours, "profile", PROFILE)
    theirs.write_text(DIAMOND)
    assert read_profile(str(ours)) == PROFILE
    assert read_profile(str(theirs)).name == "theirs"
    assert read_any(str(theirs))[0] == "profile"


def test_options_reach_the_format(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text(DIAMOND)
    assert read_profile(str(path), {"batch": "8", "device": "V100"}).costs[0].micro_batches == (8,)
    assert read_any(f"{path}[batch=8]")[1].costs[0].micro_batches == (8,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bacth": "8"}, "did you mean 'batch'"),
        ({"batch": "many"}, "Expected `int"),
        ({"batch": "0"}, "batch is 0"),
        ({"saved": "all"}, "'all' .valid: boundary, inputs, outputs"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, str], message: str) -> None:
    path = tmp_path / "net.txt"
    path.write_text(DIAMOND)
    with pytest.raises(PipebenchError, match=message):
        read_profile(str(path), options)


def test_our_documents_have_no_options(tmp_path: Path) -> None:
    path = tmp_path / "ours.json"
    write_document(path, "profile", PROFILE)
    with pytest.raises(PipebenchError, match="batch"):
        read_profile(str(path), {"batch": "8"})


def test_a_name_decides_where_the_content_tells_nothing(tmp_path: Path) -> None:
    text, json, other = tmp_path / "a.txt", tmp_path / "a.json", tmp_path / "a.bin"
    for path in (text, json, other):
        path.write_text("hello\n")
    with pytest.raises(PipebenchError, match="line 1: a node reads"):
        read_profile(str(text))
    with pytest.raises(PipebenchError, match="not valid JSON"):
        read_profile(str(json))
    with pytest.raises(PipebenchError, match=r"no profile format that is known.*graph\.txt"):
        read_profile(str(other))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    with pytest.raises(PipebenchError, match="is empty"):
        read_profile(str(empty))
    with pytest.raises(PipebenchError, match="is a directory"):
        read_profile(str(tmp_path))
    with pytest.raises(PipebenchError, match="there is no file"):
        read_profile(str(tmp_path / "missing.txt"))
    with pytest.raises(PipebenchError, match=r"neither a file nor a shipped profile 'resnet5'.*'resnet50'"):
        read_profile("resnet5", known=profile_names())


def test_unknown_shipped_profile() -> None:
    with pytest.raises(PipebenchError, match=r"unknown profile 'mmd'.*did you mean 'mmt'"):
        load_profile("mmd")
