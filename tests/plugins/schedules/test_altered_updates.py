"""Where every stage takes a time once a mini-batch, every lane ends with its R, and schedules stay valid."""

import pytest

from pipebench.check import check_schedule
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.simulate import simulate
from pipebench_schedules import interleaved, single_stage, zero_bubble
from tests.altered import EACH_WORLD, altered
from tests.plugins.running import services
from tests.plugins.schedules.test_virtual_stages import Schedule, made, shared


@pytest.mark.parametrize("world", EACH_WORLD)
@pytest.mark.parametrize(
    ("work", "rounds", "vee"),
    [(single_stage.schedule_1f1b, 1, False), (interleaved.schedule, 2, False), (zero_bubble.schedule_v, 2, True)],
)
def test_stages_on_one_device_each_run_their_update(work: Schedule, rounds: int, vee: bool, world: str) -> None:
    with altered(world, state_bytes=11, live_bytes=3, update_ns=500):
        problem, plan = shared(2, rounds, 4, vee)
        schedule = made(work, problem, plan)
        verdict = check_schedule(problem, plan, schedule)
        assert verdict.status == "valid", verdict.witness
        updates = sum(lane.kinds.count("R") for lane in schedule.lanes)
        assert updates == (len(plan.stages) if world in ("update", "all") else 0)
        took = simulate(problem, plan, schedule).total_ns
    assert took >= 30 * 4 * rounds + (500 * rounds if updates else 0)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_found_by_name_on_one_device(name: str) -> None:
    with altered("update", update_ns=7):
        problem, plan = shared(1, 1, 3)
        schedule = services().schedule(name, problem, plan)
        assert isinstance(schedule, FiniteSchedule)
        assert schedule.lanes[0].kinds.endswith("R")
        assert check_schedule(problem, plan, schedule).status == "valid"
