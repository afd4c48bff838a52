"""When a call is late: by its CPU time on a busy machine, by the clock in any case after a while."""

import pytest

from pipebench.testing.calls import Answer


@pytest.mark.parametrize(
    ("wall_s", "cpu_s", "compile_s", "late_s"),
    [
        (1.1, 1.1, 0.0, 0.0),
        (2.5, 0.3, 0.0, 0.0),
        (2.5, 2.0, 0.0, 1.3),
        (4.5, 0.0, 0.0, 3.3),
        (9.0, 9.0, 8.0, 0.0),
    ],
)
def test_lateness(wall_s: float, cpu_s: float, compile_s: float, late_s: float) -> None:
    answer = Answer(name="", ending="returned", wall_s=wall_s, cpu_s=cpu_s, compile_s=compile_s)
    assert answer.late_s(0.2) == pytest.approx(late_s)
