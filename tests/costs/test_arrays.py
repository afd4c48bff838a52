"""Array forms of the cost formulas equal the scalar ones element by element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.arrays import all_reduces_ns, messages_ns, weight_states_bytes, whole_bytes_of
from pipebench.costs.communicate import all_reduce_ns, message_ns
from pipebench.costs.memory import weight_state_bytes
from pipebench.costs.quantise import whole_bytes
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Optimizer, Regime, RegimeMode
from pipebench.domain.profile import Precision

sizes = st.lists(st.integers(0, 10**12), min_size=1, max_size=8)
levels = st.builds(
    lambda latency, rate: LinkLevel(name="l", group=64, latency_s=latency, bandwidth_bytes_s=rate),
    st.floats(0, 1e-4),
    st.floats(1e6, 1e12),
)


@given(sizes, levels, st.integers(1, 64), st.integers(1, 64))
def test_messages_and_all_reduces(amounts: list[int], level: LinkLevel, senders: int, receivers: int) -> None:
    array = np.array(amounts, dtype=np.int64)
    sent = messages_ns(level, array, senders, receivers)
    assert sent.tolist() == [message_ns(level, b, senders, receivers) for b in amounts]
    assert all_reduces_ns(level, array, senders).tolist() == [all_reduce_ns(level, b, senders) for b in amounts]


@given(st.lists(st.floats(0, 1e13), min_size=1, max_size=8))
def test_whole_bytes(amounts: list[float]) -> None:
    assert whole_bytes_of(np.array(amounts)).tolist() == [whole_bytes(a) for a in amounts]
    near = [round(a) * (1 + 1e-13) for a in amounts]
    assert whole_bytes_of(np.array(near)).tolist() == [whole_bytes(a) for a in near]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "none"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("gradient", [None, "fp32", "bf16"])
@pytest.mark.parametrize("sharding", ["none", "zero1"])
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
        states = weight_states_bytes(regime, np.array(amounts, dtype=np.int64), replicas)
        assert states.tolist() == [weight_state_bytes(regime, b, replicas) for b in amounts]
