"""Modules with regions: captured operators compute what the module computes, in the format that is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch
from torch import Tensor, nn

from pipebench.domain.errors import PipebenchError
from pipebench_torch.modules.captured_model import CapturedModel
from pipebench_torch.modules.catalog import Source
from pipebench_torch.modules.profile_models import for_checking
from pipebench_torch.profiling.passes import passes_of
from pipebench_torch.profiling.timed_pass import SavedStorages

WIDTH = 8


class Gated(nn.Module):
    """A gate that nothing is learnt through, made without gradients and, in a region of its own, without casts."""

    def __init__(self, casts: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("scale", torch.ones(WIDTH))
        self.casts = casts

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        with torch.no_grad():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.casts):
                ranks = torch.arange(WIDTH, device=x.device).to(x.device, torch.float32)
                gate = torch.sigmoid(self.second(y).float() * self.scale + ranks)
            other = gate + 1
        with torch.enable_grad():
            y = y * gate.to(x.dtype)
        return self.second(y) + other.to(x.dtype)


def captured(build: Callable[[], nn.Module], dtype: torch.dtype, **more: Any) -> CapturedModel:
    source = Source("gated", build, lambda samples: {"x": torch.randn(samples, WIDTH)})
    return CapturedModel(source, more.get("group", "module"), 0, dtype)


@pytest.mark.parametrize("group", ["module", "node"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_regions_compute_what_the_module_computes(dtype: torch.dtype, group: str) -> None:
    model = captured(Gated, dtype, group=group)
    kinds = {operator.kind for operator in model.graph.operators}
    assert not any("wrap_with" in kind or "assert" in kind for kind in kinds)
    ready = passes_of(model, 3, torch.device("cpu"))
    ready.timed_pass().run()
    own = {name: weight.grad.clone() for name, weight in ready.weights.items() if weight.grad is not None}
    ready.whole()
    assert set(own) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    for name, gradient in own.items():
        assert gradient.abs().sum() > 0
        both = ready.weights[name].grad
        assert both is not None
        assert torch.allclose(both, 2 * gradient, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5)


def test_bytes_are_those_of_the_format() -> None:
    fine, coarse = captured(Gated, torch.float32), captured(Gated, torch.bfloat16)
    assert [each.bytes for each in fine.graph.parameters] == [2 * each.bytes for each in coarse.graph.parameters]
    by_name = {tensor.name: tensor for tensor in coarse.graph.tensors}
    assert by_name["x"].forward_bytes_per_sample == 2 * WIDTH
    checked = for_checking(coarse)
    assert isinstance(checked, CapturedModel)
    assert checked.buffer(0, 2).dtype == checked.weight("first.weight").dtype == torch.float64
    assert coarse.weight("first.weight").dtype == torch.bfloat16


class Head(nn.Module):
    """Its outputs are made in regions: the last layer in full precision, and one beside it."""

    def __init__(self, only: bool) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.register_buffer("turns", torch.ones(WIDTH // 2, dtype=torch.complex64))
        self.only = only

    def forward(self, x: Tensor) -> Any:
        y = self.first(x) + torch.view_as_real(self.turns).flatten().to(x.dtype)
        with torch.autocast("cpu", enabled=False):
            z = self.second(y)
        return z if self.only else (self.third(y), z)


class Teacher(nn.Module):
    """What is made without gradients is not kept for a backward."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        with torch.no_grad():
            taught = torch.sigmoid(torch.tanh(self.second(y)))
        return y + taught


class Changing(nn.Module):
    """The history of y is that of its layer, though its numbers were changed."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        with torch.no_grad():
            y.clamp_(0)
        return y * 2


@pytest.mark.parametrize("only", [True, False])
def test_outputs_may_be_made_in_regions(only: bool) -> None:
    model = captured(lambda: Head(only), torch.float32)
    ready = passes_of(model, 3, torch.device("cpu"))
    ready.timed_pass().run()
    own = {name: weight.grad.clone() for name, weight in ready.weights.items() if weight.grad is not None}
    ready.whole()
    assert own["second.weight"].abs().sum() > 0
    assert all(torch.allclose(ready.weights[name].grad, 2 * own[name], rtol=1e-5) for name in own)


def test_nothing_is_kept_or_sent_back_where_there_are_no_gradients() -> None:
    model = captured(Teacher, torch.float32, group="node")
    ready = passes_of(model, 3, torch.device("cpu"))
    storages = SavedStorages(len(model.graph.operators), ready.weights.values(), torch.device("cpu"))
    ready.timed_pass().run(storages)
    kept = dict(zip((operator.name for operator in model.graph.operators), storages.saved, strict=True))
    assert kept == {"linear": 3 * WIDTH * 4, "linear_1": 0, "tanh": 0, "sigmoid_1": 0, "add": 3 * WIDTH * 4}
    sent = {tensor.name: tensor.gradient_bytes_per_sample for tensor in model.graph.tensors}
    assert sent == {"x": 0, "linear": WIDTH * 4, "linear_1": 0, "tanh": 0, "sigmoid_1": 0, "add": WIDTH * 4}


def test_a_change_in_place_without_gradients_is_refused() -> None:
    with pytest.raises(PipebenchError, match=r"'clamp__1' changes a tensor in place under torch.no_grad\(\)"):
        captured(Changing, torch.float32)


def test_a_region_that_casts_is_refused() -> None:
    with pytest.raises(PipebenchError, match=r"a region of torch.autocast \(give --precision in its place\)"):
        captured(lambda: Gated(casts=True), torch.float32)


def test_a_graph_that_names_formats_is_checked_in_float64_throughout() -> None:
    """Were a number rounded to the model's own format on the way, gradients would be off by a thousandth."""
    checked, fine = for_checking(captured(Gated, torch.bfloat16)), captured(Gated, torch.float64)
    gradients = []
    for model in (checked, fine):
        ready = passes_of(model, 3, torch.device("cpu"))
        ready.timed_pass().run()
        gradients.append({name: weight.grad for name, weight in ready.weights.items()})
    for name, gradient in gradients[0].items():
        assert gradient is not None
        assert gradient.dtype == torch.float64
        assert torch.allclose(gradient, gradients[1][name], rtol=1e-5)
