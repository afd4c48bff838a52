"""Grammar and rules of Megatron's layout: the cases that its own validator was run on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.formats.frameworks.megatron import check_layout, parse_layout, write_layout


@pytest.mark.parametrize(
    ("text", "pipeline", "layers", "mtp", "virtual"),
    [
        ("Et*3|(tt|)*29,m|L", 16, 61, 1, 2),
        ("Et*2|(t*2|)*34,t*3|(t*2|)*3,tL", 8, 80, 0, 5),
        ("E||t|L", 4, 1, 0, 1),
        ("EtL", 1, 1, 0, 1),
        ("E|t*0|tL", 3, 1, 0, 1),
    ],
)
def test_accepted(text: str, pipeline: int, layers: int, mtp: int, virtual: int) -> None:
    assert check_layout(parse_layout(text), pipeline, layers, mtp) == virtual


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("Et |tL", "holds a space"),
        ("Et|\ttL", "holds a space"),
        ("E((t|)*2)*3,L", "groups do not nest"),
        ("E(t|)L", "groups do not nest"),
        ("E(t|*2L", "groups do not nest"),
        ("et|tL", "unknown symbol 'e'"),
        ("ET|L", "unknown symbol 'T'"),
        ("Et*|L", "repeats nothing"),
        ("Et3|L", "repeats nothing"),
        ("E(t*999|)*999999,L", "stands for about"),
    ],
)
def test_not_a_layout(text: str, reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        parse_layout(text)


@pytest.mark.parametrize(
    ("text", "pipeline", "layers", "mtp", "reason"),
    [
        # The example in Megatron's own help fails Megatron's validator: MTP layers must share one stage.
        ("E|(t|)*3,m|m||L", 8, 3, 2, "all must be in one"),
        ("E|(t|)*3,m|m||L", 4, 3, 2, "all must be in one"),
        ("E|(t|)*3,m|m||L", 2, 3, 2, "all must be in one"),
        ("Et|t|tL", 2, 3, 0, "does not divide"),
        ("t|EtL", 2, 2, 0, "first symbol must be E"),
        ("Et|Lt", 2, 2, 0, "last symbol must be L"),
        ("EEt|L", 2, 1, 0, "2 E"),
        ("Et|t", 2, 2, 0, "0 L"),
        ("Et|tL", 2, 3, 0, "2 decoder layers, the model 3"),
        ("Et|m|t|L", 4, 2, 1, "after an MTP layer"),
        ("Et|m|L|", 2, 1, 1, "not the last of rank 1"),
        ("Et|tm|L", 3, 2, 0, "1 MTP layers"),
    ],
)
def test_broken_rules(text: str, pipeline: int, layers: int, mtp: int, reason: str) -> None:
    with pytest.raises(PipebenchError, match=reason):
        check_layout(parse_layout(text), pipeline, layers, mtp)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=40))
def test_written_layouts_read_back(counts: list[int]) -> None:
    stages = ["t" * count for count in counts]
    stages[0], stages[-1] = "E" + stages[0], stages[-1] + "L"
    text = write_layout(stages)
    assert parse_layout(text) == tuple(stages)
    assert check_layout(parse_layout(text), len(stages), sum(counts)) == 1


def test_a_long_row_is_short() -> None:
    assert write_layout(["E" + "t" * 10, *["t" * 10] * 6, "t" * 10 + "L"]) == "Et*10|(t*10|)*6,t*10,L"
