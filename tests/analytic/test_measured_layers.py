"""Layers of Llamas on an H100, measured by this project: what torchtitan's kernels take and keep.

A model of two depths ran a forward and a backward on an H100 SXM of 80 GB and 700 W (PyTorch 2.11, CUDA 13.0,
bf16, 2026-11-26; events on the card, the median of six); their difference is a layer. Gradients were added in
bf16, on one device without FSDP. Attention was cuDNN's, or FlashAttention-2 where the last field says so.
"""

from typing import Literal, NamedTuple

import pytest
from msgspec.structs import replace

from pipebench.costs.shapes.transformer import HEAD, LAYER
from pipebench.domain.graph import Operator
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.recomputation import Repeated
from pipebench.formats.devices import load_device
from pipebench.formats.frameworks.facts import load_framework
from pipebench_analytic.layer_kernels import FLASH_BACKWARD
from pipebench_analytic.speeds import Speeds
from pipebench_analytic.training import TrainingCosts

H100 = load_device("H100-SXM5-80GB")
HOST_S = 18e-6
"""What a launch took the processor of that virtual machine."""


class Shape(NamedTuple):
    hidden: int
    heads: int
    ffn: int


EIGHT, SEVENTY, SMALL = Shape(4096, 32, 14336), Shape(8192, 64, 28672), Shape(2048, 16, 8192)


class Measured(NamedTuple):
    """sequence in tokens, samples of a micro-batch, ms of a layer's forward and backward, GB that it keeps."""

    shape: Shape
    sequence: int
    samples: int
    elementwise: Literal["eager", "fused"]
    again: Repeated
    forward_ms: float
    backward_ms: float
    kept_gb: float
    flash: Literal[2, 3] = 3


MEASURED = [
    Measured(EIGHT, 8192, 2, "eager", "none", 15.05, 35.18, 3.492),
    Measured(EIGHT, 8192, 2, "eager", "full", 15.85, 46.13, 0.134),
    Measured(EIGHT, 8192, 1, "eager", "full", 7.39, 24.70, 0.067),
    Measured(EIGHT, 8192, 1, "eager", "selective", 7.35, 20.60, 0.521),
    Measured(EIGHT, 8192, 1, "eager", "selective", 8.98, 22.83, 0.521, 2),
    Measured(EIGHT, 2048, 4, "eager", "none", 6.83, 15.64, 1.746),
    Measured(EIGHT, 2048, 4, "eager", "selective", 7.94, 20.03, 0.521),
    Measured(EIGHT, 8192, 1, "fused", "full", 7.09, 20.94, 0.067),
    Measured(EIGHT, 8192, 1, "fused", "selective", 6.81, 17.74, 0.454),
    Measured(EIGHT, 2048, 4, "fused", "none", 6.28, 12.61, 1.243),
    Measured(EIGHT, 8192, 1, "fused", "none", 7.20, 17.50, 1.243, 2),
    Measured(SEVENTY, 4096, 1, "eager", "none", 11.55, 26.51, 1.746),
    Measured(SEVENTY, 4096, 1, "eager", "selective", 11.87, 32.00, 0.513),
    Measured(SEVENTY, 4096, 1, "eager", "full", 11.82, 37.27, 0.067),
    Measured(SEVENTY, 4096, 1, "fused", "none", 11.12, 23.60, 1.243),
    Measured(SEVENTY, 4096, 1, "fused", "selective", 10.52, 27.57, 0.446),
    Measured(SMALL, 2048, 4, "eager", "none", 2.74, 5.56, 0.940),
    Measured(SMALL, 2048, 4, "eager", "selective", 6.04, 7.07, 0.286),
    Measured(SMALL, 2048, 4, "fused", "none", 2.17, 4.18, 0.672),
    Measured(SMALL, 2048, 1, "eager", "none", 0.59, 1.61, 0.235),
]


def predicted(run: Measured) -> OperatorCosts | Alternative:
    """The costs of the layer as the run ran it."""
    name = "torchtitan-eager" if run.elementwise == "eager" else "torchtitan"
    framework = load_framework(name)
    assert framework.elementwise == run.elementwise
    framework = replace(framework, accumulate_bytes=6, flash_generation=run.flash, launch_s=HOST_S, rerun_s=0.0)
    hidden, heads, ffn = run.shape
    dims = {"sequence": run.sequence, "hidden": hidden, "heads": heads, "kv_heads": 8, "head": 128, "ffn": ffn}
    operator = Operator(
        name="layer", kind=LAYER, dims=dims, inputs=(), attributes={"causal": 1, "vectors": 1, "branches": 2}
    )
    speeds = Speeds(H100, "bf16", framework)
    costs = TrainingCosts(speeds, framework, "flash", 2, (run.samples,)).costs(operator, 0, (), 0, selective=True)
    names = {"full": "recompute", "selective": "selective"}
    return costs.alternative(names[run.again]) if run.again in names else costs


@pytest.mark.parametrize("run", MEASURED)
def test_a_layer_keeps_what_was_measured(run: Measured) -> None:
    """To the third digit: what is kept is counted."""
    kept = predicted(run).saved_bytes_per_sample * run.samples
    assert kept / 1e9 == pytest.approx(run.kept_gb, abs=6e-4)


@pytest.mark.parametrize("run", MEASURED)
def test_a_layer_takes_what_was_measured(run: Measured) -> None:
    """The card held its limit of power, and the tables' products were measured without: all are a little fast."""
    costs = predicted(run)
    forward_ms, backward_ms = 1e3 * costs.forward_s[0], 1e3 * costs.backward_s[0]
    assert forward_ms == pytest.approx(run.forward_ms, rel=0.15)
    assert backward_ms == pytest.approx(run.backward_ms, rel=0.12)


def test_the_loss_takes_what_was_measured() -> None:
    """8,192 tokens of 128,256 words: 17.8 ms, forward and backward."""
    dims = {"sequence": 8192, "hidden": 4096, "vocab": 128256}
    head = Operator(name="head", kind=HEAD, dims=dims, inputs=(), attributes={})
    took_ms = []
    for moved in (load_framework("torchtitan").loss_bytes, 0.0):
        framework = replace(load_framework("torchtitan"), loss_bytes=moved, launch_s=0.0)
        costs = TrainingCosts(Speeds(H100, "bf16", framework), framework, "flash", 2, (1,)).costs(head, 0, (), 0)
        took_ms.append(1e3 * (costs.forward_s[0] + costs.backward_s[0]))
    assert took_ms[0] - took_ms[1] == pytest.approx(17.83, rel=0.05)


def test_attention_takes_what_was_measured() -> None:
    """FlashAttention-2 with two sequences of 8,192, 32 heads of 128: 3.36 ms, and 13.19 with the backward."""
    framework = load_framework("torchtitan")
    forward_ms = 1e3 * Speeds(H100, "bf16", framework).attention_s(2, 8192, 32, 32, 128, True)
    assert forward_ms == pytest.approx(3.36, rel=0.06)
    assert forward_ms * (1 + FLASH_BACKWARD[framework.flash_generation]) == pytest.approx(13.19, rel=0.06)


def test_all_layers_together_are_near() -> None:
    errors = []
    for run in MEASURED:
        costs = predicted(run)
        took_ms = 1e3 * (costs.forward_s[0] + costs.backward_s[0])
        errors.append(abs(took_ms / (run.forward_ms + run.backward_ms) - 1))
    assert sum(errors) / len(errors) < 0.055
