"""The notices of rows as numbered notes: each text once, with whom it concerns."""

import re
from collections.abc import Collection, Iterable

from pipebench.domain.row import Row
from pipebench.report.units import with_readable_bytes

CACHED = "from the store, not run again"
PARALLEL = "ran beside other trials: its search time compares with nothing"


class Notes:
    """The notices of some rows. A row that comes from a store (its key is among the cached) or ran beside others
    has one that says so.

    Notices that differ in their figures alone are one, in which each figure that differs is `…`: such figures
    stand in columns.
    """

    def __init__(self, rows: Iterable[Row], cached: Collection[str] = ()) -> None:
        self._cached = cached
        said = [(row, text) for row in rows for text in self._texts(row)]
        alike: dict[str, set[str]] = {}
        for _, text in said:
            alike.setdefault(without_figures(text), set()).add(text)
        self._shown = {text: shared_words(texts) for texts in alike.values() for text in texts}
        self._who = who_by_text((row.planner, self._shown[text]) for row, text in said)
        self._number = {text: number for number, text in enumerate(self._who, start=1)}

    def numbers(self, row: Row) -> set[int]:
        """The numbers of a row's notices."""
        return {
            self._number[shown] for text in self._texts(row) if (shown := self._shown.get(text)) in self._number
        }

    def lines(self) -> list[str]:
        """One line a notice, by number."""
        return [f"{self._number[text]}  {who}: {text}" for text, who in self._who.items()]

    def _texts(self, row: Row) -> list[str]:
        own = [
            (bool(row.key) and row.key in self._cached, CACHED),
            (row.parallel, PARALLEL),
        ]
        return [*(text for holds, text in own if holds), *map(with_readable_bytes, row.notices)]


FIGURE = re.compile(r"(?<![\w.*=-])\d[\d.,]*(?=[\s:;,)%]|$)")
"""A number that stands alone; names such as resnet50 and 1f1b hold none."""


def without_figures(text: str) -> str:
    """The text with `…` for each figure."""
    return FIGURE.sub("…", text)


def shared_words(texts: Collection[str]) -> str:
    """Texts that differ in their figures alone as one, with `…` for each figure that is not the same in all."""
    figures = zip(*(FIGURE.findall(text) for text in texts), strict=True)
    shown = iter([each[0] if len(set(each)) == 1 else "…" for each in figures])
    return FIGURE.sub(lambda _: next(shown), next(iter(texts)))


def who_by_text(said: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each distinct text the names of which it is said, by commas; texts in order of first use."""
    names: dict[str, dict[str, None]] = {}
    for name, text in said:
        names.setdefault(text, {})[name] = None
    return {text: ", ".join(of) for text, of in names.items()}
