"""Notices of many rows: each distinct one once, numbered, with the planners that it concerns."""

from collections.abc import Collection, Iterable

from pipebench.domain.row import Row
from pipebench.report.units import with_readable_bytes

CACHED = "from the store, not run again"
PARALLEL = "ran beside other trials: its search time compares with nothing"
ADAPTED = "adapted from the other regime: only the partition is the planner's"


class Notes:
    """The notices of some rows. A row that is adapted to another regime, comes from a store (its key is among
    the cached) or ran beside others has one that says so.
    """

    def __init__(self, rows: Iterable[Row], cached: Collection[str] = ()) -> None:
        self._cached = cached
        self._who = who_by_text((row, text) for row in rows for text in self._texts(row))
        self._number = {text: number for number, text in enumerate(self._who, start=1)}

    def marks(self, row: Row) -> str:
        """The numbers of a row's notices: 1,3."""
        return ",".join(str(number) for number in sorted({self._number[text] for text in self._texts(row)}))

    def lines(self) -> list[str]:
        """One line a notice, by number."""
        return [f"{self._number[text]}  {who}: {text}" for text, who in self._who.items()]

    def _texts(self, row: Row) -> list[str]:
        own = [
            (row.adapted, ADAPTED),
            (bool(row.key) and row.key in self._cached, CACHED),
            (row.parallel, PARALLEL),
        ]
        return [*(text for holds, text in own if holds), *map(with_readable_bytes, row.notices)]


def who_by_text(said: Iterable[tuple[Row, str]]) -> dict[str, str]:
    """For each distinct text the planners of whose rows it is said, by commas; texts in order of first use."""
    planners: dict[str, dict[str, None]] = {}
    for row, text in said:
        planners.setdefault(text, {})[row.planner] = None
    return {text: ", ".join(names) for text, names in planners.items()}
