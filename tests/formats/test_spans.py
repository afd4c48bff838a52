"""Spans against a count of single instants."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipebench.formats.spans import Span, SpanSums, merge_spans, subtract_spans

SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 9)).map(lambda each: (each[0], sum(each))), max_size=8
)


def instants(spans: list[Span] | tuple[Span, ...]) -> set[int]:
    return {instant for start, end in spans for instant in range(start, end)}


@given(SPANS, SPANS, st.integers(-2, 52), st.integers(0, 20))
def test_merged_subtracted_and_summed(spans: list[Span], others: list[Span], start: int, length: int) -> None:
    merged, taken = merge_spans(spans), merge_spans(others)
    assert instants(merged) == instants(spans)
    assert all(before[1] < after[0] for before, after in pairwise(merged))
    left = subtract_spans(merged, taken)
    assert instants(left) == instants(spans) - instants(others)
    assert sum(end - start for start, end in left) == len(instants(left))
    window = set(range(start, start + length))
    assert SpanSums(left).within(start, start + length) == len(instants(left) & window)
    assert SpanSums(merged).within(start, start + length) == len(instants(merged) & window)
