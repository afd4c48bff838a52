"""Memory of finite schedules: closed forms of GPipe and 1F1B, and one byte too much."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.check.orders import finite, gpipe, lane, one_f_one_b

WEIGHTS, SAVED, CROSSING = (5, 7, 11), (100, 200, 300), (0, 2, 3, 0)


def chain(memory: int = 10**6, mini_batch: int = 6, pins: Pins | None = None, mode: str = "sync") -> Problem:
    return chain_problem(
        [1] * 3, [2] * 3, cluster(3, memory), activations=CROSSING, weights=WEIGHTS, saved=SAVED,
        mode="sync" if mode == "sync" else "async", mini_batch=mini_batch, pins=pins,
    )  # fmt: skip


PLAN = stages_plan([[0], [1], [2]])


def buffers(stage: int) -> int:
    """Forward and gradient of what crosses on either side."""
    return 2 * CROSSING[stage] * (stage > 0) + 2 * CROSSING[stage + 1] * (stage < 2)


@pytest.mark.parametrize("count", [1, 2, 6])
def test_gpipe_holds_every_micro_batch(count: int) -> None:
    verdict = check_schedule(chain(mini_batch=count), PLAN, finite(PLAN, [gpipe(count)] * 3))
    assert verdict.peak_bytes == {i: 2 * WEIGHTS[i] + count * SAVED[i] + buffers(i) for i in range(3)}


@pytest.mark.parametrize("count", [1, 2, 6])
def test_1f1b_holds_as_many_micro_batches_as_stages_remain(count: int) -> None:
    orders = [one_f_one_b(count, 3 - i) for i in range(3)]
    for mode, versions in (("sync", 2), ("async", 3)):
        verdict = check_schedule(chain(mini_batch=count, mode=mode), PLAN, finite(PLAN, orders))
        expected = {i: versions * WEIGHTS[i] + min(count, 3 - i) * SAVED[i] + buffers(i) for i in range(3)}
        assert verdict.peak_bytes == expected


def test_one_byte_too_much_is_found_where_it_happens() -> None:
    schedule = finite(PLAN, [one_f_one_b(6, 3 - i) for i in range(3)])
    peaks = check_schedule(chain(), PLAN, schedule).peak_bytes
    most = max(peaks.values())
    exact = check_schedule(chain(memory=most), PLAN, schedule)
    assert (exact.status, exact.fit) == ("valid", "fits")
    over = check_schedule(chain(memory=most - 1), PLAN, schedule)
    assert (over.status, over.fit, over.peak_bytes) == ("invalid", "does not fit", peaks)
    witness = over.witness
    assert witness is not None
    worst = max(peaks, key=lambda d: peaks[d])
    assert (witness.rule, witness.device, witness.stage) == ("memory", worst, worst)
    # The lane reaches its peak when its last warm-up forward starts.
    assert (witness.bytes_over, witness.micro_batch) == (1, 2 - worst)
    assert f"(task {2 - worst} of its lane)" in witness.message


def test_the_reserve_makes_a_plan_tight() -> None:
    schedule = finite(PLAN, [gpipe(1)] * 3)
    peak = max(check_schedule(chain(mini_batch=1), PLAN, schedule).peak_bytes.values())
    for memory, fit in ((2 * peak, "fits"), (2 * peak - 1, "tight"), (peak, "tight"), (peak - 1, "does not fit")):
        problem = chain(memory=memory, mini_batch=1, pins=Pins(reserve=0.5))
        assert check_schedule(problem, PLAN, schedule).fit == fit, memory


def test_a_split_backward_frees_at_its_weight_gradient() -> None:
    problem = chain_problem([1], [2], cluster(1), saved=[10], mode="sync", mini_batch=3)
    plan = stages_plan([[0]])
    for order, live in (
        ("F0 I0 W0 F1 I1 W1 F2 B2", 1),
        ("F0 I0 F1 I1 F2 I2 W0 W1 W2", 3),
        ("F0 I0 F1 W0 I1 F2 W1 B2", 2),
    ):
        verdict = check_schedule(problem, plan, finite(plan, [order]))
        assert verdict.peak_bytes == {0: 10 * live}, order


def test_stages_on_one_device_add_up_and_the_running_one_needs_its_workspace() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(1), saved=[10, 1], weights=[3, 4], mode="sync", mini_batch=2)
    costs = problem.profile.costs[0]
    scratch = tuple(
        msgspec.structs.replace(c, workspace_bytes=w) for c, w in zip(costs.operators, (100, 1000), strict=True)
    )
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=scratch),))
    problem = msgspec.structs.replace(problem, profile=profile)
    stages = stages_plan([[0], [1]]).stages
    plan = Plan(stages=(stages[0], msgspec.structs.replace(stages[1], devices=(0,))), placement="listed")

    def peak(tasks: str) -> int:
        return check_schedule(problem, plan, FiniteSchedule(lanes=(lane((0,), tasks),))).peak_bytes[0]

    state = 2 * 3 + 2 * 4
    one_by_one = "F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1"
    assert peak(one_by_one) == state + (10 + 1) + 1000
    assert peak("F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1") == state + (2 * 10 + 1) + 1000
    assert peak("F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1") == state + (2 * 10 + 2 * 1) + 1000


def test_what_a_stage_holds_while_live_goes_when_nothing_is_live() -> None:
    """The tensor between two stages of one device waits at the second one, 2 x 3 bytes, while that is live."""
    problem = chain_problem(
        [1, 1], [1, 1], cluster(1), activations=[0, 3, 0], saved=[100, 1], mode="sync", mini_batch=2
    )
    stages = stages_plan([[0], [1]]).stages
    plan = Plan(stages=(stages[0], msgspec.structs.replace(stages[1], devices=(0,))), placement="listed")
    for order, peak in (
        ("F0.0 F1.0 B1.0 F0.1 B0.0 F1.1 B1.1 B0.1", 200),
        ("F0.0 F1.0 F0.1 B1.0 B0.0 F1.1 B1.1 B0.1", 200 + 1 + 6),
    ):
        verdict = check_schedule(problem, plan, FiniteSchedule(lanes=(lane((0,), order),)))
        assert verdict.peak_bytes == {0: peak}


def test_an_all_reduce_needs_no_workspace() -> None:
    """Two stages on one pair of devices: the first one's R runs while much of the second is live."""
    problem = dag_problem([1, 1], [1, 1], [], cluster(2), saved=[1, 100], weights=[8, 0], mini_batch=4)
    costs = problem.profile.costs[0]
    scratch = (msgspec.structs.replace(costs.operators[0], workspace_bytes=50), costs.operators[1])
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=scratch),))
    problem = msgspec.structs.replace(problem, profile=profile)
    pair = stages_plan([[0]], micro_batch=2, replicas=[2]).stages[0]
    plan = Plan(stages=(pair, msgspec.structs.replace(pair, operators=("op1",))), placement="listed")
    order = "F0.0 B0.0 F0.1 B0.1 F1.0 F1.1 R0.0 B1.0 B1.1"
    verdict = check_schedule(problem, plan, FiniteSchedule(lanes=(lane((0, 1), order),)))
    assert verdict.peak_bytes == dict.fromkeys((0, 1), 2 * 8 + 2 * 100)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_the_sweep_equals_counting_at_every_task(data: st.DataObject) -> None:
    """Any order of one lane: live(t) = forwards up to t minus backwards before t, by counting."""
    count = data.draw(st.integers(1, 5))
    recompute = data.draw(st.sampled_from(["none", "stage"]))
    problem = chain_problem([1] * 2, [1] * 2, cluster(1), activations=[0, 3, 0], saved=[7, 5], mode="sync",
                            mini_batch=count, weights=[2, 1])  # fmt: skip
    stages = [
        msgspec.structs.replace(s, devices=(0,), recompute=recompute) for s in stages_plan([[0], [1]]).stages
    ]
    plan = Plan(stages=tuple(stages), placement="listed")
    remaining = {m: ["F0", "F1", "B1", "B0"] for m in range(count)}
    order = []
    while remaining:
        m = data.draw(st.sampled_from(sorted(remaining)))
        order.append(f"{remaining[m].pop(0)}.{m}")
        if not remaining[m]:
            del remaining[m]
    verdict = check_schedule(problem, plan, FiniteSchedule(lanes=(lane((0,), " ".join(order)),)))
    model = CostModel(problem)
    memory = [model.stage_memory(plan, s, model.messages(plan)) for s in range(2)]
    naive = 0
    for t in range(len(order)):
        total = 0
        for s in range(2):
            live = sum(o.startswith(f"F{s}") for o in order[: t + 1]) - sum(
                o.startswith(f"B{s}") for o in order[:t]
            )
            total += memory[s].at(live)
        naive = max(naive, total)
    assert verdict.peak_bytes == {0: naive}
