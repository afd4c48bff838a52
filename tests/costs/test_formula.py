"""The formulas say of arrays, element by element, what they say of integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.formula import ENDLESS, Formula, Holdings, Memory
from pipebench.costs.quantise import whole_bytes
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Optimizer, Regime, RegimeMode
from pipebench.domain.profile import Precision
from pipebench.domain.recomputation import Recompute

sizes = st.lists(st.integers(0, 10**12), min_size=1, max_size=8)
levels = st.builds(
    lambda latency, rate: LinkLevel(name="l", group=64, latency_s=latency, bandwidth_bytes_s=rate),
    st.floats(0, 1e-4),
    st.floats(1e6, 1e12),
)


@given(sizes, levels, st.integers(1, 64), st.integers(1, 64))
def test_messages_and_all_reduces(amounts: list[int], level: LinkLevel, senders: int, receivers: int) -> None:
    array = np.array(amounts, dtype=np.int64)
    sent = Formula.message_ns(level, array, senders, receivers)
    assert sent.tolist() == [Formula.message_ns(level, b, senders, receivers) for b in amounts]
    reduced = Formula.all_reduce_ns(level, array, senders)
    assert reduced.tolist() == [Formula.all_reduce_ns(level, b, senders) for b in amounts]


@given(st.lists(st.floats(0, 1e13), min_size=1, max_size=8))
def test_whole_bytes(amounts: list[float]) -> None:
    assert whole_bytes(np.array(amounts)).tolist() == [whole_bytes(a) for a in amounts]
    near = [round(a) * (1 + 1e-13) for a in amounts]
    assert whole_bytes(np.array(near)).tolist() == [whole_bytes(a) for a in near]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "none"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("gradient", [None, "fp32", "bf16"])
@pytest.mark.parametrize("sharding", ["none", "zero1", "zero3"])
def test_weight_states(
    mode: RegimeMode, optimizer: Optimizer, precision: Precision, gradient: Precision | None, sharding: str
) -> None:
    regime = Regime(
        mode=mode,
        optimizer=optimizer,
        precision=precision,
        gradient_precision=gradient,
        optimizer_sharding=sharding,  # type: ignore[arg-type]
    )
    amounts = [0, 1, 2, 3, 1001, 10**10 + 7]
    for replicas in (1, 3, 8):
        formula = Formula(regime, 8)
        states = formula.state_bytes(np.array(amounts, dtype=np.int64), replicas)
        assert states.tolist() == [formula.state_bytes(b, replicas) for b in amounts]


holdings = st.lists(st.integers(0, 10**12), min_size=8, max_size=8)


@given(
    st.lists(holdings, min_size=1, max_size=5),
    st.sampled_from(["sync", "async"]),
    st.sampled_from(["none", "stage"]),
)
def test_memory(rows: list[list[int]], mode: RegimeMode, recompute: Recompute) -> None:
    formula = Formula(Regime(mode=mode), 8)
    together = formula.memory(Holdings(*np.array(rows, np.int64).T), recompute)
    for row, content in enumerate(rows):
        alone = formula.memory(Holdings(*content), recompute)
        for name in ("held", "per_micro_batch", "while_live", "workspace"):
            assert getattr(together, name)[row] == getattr(alone, name)


@given(
    st.lists(st.tuples(*[st.integers(0, 1000)] * 6), min_size=1, max_size=5), st.sampled_from(["sync", "async"])
)
def test_times(rows: list[tuple[int, ...]], mode: RegimeMode) -> None:
    formula = Formula(Regime(mode=mode), 12)
    forward, backward, weight, update = np.array([row[:4] for row in rows], np.int64).T
    together = formula.times((forward, backward, weight), update, 3, 2, "stage")
    for row, (f, b, w, u, *_) in enumerate(rows):
        alone = formula.times((f, b, w), u, 3, 2, "stage")
        for name in ("forward", "backward", "weight_gradient", "all_reduce"):
            assert getattr(together, name)[row] == getattr(alone, name)


@given(*[st.integers(0, 50)] * 4, st.integers(0, 400))
def test_the_most_live_micro_batches_by_counting(
    held: int, each: int, live: int, scratch: int, limit: int
) -> None:
    memory = Memory(held, each, live, scratch)
    fitting = [count for count in range(1, 1000) if memory.peak(count) <= limit]
    most = memory.most_live(limit)
    assert most == (ENDLESS if len(fitting) == 999 else max(fitting, default=0))
    row = Memory(*(np.array([part]) for part in (held, each, live, scratch)))
    assert row.most_live(limit).tolist() == [most]
