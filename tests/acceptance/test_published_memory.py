"""Memory of a stage against sums done by hand, for three published configurations.

Formulas: Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models. With tensor
parallelism t, sequence parallelism and attention's scores not kept, a layer saves 34 s b h / t bytes (table 2);
the first stage of 1F1B holds the activations of p micro-batches (section 4.2.3). Mixed precision with Adam holds
18 bytes a parameter: 2 weight + 4 fp32 gradient + 4 master copy + 8 moments.
"""

import pytest

from pipebench.bench.services import HostServices
from pipebench.check import check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.hooks.manager import Host
from tests.language_models import LLAMA_70B_OPTIONS, planned, problem

STATE_BYTES = 2 + 4 + 4 + 8
WITHIN = 0.05


def peaks(given: Problem, plan: Plan) -> list[int]:
    """Bytes at the peak of the first device of each stage under 1F1B."""
    schedule = HostServices(Host()).schedule("1f1b", given, plan)
    verdict = check_schedule(given, plan, schedule)
    assert verdict.status == "valid"
    return [verdict.peak_bytes[stage.devices[0]] for stage in plan.stages]


def gpt(layers: int, hidden: int, heads: int) -> dict[str, object]:
    """A model of table 3: vocabulary 51200, sequence 2048, tied embedding, dropout."""
    return {
        "architecture": "gpt2",
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "ffn": 4 * hidden,
        "vocab": 51200,
        "sequence": 2048,
        "positions": 2048,
        "tied": True,
        "dropout": True,
    }


def test_gpt3_175b_on_tensor_8_pipeline_8() -> None:
    """h = 12288, 96 layers, 96 heads, s = 2048, v = 51200, b = 1 (Korthikanti et al., table 3)."""
    pins = Pins(tensor_parallel=8, pipeline=8, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    given = problem(pins=pins, **gpt(96, 12288, 96))
    plan = planned(given)
    assert [len([n for n in stage.operators if n.startswith("layers.")]) for stage in plan.stages] == [12] * 8
    h, s, v, t, p = 12288, 2048, 51200, 8, 8
    weights_of_layer = 12 * h * h  # 4 h^2 attention + 8 h^2 feed-forward
    layer_saves = 34 * s * 1 * h / t
    first = 12 * weights_of_layer / t + v * h / t + s * h
    expected = [first * STATE_BYTES + p * 12 * layer_saves]
    expected += [12 * weights_of_layer / t * STATE_BYTES + (p - k) * 12 * layer_saves for k in range(1, 7)]
    head_saves = 2 * s * h / t * 2 + 4 * s * v / t  # inputs of norm and head, fp32 logits (section 4.3)
    expected.append((12 * weights_of_layer / t + v * h / t) * STATE_BYTES + 12 * layer_saves + head_saves)
    assert expected[0] == pytest.approx(61.06e9, rel=1e-3)
    assert peaks(given, plan) == [pytest.approx(each, rel=WITHIN) for each in expected]


def test_gpt_22b_on_tensor_8() -> None:
    """h = 6144, 48 layers, 64 heads, s = 2048, v = 51200, b = 4, no pipeline (Korthikanti et al., table 3)."""
    pins = Pins(tensor_parallel=8, pipeline=1, data_parallel=1, micro_batch=4, recompute="none")
    given = problem(devices=8, mini_batch=4, pins=pins, **gpt(48, 6144, 64))
    h, s, b, v, t = 6144, 2048, 4, 51200, 8
    weights = 48 * 12 * h * h / t + v * h / t + s * h  # the table of the tied embedding once
    saves = 48 * 34 * s * b * h / t + 2 * (2 * s * b * h / t) + 4 * s * b * v / t
    expected = weights * STATE_BYTES + saves
    assert expected == pytest.approx(60.36e9, rel=1e-3)
    assert peaks(given, planned(given)) == [pytest.approx(expected, rel=WITHIN)]


def test_llama_2_70b_on_tensor_8_pipeline_8() -> None:
    """h = 8192, 80 layers, 64 heads of 128, 8 key heads, ffn 28672, v = 32000, s = 4096 (Touvron et al. 2023)."""
    pins = Pins(tensor_parallel=8, pipeline=8, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    given = problem(pins=pins, **LLAMA_70B_OPTIONS)
    plan = planned(given)
    h, s, v, t, p, f, kv = 8192, 4096, 32000, 8, 8, 28672, 1024
    weights_of_layer = 2 * h * h + 2 * h * kv + 3 * h * f  # query and output, key and value, three of the SwiGLU
    assert 80 * weights_of_layer + 2 * v * h == pytest.approx(68.98e9, rel=1e-3)
    # bf16: inputs of both norms and of both blocks 8 h, query and context 4 h, key and value 4 kv, SwiGLU 6 f.
    layer_saves = s * (8 * h + 4 * h + 4 * kv + 6 * f) / t
    layers = [sum(name.startswith("layers.") for name in stage.operators) for stage in plan.stages]
    assert layers == [10] * 8
    expected = [10 * weights_of_layer / t * STATE_BYTES + (p - k) * 10 * layer_saves for k in range(8)]
    expected[0] += v * h / t * STATE_BYTES
    expected[7] += v * h / t * STATE_BYTES + 2 * (2 * s * h / t) + 4 * s * v / t
    assert peaks(given, plan) == [pytest.approx(each, rel=WITHIN) for each in expected]
