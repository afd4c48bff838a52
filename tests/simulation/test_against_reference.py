"""The kernel and the plain-Python simulator agree on every instant."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.domain.trace import Trace
from pipebench.simulation.simulate import simulate
from tests.nightly import examples
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.reference import Sent, Task, reference


def task_instants(trace: Trace) -> dict[Task, tuple[int, int]]:
    keys = zip(trace.kinds, trace.stage, trace.micro_batch, strict=True)
    return dict(zip(keys, zip(trace.start_ns, trace.end_ns, strict=True), strict=True))


def transfer_instants(trace: Trace) -> dict[Sent, tuple[int, int]]:
    rows = zip(
        trace.source,
        trace.target,
        trace.tensor,
        trace.transfer_kinds,
        trace.message,
        trace.transfer_start_ns,
        trace.transfer_end_ns,
        strict=True,
    )
    return {
        (target if kind == "B" else source, source if kind == "B" else target, tensor, kind == "B", message): (
            start,
            end,
        )
        for source, target, tensor, kind, message, start, end in rows
    }


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_instant_equals_the_reference(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    trace = simulate(problem, plan, schedule)
    tasks, sent = reference(problem, plan, schedule)
    assert task_instants(trace) == tasks
    between_devices = {
        key: instants
        for key, instants in sent.items()
        if plan.stages[key[0]].devices != plan.stages[key[1]].devices
    }
    assert transfer_instants(trace) == between_devices
    assert trace.total_ns == max([end for _, end in tasks.values()], default=0)
