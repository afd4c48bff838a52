"""A schedule keeps no more in flight than each stage of its plan declares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.check import check_schedule
from pipebench.domain.verdict import Verdict
from tests.builders import chain_problem, cluster, stages_plan
from tests.check.orders import finite, gpipe, one_f_one_b
from tests.check.test_periodic import OPERATIONS, PAIR, TRANSFERS, periodic


def of_orders(orders: list[str], in_flight: list[int], *, micro_batch: int = 2, samples: int = 12) -> Verdict:
    problem = chain_problem([1] * 3, [2] * 3, cluster(3), mode="sync", mini_batch=samples)
    plan = stages_plan([[0], [1], [2]], micro_batch=micro_batch, in_flight=in_flight)
    return check_schedule(problem, plan, finite(plan, orders))


@given(st.integers(1, 6), st.integers(0, 7))
def test_1f1b_keeps_its_warm_up(warm_up: int, declared: int) -> None:
    """6 micro-batches of 2 samples; stage 1 of three warms up with `warm_up` of them, 0 declares nothing."""
    orders = [one_f_one_b(6, max(warm_up, 3)), one_f_one_b(6, max(warm_up, 2)), one_f_one_b(6, 1)]
    kept = max(warm_up, 2)
    verdict = of_orders(orders, [0, 2 * declared, 0])
    assert (verdict.status == "valid") == (declared == 0 or kept <= declared)
    if verdict.witness is not None:
        assert (verdict.witness.rule, verdict.witness.stage, verdict.witness.micro_batch) == ("shape", 1, declared)
        told = (
            f"declares {2 * declared} samples in flight, its schedule keeps {2 * kept} ({kept} micro-batches of 2)"
        )
        assert told in verdict.witness.message
        assert verdict.peak_bytes


def test_gpipe_keeps_the_mini_batch() -> None:
    assert of_orders([gpipe(6)] * 3, [12, 12, 12]).status == "valid"
    assert of_orders([gpipe(6)] * 3, [12, 10, 12]).status == "invalid"


def test_a_split_backward_ends_with_its_weight_gradient() -> None:
    late = "F0 I0 F1 I1 W0 W1"
    assert of_orders([late] * 3, [4, 4, 4], samples=4).status == "valid"
    witness = of_orders([late] * 3, [4, 2, 4], samples=4).witness
    assert witness is not None
    assert (witness.stage, witness.micro_batch) == (1, 1)


@pytest.mark.parametrize(("period", "kept"), [(18, (1, 1)), (12, (2, 1))])
def test_periodic(period: int, kept: tuple[int, int]) -> None:
    """Stage 0 is live from 0 to 18, stage 1 from 5 to 11 (see test_periodic.PAIR)."""
    schedule = periodic(period, OPERATIONS, TRANSFERS)
    for declared in ((0, 0), kept, (kept[0] + 1, kept[1] + 1), (kept[0] - 1, kept[1])):
        plan = stages_plan([[0], [1]], in_flight=declared)
        verdict = check_schedule(PAIR, plan, schedule)
        enough = all(d == 0 or d >= k for d, k in zip(declared, kept, strict=True))
        assert (verdict.status == "valid") == enough
        assert verdict.peak_bytes


def test_too_little_memory_is_said_first() -> None:
    problem = chain_problem([1], [2], cluster(1, memory=1), mode="sync", mini_batch=2, saved=[5])
    plan = stages_plan([[0]], in_flight=[1])
    verdict = check_schedule(problem, plan, finite(plan, [gpipe(2)]))
    assert verdict.witness is not None
    assert verdict.witness.rule == "memory"
