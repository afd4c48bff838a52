"""The scheduler `1f1b*` as a component: found by name, default in async."""

import pytest

from pipebench.check import check_schedule
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench_schedules.one_f_one_b_star import schedule
from tests.builders import chain_problem, cluster, stages_plan

PLAN = stages_plan([[0], [1], [2]])


def test_a_chain_with_room_for_few_micro_batches() -> None:
    # u = 10 and c = 4 on three devices, room for 3 micro-batches on the first: u + c.
    problem = chain_problem([4] * 3, [6] * 3, cluster(3, 308), activations=[0, 2, 2, 0], saved=[100, 0, 0])
    context = Context(options=None)
    found = schedule(problem, PLAN, context)
    assert isinstance(found, PeriodicSchedule)
    assert found.period_ns == 14
    assert check_schedule(problem, PLAN, found).peak_bytes[0] == 304
    assert context.counters == {"operations": 10}


def test_sync_is_refused() -> None:
    problem = chain_problem([4] * 3, [6] * 3, cluster(3), mode="sync")
    with pytest.raises(UnsupportedProblem, match="async regime only"):
        schedule(problem, PLAN, Context(options=None))
