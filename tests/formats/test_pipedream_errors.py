"""Every way in which a graph.txt may be wrong is one line with the file and the line."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.profiles.pipedream import PipeDreamOptions, read
from tests.formats.graph_txt import DIAMOND, node, read_text

CYCLE = "\tnode5 -- node3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no operators"),
        (node("node1", "Input", 1, 0, 4), "no operators"),
        ("node1\n", "line 1: a node reads"),
        ("hello world\n", "line 1: a node reads"),
        ("node1 -- Conv2d(3, 8)\n", "line 1: a node reads"),
        (DIAMOND[:40], "line 1: a node reads"),
        (DIAMOND + "node6 -- forward_compute_time=1\n", "line 11: a node reads"),
        ("node 1 -- X -- forward_compute_time=1\n", "line 1: a node reads"),
        (
            node("node1", "X").replace(", backward_compute_time=0", ""),
            "line 1: field 'backward_compute_time' is miss",
        ),
        (node("node1", "X").replace(", parameter_size=0", ""), "field 'parameter_size' is missing"),
        (
            node("node1", "X").replace("parameter_size", "paramter_size"),
            "unknown field 'paramter_size=0'.*did you mean",
        ),
        (node("node1", "X").rstrip() + ", parameter_size=3\n", "field 'parameter_size' occurs twice"),
        (node("node1", "X", -1), "line 1: forward_compute_time is '-1', it must be a finite number, not negative"),
        (node("node1", "X", "nan"), "forward_compute_time is 'nan'"),
        (node("node1", "X", 1, "inf"), "backward_compute_time is 'inf'"),
        (node("node1", "X", 1, "1e999"), "backward_compute_time is '1e999'"),
        (node("node1", "X", 1, 1, "1_000"), "activation_size is '1_000'"),
        (node("node1", "X", 1, 1, "[1; nan]"), "activation_size is 'nan'"),
        (node("node1", "X", 1, 1, "[1; -2]"), "activation_size is '-2'"),
        (node("node1", "X", 1, 1, "[]"), "activation_size is ''"),
        (node("node1", "X", 1, 1, "[1; 2"), "activation_size is"),
        (node("node1", "X", 1, 1, 1, "many"), "parameter_size is 'many'"),
        (node("node1", "X", ""), "forward_compute_time is ''"),
        (node("node1", "X", stage=" -- stage_id=x"), "stage_id is 'x'"),
        (node("node1", "X", stage=" -- stage_id=-1"), "stage_id is '-1'"),
        (node("node1", "X", stage=" -- stage_id="), "stage_id is ''"),
        (DIAMOND + node("node4", "Add"), "line 11: node 'node4' occurs twice, first in line 4"),
        (DIAMOND + "\tnode4\n", "line 11: an edge reads"),
        (DIAMOND + "\tnode4 -- \n", "line 11: an edge reads"),
        (DIAMOND + "\tnode4 -- node5 -- node3\n", "line 11: an edge reads"),
        (DIAMOND + "\tnode4 -- node9\n", "line 11: 'node9' is not a node of this file"),
        (DIAMOND + "\tnode4 -- node1\n", "line 11: an edge leads into the input 'node1'"),
        (DIAMOND + CYCLE, "cycle: node3 -> node4 -> node5 -> node3"),
        (DIAMOND + "\tnode4 -- node4\n", "cycle: node4 -> node4"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(PipebenchError, match=message) as caught:
        read_text(text, batch=1)
    assert caught.value.message.startswith("net.txt: ")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(PipebenchError, match="byte 3 is not UTF-8"):
        read(b"nod\xff", "net.txt", PipeDreamOptions())


@pytest.mark.parametrize("batch", [0, -3])
def test_batch_is_positive(batch: int) -> None:
    with pytest.raises(PipebenchError, match=f"batch is {batch}"):
        PipeDreamOptions(batch=batch)


@given(st.integers(0, len(DIAMOND)))
def test_a_truncated_file_is_a_profile_or_an_error(length: int) -> None:
    try:
        assert isinstance(read_text(DIAMOND[:length]), Profile)
    except PipebenchError as error:
        assert str(error).startswith("net.txt: ")  # noqa: PT017


@given(st.integers(0, len(DIAMOND) - 1), st.text(max_size=3))
@example(0, "\ud7ff")
def test_a_changed_letter_gives_a_profile_or_an_error(position: int, letters: str) -> None:
    text = DIAMOND[:position] + letters + DIAMOND[position + 1 :]
    try:
        assert isinstance(read_text(text, batch=2), Profile)
    except PipebenchError as error:
        assert str(error).startswith("net.txt: ")  # noqa: PT017


@given(st.binary(max_size=60))
def test_any_bytes_are_a_profile_or_an_error(data: bytes) -> None:
    try:
        read(data, "net.txt", PipeDreamOptions(batch=1))
    except PipebenchError:
        return
