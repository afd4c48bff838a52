"""The file of acknowledged changes: added to, read strictly, never without a reason."""

from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.track.judgement.acknowledgements import Acknowledgement, acknowledge, read_acknowledged


def test_what_is_added_is_read_and_comments_stay(tmp_path: Path) -> None:
    file = tmp_path / "acknowledged.toml"
    assert read_acknowledged(file) == ()
    first = Acknowledgement(event="0123abcd", reason='a "larger" class\n[[x]] \\ ü', about="mine", at="2026-01-01")
    acknowledge(file, [first])
    file.write_text(file.read_text() + "# kept\n")
    second = Acknowledgement(event="89abcdef", reason="also")
    acknowledge(file, [second])
    assert read_acknowledged(file) == (first, second)
    assert "# kept" in file.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[acknowledged]]\nevent = "a"\n', "reason"),
        ('[[acknowledged]]\nevent = "a"\nreason = " "\n', "has no reason"),
        ('[[acknowledged]]\nevent = "a"\nreasn = "x"\n', "reasn"),
        ("acknowledged = 3\n", "acknowledged"),
        ("[[", "not valid TOML"),
    ],
)
def test_a_file_that_is_wrong_is_said_and_left_alone(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "acknowledged.toml"
    file.write_text(text)
    with pytest.raises(PipebenchError, match=message):
        read_acknowledged(file)
    with pytest.raises(PipebenchError, match=message):
        acknowledge(file, [Acknowledgement(event="b", reason="x")])
    assert file.read_text() == text


def test_an_empty_reason_is_refused() -> None:
    with pytest.raises(PipebenchError, match="no reason"):
        Acknowledgement(event="a", reason=" ")
