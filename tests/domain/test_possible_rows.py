"""Every figure of a row that is read from a file is held to its limits, and named where it is beyond."""

import math
from typing import Any

import pytest

from pipebench.domain.errors import InvalidValue
from pipebench.domain.limits import LONGEST_S, MOST_COUNT, MOST_FIGURE
from pipebench.domain.row import Row, require_possible
from tests.bench.store.made import stored

TIMES = [name for name in Row.__struct_fields__ if name.endswith("_s")]
AMOUNTS = ["memory_bytes", "throughput", "measured_throughput", "search_peak_bytes"]
RATIOS = ["gap", "measured_error", "bubble", "claimed_native"]
COUNTS = ["devices", "mini_batch", "coarsen", "repetition", "stages", "depth", "width", "devices_used"]
LISTED = ["planned_micro_batch", "micro_batch", "replicas", "in_flight"]


def bad() -> list[tuple[str, Any]]:
    """A field with a figure beyond its limit: below and above, and no number."""
    found: list[tuple[str, Any]] = []
    for names, low, high in (
        (TIMES, -1e-9, 2 * LONGEST_S),
        (AMOUNTS, -1, 2 * MOST_FIGURE),
        (RATIOS, -2 * MOST_FIGURE, 2 * MOST_FIGURE),
        (COUNTS, -1, MOST_COUNT + 1),
    ):
        found += [(name, value) for name in names for value in (low, high, math.nan)]
    found += [(name, (1, value)) for name in LISTED for value in (-1, MOST_COUNT + 1)]
    found += [("peak_memory_bytes", {0: 1, 1: value}) for value in (-1, 2 * MOST_FIGURE)]
    found += [("search_ratio", {"a": 1.0, "b": value}) for value in (-1.0, 2 * MOST_FIGURE)]
    found += [("counters", {"a": 1, "b": value}) for value in (-2 * MOST_FIGURE, 2 * MOST_FIGURE)]
    found += [("search_samples", ((1.0, value),)) for value in (-1.0, 2 * LONGEST_S)]
    return found


@pytest.mark.parametrize(("name", "value"), bad(), ids=str)
def test_a_figure_beyond_its_limit_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=name):
        require_possible(stored(0, **{name: value}).row)


def test_a_usual_row_is_possible() -> None:
    require_possible(stored(0, simulated_s=LONGEST_S, counters={"a": MOST_FIGURE}, micro_batch=(MOST_COUNT,)).row)
