"""Equal parts of many rows become one object, and no row becomes another."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.store.stored_rows import SharedParts, StoredRow
from tests.bench.store.made import stored

FIGURES = st.dictionaries(st.integers(0, 3), st.integers(0, 2), max_size=3)
WORDS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(st.lists(st.tuples(FIGURES, WORDS), max_size=8))
def test_rows_stay_what_they_are(drawn: list[tuple[dict[int, int], dict[str, str]]]) -> None:
    """Also where mappings have the same values under other names."""
    parts = SharedParts()
    for number, (peaks, words) in enumerate(drawn):
        row = stored(number, peak_memory_bytes=peaks, environment=words)
        before = msgspec.json.decode(msgspec.json.encode(row), type=StoredRow)
        parts.share(row)
        assert row == before


def test_equal_parts_are_one_object() -> None:
    parts = SharedParts()
    one, other = (stored(number, peak_memory_bytes={0: 2**40, 1: 2**41}) for number in (1, 2))
    for each in (one, other):
        parts.share(each)
    assert one.row.peak_memory_bytes is other.row.peak_memory_bytes
