"""Long lists of cases, and many examples: some run with every change, the rest at night."""

from collections.abc import Collection, Iterable

import pytest
from hypothesis import settings


def mostly_at_night(cases: Iterable[object], always: Collection[object]) -> list[object]:
    """The cases as pytest takes them, in their order; those that are not `always` run in `nox -s nightly` only."""
    return [each if each in always else pytest.param(each, marks=pytest.mark.nightly) for each in cases]


def examples(at_night: int) -> int:
    """How many examples hypothesis draws: so many new ones at night.

    With a change a sixth of them, five at least, and always those.
    """
    return max(at_night // 6, min(at_night, 5)) if settings.default.derandomize else at_night
