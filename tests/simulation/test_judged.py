"""The suite's check, which shares no code with the simulator, accepts every simulated trace."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.check import check_schedule, check_trace
from pipebench.simulation.simulate import simulate
from tests.simulation.random_plans import executable_schedules, planned_problems


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_simulated_traces_are_valid(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    trace = simulate(problem, plan, schedule)
    verdict = check_trace(problem, plan, schedule, trace)
    assert verdict.status == "valid", verdict.witness
    peaks = {timeline.device: timeline.peak_bytes for timeline in trace.memory}
    assert verdict.peak_bytes == peaks
    assert check_schedule(problem, plan, schedule) == verdict
