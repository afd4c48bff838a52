"""Limits of the command's own work."""

import signal
import threading
import time
from pathlib import Path

import pytest

from pipebench.bench.machine import time_limits
from pipebench.bench.machine.time_limits import LimitReached, time_limit
from pipebench.bench.ordering import choice
from pipebench.bench.searches.isolation.client import isolation
from tests.bench.searches.isolation.scripts import HONEST, run

pytestmark = pytest.mark.timeout(60, method="thread")  # the other method needs the same timer


def test_work_that_takes_too_long_ends_with_a_reason() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with (
        pytest.raises(LimitReached, match=r"dreaming took more than 0\.05 s"),
        time_limit(0.05, "dreaming", "wake"),
    ):
        time.sleep(20)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_outer_limit_holds_inside_another() -> None:
    with pytest.raises(LimitReached, match="outer"), time_limit(0.05, "outer", ""), time_limit(60, "inner", ""):
        time.sleep(20)


def test_there_is_none_in_other_threads() -> None:
    ended = []

    def work() -> None:
        with time_limit(0.01, "work", ""):
            time.sleep(0.05)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]


OWN_ORDER = HONEST.replace(
    "return Plan(stages=tuple(stage))",
    "plan = Plan(stages=tuple(stage))\n"
    '    return PlanResult(plan=plan, schedule=context.schedule("1f1b", problem, plan))',
).replace(
    "from pipebench.domain.plan", "from pipebench.domain.result import PlanResult\nfrom pipebench.domain.plan"
)


@pytest.mark.parametrize("source", [HONEST, OWN_ORDER], ids=["ordered by the suite", "in its own order"])
def test_a_plan_that_cannot_be_scored_in_time_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    isolation()
    monkeypatch.setattr(time_limits, "SCORE_S", 0.2)
    monkeypatch.setattr(choice, "judge", lambda *_: time.sleep(20))
    row = run(tmp_path, source).row
    assert (row.status, row.reason.partition(" (")[0]) == ("timeout", "scoring took more than 0.2 s")
