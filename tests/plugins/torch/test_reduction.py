"""Gradients of replicas are added in few messages, and come back in their shapes."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench_torch.machine import Machine
from pipebench_torch.running import exchange


def messages(weights: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, object]]:
    """Elements and kind of number of each message between two replicas whose gradients are alike: the weights
    themselves.
    """
    sent: list[tuple[int, object]] = []

    class Work:
        def wait(self) -> None:
            pass

    def doubled(tensor, group=None, async_op=False):  # type: ignore[no-untyped-def]
        assert group == "the replicas"
        sent.append((tensor.numel(), tensor.dtype))
        tensor *= 2
        return Work()

    monkeypatch.setattr(exchange.dist, "all_reduce", doubled)
    buckets, parts = exchange.zeros_in_buckets(weights, list(weights))  # type: ignore[arg-type]
    for name, value in weights.items():
        parts[name] += value
    exchange.Addition(buckets, "the replicas", Machine()).finish()
    for name, value in weights.items():
        assert parts[name].shape == value.shape  # type: ignore[attr-defined]
        assert torch.equal(parts[name], 2 * value)  # type: ignore[operator]
    return sent


def test_many_small_weights_are_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(3, 4), (5,), (), (2, 1, 2)]
    weights = {f"w{n}": torch.randn(shape) for n, shape in enumerate(shapes)}
    weights["t"] = torch.randn(4, 6).t()  # its elements do not lie in their order
    assert messages(weights, monkeypatch) == [(12 + 5 + 1 + 4 + 24, torch.float32)]


def test_messages_are_cut_at_a_size_and_where_numbers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "BUCKET_BYTES", 40)
    sizes = {"a": 6, "b": 4, "c": 1, "d": 30, "e": 2, "g": 3, "h": 5}
    weights = {name: torch.ones(size) for name, size in sizes.items()}
    weights["f"] = torch.ones(2, dtype=torch.float64)
    sent = messages(weights, monkeypatch)
    assert [count for count, _ in sent] == [10, 1, 30, 10, 2]
    assert [kind for _, kind in sent] == [torch.float32] * 4 + [torch.float64]
    assert messages({}, monkeypatch) == []


def test_what_a_card_sends_through_the_host_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that sends a copy: the sum lies in the bucket afterwards."""

    class Copying(Machine):
        def sending(self, tensor):  # type: ignore[no-untyped-def]
            return tensor.clone()

    class Work:
        def wait(self) -> None:
            pass

    def doubled(tensor, group=None, async_op=False):  # type: ignore[no-untyped-def]
        tensor *= 2
        return Work()

    monkeypatch.setattr(exchange.dist, "all_reduce", doubled)
    bucket = torch.ones(3)
    exchange.Addition([bucket], None, Copying()).finish()
    assert torch.equal(bucket, torch.full((3,), 2.0))
