"""Weights are the same numbers wherever they are made."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pipebench_torch.modules.captured_model import CapturedModel
from pipebench_torch.modules.catalog import source_of
from pipebench_torch.modules.models import MOST_DRAWN, random_values, weight
from tests.plugins.torch.small import image

USER = Path(__file__).with_name("user_module.py")
MOVES = {"_to_copy", "empty", "repeat", "slice", "view", "unfold", "expand_as", "copy_", "alias", "_unsafe_view"}
"""Operations that make no number. Devices round products and sums in ways of their own."""


class Elsewhere(TorchDispatchMode):  # type: ignore[misc]
    """Names of the operations that ran elsewhere than on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if any(isinstance(each, torch.Tensor) and each.device.type != "cpu" for each in tree_leaves(made)):
            self.names.add(func.overloadpacket.__name__)
        return made


def test_a_device_computes_no_number_of_a_weight() -> None:
    graph = image()
    captured = CapturedModel(source_of(f"{USER}:build[layers=1]"), "module", 0, torch.bfloat16)
    captured.weight(next(iter(captured.graph.parameter_bytes)))  # the capture itself makes tensors elsewhere
    with Elsewhere() as elsewhere:
        for parameter in graph.parameters:
            assert weight(graph, parameter.name, 0, torch.bfloat16, torch.device("meta")).device.type == "meta"
        random_values((MOST_DRAWN + 5,), "long", 0, torch.device("meta"), deviation=0.5, mean=1.0)
        for name in captured.graph.parameter_bytes:
            assert captured.weight(name, torch.device("meta")).device.type == "meta"
    assert "repeat" in elsewhere.names
    assert elsewhere.names <= MOVES


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_of_a_long_tensor_repeat(dtype: torch.dtype) -> None:
    made = random_values((3, MOST_DRAWN // 2), "long", 1, dtype=dtype, deviation=0.02, mean=1.0)
    assert made.dtype == dtype
    flat = made.flatten().float()
    assert torch.equal(flat[MOST_DRAWN:], flat[: len(flat) - MOST_DRAWN])
    assert float(flat.mean()) == pytest.approx(1.0, abs=1e-3)
    assert float(flat.std()) == pytest.approx(0.02, rel=0.02)
