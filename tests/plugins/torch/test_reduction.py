"""Gradients of replicas are added in few messages, and come back in their shapes."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench_torch.machine import Machine
from pipebench_torch.running import exchange


def messages(gradients: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, object]]:
    """Elements and kind of number of each message between two replicas whose gradients are alike."""
    sent: list[tuple[int, object]] = []

    def doubled(tensor, group=None):  # type: ignore[no-untyped-def]
        assert group == "the replicas"
        sent.append((tensor.numel(), tensor.dtype))
        tensor *= 2

    monkeypatch.setattr(exchange.dist, "all_reduce", doubled)
    exchange.add_replicas(gradients, list(gradients), "the replicas", Machine())
    return sent


def test_many_small_weights_are_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(3, 4), (5,), (), (2, 1, 2)]
    gradients = {f"w{n}": torch.randn(shape) for n, shape in enumerate(shapes)}
    gradients["t"] = torch.randn(4, 6).t()  # its elements do not lie in their order
    before = {name: value.clone() for name, value in gradients.items()}
    assert messages(gradients, monkeypatch) == [(12 + 5 + 1 + 4 + 24, torch.float32)]
    for name, value in before.items():
        assert torch.equal(gradients[name], 2 * value)


def test_messages_are_cut_at_a_size_and_where_numbers_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "BUCKET_BYTES", 40)
    sizes = {"a": 6, "b": 4, "c": 1, "d": 30, "e": 2, "g": 3, "h": 5}
    gradients = {name: torch.ones(size) for name, size in sizes.items()}
    gradients["f"] = torch.ones(2, dtype=torch.float64)
    sent = messages(gradients, monkeypatch)
    assert [count for count, _ in sent] == [10, 1, 30, 10, 2]
    assert [kind for _, kind in sent] == [torch.float32] * 4 + [torch.float64]
    assert all(torch.equal(value, torch.full_like(value, 2)) for value in gradients.values())
    assert messages({}, monkeypatch) == []
