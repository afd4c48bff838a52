"""The smallest target that has an answer: every order of answers, few questions, and the end of the time."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.bottleneck import PRECISION, Bracket, narrow_bottleneck

SECONDS = st.floats(1e-6, 1e6)


class Answers:
    """What can be reached: bottlenecks, ascending. Below a target the answer is the largest that it allows."""

    def __init__(self, reachable: list[float]) -> None:
        self.reachable = sorted(reachable)
        self.asked: list[float] = []

    def below(self, target: float) -> float | None:
        self.asked.append(target)
        at = bisect_right(self.reachable, target)
        return self.reachable[at - 1] if at else None


def narrowed(answers: Answers, low: float, questions: int = 10**6) -> Bracket[float]:
    return narrow_bottleneck(
        answers.reachable[-1], low, answers.below, lambda found: found, lambda: len(answers.asked) >= questions
    )


@given(st.lists(SECONDS, min_size=1, max_size=40), st.floats(0.0, 1.0))
def test_smallest_is_found(reachable: list[float], share: float) -> None:
    answers = Answers(reachable)
    least = answers.reachable[0]
    found = narrowed(answers, least * share)
    assert least <= found.best <= least * (1 + 2 * PRECISION)
    assert found.refused <= found.best
    assert not found.stopped


@given(st.floats(1.0, 1e6), st.floats(1e-6, 1e-2))
def test_many_answers_close_together_take_few_questions(least: float, apart: float) -> None:
    """A step down from each to the next would ask 2,000 times."""
    answers = Answers([least * (1 + apart * step / 2000) for step in range(2000)])
    narrowed(answers, 0.0)
    assert len(answers.asked) < 300


def test_one_refusal_ends_it() -> None:
    """Two bisections down to two per cent below 1, and the last question."""
    answers = Answers([1.0])
    assert narrowed(answers, 0.95).refused == pytest.approx(1 - PRECISION, rel=1e-12)
    assert answers.asked == pytest.approx([0.975, 0.9875, 1 - PRECISION], rel=1e-12)


def test_out_of_time() -> None:
    answers = Answers([1.0, 2.0, 4.0])
    stopped = narrowed(answers, 0.1, questions=1)
    assert (stopped.best, stopped.stopped) == (2.0, True)
    assert stopped.refused == 0.1
