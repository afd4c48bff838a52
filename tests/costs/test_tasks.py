"""The columns that the judge and the simulator both read, against the lanes of the schedule, task by task."""

from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.tasks import kind_codes, kind_letters, task_name, tasks_of
from pipebench.domain.schedule import TASK_KINDS, FiniteSchedule, Lane

MOST = 2**63 - 1


@st.composite
def schedules(draw: st.DrawFn) -> FiniteSchedule:
    """Lanes of any tasks, none or many, with some of the pairs that may stand there."""
    lanes: list[Lane] = []
    for number in range(draw(st.integers(0, 4))):
        size = draw(st.integers(0, 8))
        names = st.lists(st.integers(-3, 5) | st.just(10**40) | st.just(-(10**40)), min_size=size, max_size=size)
        kinds = draw(st.text(TASK_KINDS, min_size=size, max_size=size))
        stage, micro_batch = tuple(draw(names)), tuple(draw(names))
        pairs = tuple(
            i
            for i in range(size - 1)
            if kinds[i : i + 2] in ("FB", "FI")
            and (stage[i], micro_batch[i]) != (stage[i + 1], micro_batch[i + 1])
            and draw(st.booleans())
        )
        devices = tuple(range(10 * number, 10 * number + draw(st.integers(1, 3))))
        lanes.append(Lane(devices=devices, stage=stage, micro_batch=micro_batch, kinds=kinds, together=pairs))
    return FiniteSchedule(lanes=tuple(lanes))


@given(schedules())
def test_each_row_is_the_task_that_stands_there(schedule: FiniteSchedule) -> None:
    tasks = tasks_of(schedule)
    assert tasks.devices == tuple(lane.devices for lane in schedule.lanes)
    row = 0
    together: list[int] = []
    for number, lane in enumerate(schedule.lanes):
        assert tasks.first[number] == row
        for position in range(len(lane.kinds)):
            assert tasks.lane[row] == number
            assert tasks.stage[row] == max(-MOST, min(lane.stage[position], MOST))
            assert tasks.micro_batch[row] == max(-MOST, min(lane.micro_batch[position], MOST))
            assert TASK_KINDS[tasks.kind[row]] == lane.kinds[position]
            together += [row] if position in lane.together else []
            row += 1
    assert len(tasks.stage) == len(tasks.micro_batch) == len(tasks.kind) == len(tasks.lane) == row
    assert tasks.first.tolist()[len(schedule.lanes) :] == [row]
    assert tasks.together.tolist() == together


@given(st.text(TASK_KINDS))
def test_codes_and_letters_of_kinds_are_each_others_inverse(letters: str) -> None:
    codes = kind_codes(letters)
    assert codes.tolist() == [TASK_KINDS.index(letter) for letter in letters]
    assert kind_letters(codes) == letters


def test_a_task_goes_by_its_kind_stage_and_micro_batch() -> None:
    assert task_name("I", 3, 7) == "I of stage 3, micro-batch 7"
    assert task_name("R", 3, 0) == "R of stage 3"
    assert task_name("R", 3, 7) == "R of stage 3, micro-batch 7"
    lane = Lane(devices=(4,), stage=(2, 2), micro_batch=(1, 0), kinds="WR")
    tasks = tasks_of(FiniteSchedule(lanes=(lane,)))
    assert [tasks.name(row) for row in range(2)] == ["W of stage 2, micro-batch 1", "R of stage 2"]
