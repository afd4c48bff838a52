"""Long lists of cases: a few run with every change, the rest at night."""

from collections.abc import Collection, Iterable

import pytest


def mostly_at_night(cases: Iterable[object], always: Collection[object]) -> list[object]:
    """The cases as pytest takes them, in their order; those that are not `always` run in `nox -s nightly` only."""
    return [each if each in always else pytest.param(each, marks=pytest.mark.nightly) for each in cases]
