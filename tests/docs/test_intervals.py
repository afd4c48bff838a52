"""The pages say of intervals, and of the runs behind them, what the code does."""

from pathlib import Path

import pytest

from pipebench.bench.prediction_interval import (
    EXPERTS,
    JUDGED_RUNS,
    NODES,
    ONE_NODE_SPLIT,
    ONE_NODE_WHOLE,
    POOLED,
    Residuals,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("group", [ONE_NODE_WHOLE, ONE_NODE_SPLIT, NODES, JUDGED_RUNS, EXPERTS, POOLED])
def test_the_table_of_intervals(group: Residuals) -> None:
    row = f"| {group.count} | {100 * (group.low - 1):+.1f} % | {100 * (group.high - 1):+.1f} % |"
    assert row in (ROOT / "docs" / "explanation" / "accuracy.md").read_text()


def test_the_readme_counts_the_same_runs() -> None:
    assert f"was seen on {POOLED.count} published" in (ROOT / "README.md").read_text()
