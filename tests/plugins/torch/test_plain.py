"""Modules with regions: captured operators compute what the module computes, in the format that is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch
from torch import Tensor, nn

from pipebench.domain.errors import PipebenchError
from pipebench_torch.modules.building import for_checking
from pipebench_torch.modules.captured import CapturedModel
from pipebench_torch.modules.catalog import Source
from pipebench_torch.profiling.passes import passes_of

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
    ready.timed().run()
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


def test_a_region_that_casts_is_refused() -> None:
    with pytest.raises(PipebenchError, match=r"a region of torch.autocast \(give --precision in its place\)"):
        captured(lambda: Gated(casts=True), torch.float32)


def test_a_graph_that_names_formats_is_checked_in_float64_throughout() -> None:
    """Were a number rounded to the model's own format on the way, gradients would be off by a thousandth."""
    checked, fine = for_checking(captured(Gated, torch.bfloat16)), captured(Gated, torch.float64)
    gradients = []
    for model in (checked, fine):
        ready = passes_of(model, 3, torch.device("cpu"))
        ready.timed().run()
        gradients.append({name: weight.grad for name, weight in ready.weights.items()})
    for name, gradient in gradients[0].items():
        assert gradient is not None
        assert gradient.dtype == torch.float64
        assert torch.allclose(gradient, gradients[1][name], rtol=1e-5)
