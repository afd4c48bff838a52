"""Training kernels under a framework: closed forms, what must grow with what, and what frameworks differ in."""

import dataclasses
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.costs.shapes.kept import checkpoint_bytes, saved_bytes
from pipebench.costs.shapes.transformer import EMBEDDING, HEAD, LAYER, NORM, LayerShape, layer_shape
from pipebench.domain.cluster import DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Attention, Framework
from pipebench.domain.graph import Operator
from pipebench.domain.tuning import USUAL_REACH
from pipebench.formats.devices import load_device
from pipebench.formats.frameworks.facts import framework_names, load_framework
from pipebench_analytic.kernels.speeds import kernel_speeds
from pipebench_analytic.kernels.tables import own_speeds
from pipebench_analytic.layer_kernels import LayerKernels
from pipebench_analytic.passes import LAUNCHES_PER_REDUCE, OperatorPasses, Pass
from pipebench_analytic.speeds import Speeds
from pipebench_analytic.training import TrainingCosts

A100 = load_device("A100-SXM4-80GB")
V2 = load_framework("megatron-v2")
NODES = (
    LinkLevel(name="node", group=8, bandwidth_bytes_s=240e9),
    LinkLevel(name="network", group=64, bandwidth_bytes_s=12.5e9, shared_bandwidth_bytes_s=100e9),
)


def layer(hidden: int = 1024, heads: int = 16, sequence: int = 1024, **said: int) -> Operator:
    dims = {
        "sequence": sequence, "hidden": hidden, "heads": heads, "kv_heads": heads, "head": hidden // heads,
        "ffn": 4 * hidden,
    }  # fmt: skip
    attributes = {"bias": 1, "dropout": 1, "causal": 1, "vectors": 2} | said
    return Operator(name="layer", kind=LAYER, dims=dims, inputs=(), attributes=attributes)


def training(
    framework: Framework = V2,
    attention: Attention = "unfused",
    sizes: Sequence[int] = (4,),
    device: DeviceType = A100,
    links: Sequence[LinkLevel] = (),
) -> TrainingCosts:
    return TrainingCosts(Speeds(device, "fp16", framework, links), framework, attention, 2, sizes)


def seconds(made: TrainingCosts, operator: Operator, way: str = "") -> tuple[float, float]:
    costs = made.costs(operator, 0, (2, 4, 8), 0)
    each = costs.alternative(way) if way else costs
    return each.forward_s[0], each.backward_s[0]


def test_a_large_layer_runs_at_a_rate_below_the_peak() -> None:
    """GPT-3's layer: 24 s h^2 of products forward and twice backward."""
    forward_s, backward_s = seconds(training(), layer(12288, 96, 2048))
    flops = 24 * 4 * 2048 * 12288**2
    assert 0.5 < flops / forward_s / 312e12 < 0.9
    assert 1.9 < backward_s / forward_s < 2.4


def test_running_again_adds_the_forward_to_the_backward() -> None:
    made = training(replace(V2, launch_s=0.0, checkpoint_s=0.0, rerun_s=0.0))
    forward_s, backward_s = seconds(made, layer())
    again_forward_s, again_backward_s = seconds(made, layer(), "recompute")
    assert again_forward_s == forward_s
    assert again_backward_s == pytest.approx(forward_s + backward_s)


def test_a_small_layer_takes_as_long_as_the_host_launches() -> None:
    """Far below a millisecond of work: kernels times launches, and what recomputing costs the host."""
    slow = replace(V2, launch_s=1e-3, checkpoint_s=0.5, rerun_s=0.25)
    forward_s, backward_s = seconds(training(slow, sizes=(1,)), layer(64, 4, 16))
    kernels = round(forward_s / 1e-3)
    assert forward_s == pytest.approx(kernels * 1e-3)
    assert 12 <= kernels <= 24
    again_forward_s, again_backward_s = seconds(training(slow, sizes=(1,)), layer(64, 4, 16), "recompute")
    assert again_forward_s == pytest.approx(forward_s + 0.5)
    assert again_backward_s == pytest.approx(forward_s + backward_s + 0.25)


def test_a_pass_is_the_longer_of_device_and_host_and_waits_for_the_last_rank() -> None:
    speeds = Speeds(A100, "fp16", replace(V2, launch_s=1e-3, skew_s=1e-2))
    assert Pass([0.5, 0.5]).seconds(speeds, 1) == 1.0
    assert Pass([1e-6] * 5, host_s=0.1).seconds(speeds, 1) == pytest.approx(0.105)
    with_reduce = Pass([1.0], [8e6]).seconds(speeds, 4)
    assert with_reduce == pytest.approx(1.0 + speeds.all_reduce_s(8e6, 4) + 3e-2)


def test_what_collectives_add_is_told_apart() -> None:
    """A layer has two all-reduces each way. Where launches are the time, those of all-reduces add it."""
    operator, crossing = layer(), 2.0 * 4 * 1024 * 1024
    quick = replace(V2, launch_s=0.0, skew_s=1e-4, checkpoint_s=0.0, rerun_s=0.0)
    made = training(quick).costs(operator, 0, (4,), 0)
    each_s = Speeds(A100, "fp16", quick).all_reduce_s(crossing, 4) + 3e-4
    plain, again = made.alternative("tp4"), made.alternative("tp4-recompute")
    assert plain.forward_collective_s == pytest.approx([2 * each_s])
    assert plain.backward_collective_s == pytest.approx([2 * each_s])
    assert again.backward_collective_s == pytest.approx([4 * each_s])
    assert made.alternative("recompute").forward_collective_s == ()
    slow = training(replace(quick, launch_s=1.0, skew_s=0.0)).costs(operator, 0, (4,), 0).alternative("tp4")
    assert slow.forward_collective_s == pytest.approx([2 * LAUNCHES_PER_REDUCE])


def test_products_run_beside_the_collectives_that_they_wait_for() -> None:
    """One rank's part is waited for, and what takes longer than the work; the hosts' part stays."""
    alone, beside = (
        Speeds(A100, "fp16", replace(V2, launch_s=0.0, skew_s=1e-3, tensor_overlap=on)) for on in (False, True)
    )
    sent_s = alone.all_reduce_s(8e8, 4)
    assert Pass([1.0], [8e8]).seconds(alone, 4) == pytest.approx(1.0 + sent_s + 3e-3)
    assert Pass([1.0], [8e8]).seconds(beside, 4) == pytest.approx(1.0 + sent_s / 4 + 3e-3)
    short_s = sent_s / 10
    assert Pass([short_s], [8e8]).seconds(beside, 4) == pytest.approx(sent_s + 3e-3)
    assert Pass([1.0]).seconds(beside, 1) == 1.0
    made = training(replace(V2, sequence_parallel=True, tensor_overlap=True)).costs(layer(), 0, (4,), 0)
    assert [way.id for way in made.alternatives] == ["recompute", "tp4-sp-overlap", "tp4-sp-overlap-recompute"]


def test_fused_attention_is_faster_and_keeps_no_scores() -> None:
    operator = layer(1024, 16, 2048)
    kept = {}
    for attention in ("flash", "unfused", "selective"):
        made = training(attention=attention).costs(operator, 0, (), 0)  # type: ignore[arg-type]
        kept[attention] = made.saved_bytes_per_sample
    assert seconds(training(attention="flash"), operator) < seconds(training(attention="unfused"), operator)
    scores = 5 * 16 * 2048**2  # Korthikanti et al. 2022, table 2
    assert kept["unfused"] - kept["flash"] == pytest.approx(scores - 4 * 16 * 2048)
    assert kept["selective"] == kept["flash"]


def test_selective_recomputation_runs_the_core_again() -> None:
    operator = layer(1024, 16, 2048)
    plain = seconds(training(attention="unfused"), operator)
    selective = seconds(training(attention="selective"), operator)
    assert selective[0] == plain[0]
    assert plain[1] < selective[1] < plain[1] + plain[0]


def test_what_is_kept_without_sequence_parallelism_is_kept_by_each_rank() -> None:
    """Korthikanti et al. 2022, table 2: 10 + 24 / t in place of 34 / t, and attention's part over t in both."""
    shape = LayerShape(
        sequence=2048, hidden=4096, heads=32, kv_heads=32, head=128, ffn=4 * 4096, branches=1, dropout=True
    )
    sh, statistics = 2048 * 4096, 4 * 32 * 2048
    assert saved_bytes(shape, 2, 4, sequence_split=True) == (34 * sh + statistics) / 4
    assert saved_bytes(shape, 2, 4, sequence_split=False) == 10 * sh + (24 * sh + statistics) / 4
    whole = saved_bytes(shape, 2, 4, scores=True, sequence_split=False)
    assert whole == 10 * sh + (24 * sh + 5 * 32 * 2048**2) / 4


LLAMA = LayerShape(sequence=8192, hidden=4096, heads=32, kv_heads=8, head=128, ffn=14336, branches=2)


def test_every_second_product_runs_again_in_torchtitan() -> None:
    """Of wq, wk, wv, wo, w1, w3, w2 the second, fourth and sixth: keys, the output and a branch."""
    names = [(each.inner, each.outer) for each in LLAMA.linears]
    assert names == [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), *[(4096, 14336)] * 2, (14336, 4096)]
    titan = replace(load_framework("torchtitan"), launch_s=0.0)
    operator = layer(4096, 32, 8192, branches=2, bias=0, dropout=0, vectors=1)
    operator = replace(operator, dims=operator.dims | {"kv_heads": 8, "ffn": 14336})
    made = training(titan, "flash", (2,), load_device("H100-SXM5-80GB")).costs(operator, 0, (), 0, selective=True)
    speeds = Speeds(load_device("H100-SXM5-80GB"), "fp16", titan)
    rows, hidden = 2 * 8192, 2 * 2 * 8192 * 4096  # a stream of bytes as wide as the layer
    again_s = sum(speeds.layer_product_s(rows, n, 4096) for n in (1024, 4096, 14336))
    keys_values = 2 * (hidden + hidden // 4)  # each read once, written for the four heads that read it
    again_s += speeds.stream_s(2 * 2 * hidden + 2 * hidden + 3 * hidden + 3 * 2 * rows * 14336 + keys_values)
    way = made.alternative("selective")
    assert way.backward_s[0] - made.backward_s[0] == pytest.approx(again_s, rel=1e-9)
    assert way.forward_s == made.forward_s


@pytest.mark.parametrize("ways", [1, 8])
def test_selective_checkpoints_of_torchtitan_keep_results(ways: int) -> None:
    """A token of Llama-3 8B in 16 bits: the layer's input, queries, values, attention's result and a branch; with
    ranks a share of each, and what the reduce-scatter in the middle leaves. In eager code the result of w2, too:
    on ranks whole, and what its reduce-scatter leaves.
    """
    scattered = 4096 if ways > 1 else 0
    split = 4096 + 4096 + 1024 + 4096 + 14336 + scattered
    assert checkpoint_bytes(LLAMA, 2, ways) == 8192 * (2 * split / ways + 4 * 32 / ways)
    eager = checkpoint_bytes(LLAMA, 2, ways, elementwise="eager")
    assert eager == 8192 * (2 * ((split + scattered) / ways + 4096) + 4 * 32 / ways)


def test_what_eager_code_keeps() -> None:
    """A token in 16 bits: a norm's input in fp32, what it scales and its result; keys and values for each head of
    queries; both branches, the activated one, and their product.
    """
    kept = saved_bytes(LLAMA, 2, elementwise="eager", repeats_keys=True)
    assert kept == 8192 * (2 * (4 + 2 + 2) * 4096 + 4 * 2 * 4096 + 4 * 2 * 14336 + 4 * 32)
    plain = dataclasses.replace(LLAMA, branches=1)
    assert saved_bytes(plain, 2, elementwise="eager") == saved_bytes(plain, 2) + 8192 * 2 * 4 * 4096
    shifted = dataclasses.replace(plain, vectors=2)
    assert saved_bytes(shifted, 2, elementwise="eager") == saved_bytes(shifted, 2)


def test_eager_code_launches_more_and_moves_more() -> None:
    """Each norm is eight kernels and moves 36 bytes an element forward, 92 backward; fused it moves 4 and 6."""
    titan, eager = load_framework("torchtitan"), load_framework("torchtitan-eager")
    operator = layer(4096, 32, 2048, branches=2, bias=0, dropout=0, vectors=1)
    moved = {}
    for framework in (titan, eager):
        speeds = Speeds(A100, "fp16", framework)
        passes = LayerKernels(layer_shape(operator), 4, 1, speeds, framework, "flash", 2).passes()
        moved[framework.name] = passes
    tokens = 4 * 2048
    more_s = sum(moved[eager.name].forward.kernels) - sum(moved[titan.name].forward.kernels)
    norms, rotations, gate = 2 * (36 - 4) * 4096, (2 * 20 - 4) * 4096, (10 - 6) * 4 * 4096
    assert more_s == pytest.approx(Speeds(A100, "fp16", eager).stream_s(tokens * (norms + rotations + gate)))
    more_s = sum(moved[eager.name].inputs.kernels) - sum(moved[titan.name].inputs.kernels)
    norms, rotations, gate, sums = 2 * (92 - 6) * 4096, (2 * 20 - 6) * 4096, (18 - 10) * 4 * 4096, (30 - 8) * 4096
    residuals = -2 * 4 * 4096  # their gradient passes as it is
    more = norms + rotations + gate + sums + residuals
    assert more_s == pytest.approx(Speeds(A100, "fp16", eager).stream_s(tokens * more))
    launches = [len(moved[name].forward.kernels) for name in (titan.name, eager.name)]
    assert launches[1] - launches[0] == 2 * 7 + (6 - 1) + 1


def eager_passes(
    operator: Operator, ways: int = 1, size: int = 2, attention: Attention = "flash"
) -> OperatorPasses:
    framework = load_framework("torchtitan-eager")
    speeds = Speeds(A100, "fp16", framework)
    return LayerKernels(layer_shape(operator), 4, ways, speeds, framework, attention, size).passes()


def test_eager_sums_of_gradients_are_of_what_the_products_read() -> None:
    """Ranks share the sequence between the products; queries, keys, values and both branches read all of it."""
    operator = layer(4096, 32, 2048, branches=2, bias=0, dropout=0, vectors=1)
    stream_s = Speeds(A100, "fp16", load_framework("torchtitan-eager")).stream_s
    whole = 2 * 4 * 2048 * 4096
    for ways in (1, 8):
        sums = eager_passes(operator, ways).inputs.kernels[-5:]
        assert sums == pytest.approx([stream_s(3 * whole / ways)] * 2 + [stream_s(3 * whole)] * 3)
    routed = eager_passes(layer(4096, 32, 2048, branches=2, bias=0, dropout=0, vectors=1, experts=8, active=2))
    assert routed.inputs.kernels[-1] == pytest.approx(stream_s(2 * 3 * whole))


def test_eager_code_in_fp32_casts_nothing() -> None:
    """A norm is six kernels of 24 bytes an element and four of its weight, a rotation one."""
    operator = layer(4096, 32, 2048, branches=2, bias=0, dropout=0, vectors=1)
    half, full = eager_passes(operator), eager_passes(operator, size=4)
    assert len(half.forward.kernels) - len(full.forward.kernels) == 2 * 2 + 2 * 2
    assert len(half.inputs.kernels) - len(full.inputs.kernels) == 2 * 2 + 2 * 2
    stream_s = Speeds(A100, "fp16", load_framework("torchtitan-eager")).stream_s
    elements = 4 * 2048 * 4096
    assert sum(full.forward.kernels[:6]) == pytest.approx(stream_s((7 * 4 + 2 * 4 - 8) * elements))


def test_eager_layer_norms_are_one_kernel_and_dropouts_one_of_their_own() -> None:
    plain = eager_passes(layer(branches=1, bias=0, dropout=0, vectors=2))
    dropping = eager_passes(layer(branches=1, bias=0, dropout=1, vectors=2))
    scaled = eager_passes(layer(branches=1, bias=0, dropout=0, vectors=1))
    assert len(scaled.forward.kernels) - len(plain.forward.kernels) == 2 * (8 - 1)
    assert len(scaled.inputs.kernels) - len(plain.inputs.kernels) == 2 * (17 - 1)
    assert len(dropping.forward.kernels) - len(plain.forward.kernels) == 2
    assert len(dropping.inputs.kernels) - len(plain.inputs.kernels) == 2
    stream_s = Speeds(A100, "fp16", load_framework("torchtitan-eager")).stream_s
    more_s = sum(dropping.inputs.kernels) - sum(plain.inputs.kernels)
    assert more_s == pytest.approx(2 * stream_s(5 * 4 * 1024 * 1024))


def test_eager_code_rotates_for_unfused_attention_as_well() -> None:
    operator = layer(4096, 32, 2048, branches=2, bias=0, dropout=0, vectors=1)
    fused, unfused = eager_passes(operator), eager_passes(operator, attention="unfused")
    at = [2 * 8 + 4 + each for each in range(6)]  # behind both norms and the products
    assert [fused.forward.kernels[each] for each in at] == [unfused.forward.kernels[each] for each in at]


def test_the_last_norm_is_eager_as_those_of_layers_are() -> None:
    last = Operator(name="norm", kind=NORM, dims={"sequence": 2048, "hidden": 4096}, inputs=(), attributes={})
    made = {
        name: training(replace(load_framework(name), launch_s=0.0), "flash").costs(last, 2 * 4096, (), 0)
        for name in ("torchtitan", "torchtitan-eager")
    }
    stream_s = Speeds(A100, "fp16", load_framework("torchtitan")).stream_s
    elements = 4 * 2048 * 4096
    for name, forward, backward, kept in (("torchtitan", 4, 6, 2), ("torchtitan-eager", 36, 92, 6)):
        assert made[name].forward_s[0] == pytest.approx(stream_s(forward * elements))
        assert made[name].backward_s[0] == pytest.approx(stream_s(backward * elements))
        assert made[name].saved_bytes_per_sample == kept * 2048 * 4096


def test_each_operator_of_an_eager_selective_checkpoint_passes_through_python() -> None:
    """Where a layer is small its kernels wait for that: ten launches each, forward and again."""
    eager = replace(load_framework("torchtitan-eager"), launch_s=1e-3)
    operator = layer(64, 4, 16, branches=2, bias=0, dropout=0, vectors=1)
    made = training(eager, "flash", (1,)).costs(operator, 0, (), 0, selective=True)
    assert made.alternative("selective").forward_s[0] == pytest.approx(10 * made.forward_s[0])
    assert made.alternative("recompute").forward_s[0] == pytest.approx(made.forward_s[0] + eager.checkpoint_s)
    compiled = replace(load_framework("torchtitan"), launch_s=1e-3)
    made = training(compiled, "flash", (1,)).costs(operator, 0, (), 0, selective=True)
    assert made.alternative("selective").forward_s[0] == made.forward_s[0]


def test_gathered_inputs_are_kept_whole_where_a_framework_keeps_them() -> None:
    """Those of the first products of both parts, 2 bytes each; one rank gathers nothing."""
    more = saved_bytes(LLAMA, 2, 8, keeps_gathered=True) - saved_bytes(LLAMA, 2, 8)
    assert more == 8192 * 2 * 2 * 4096 * 7 / 8
    assert saved_bytes(LLAMA, 2, 1, keeps_gathered=True) == saved_bytes(LLAMA, 2, 1)
    assert saved_bytes(LLAMA, 2, 8, keeps_gathered=True, narrow_bytes=1) - saved_bytes(
        LLAMA, 2, 8, narrow_bytes=1
    ) == (8192 * 2 * 4096 * 7 / 8)


def test_the_loss_of_torchtitan_holds_copies_of_its_logits() -> None:
    """Three in fp32, four where ranks share out the vocabulary; Megatron-LM's holds one."""
    head = Operator(
        name="head", kind=HEAD, dims={"sequence": 128, "hidden": 64, "vocab": 1024}, inputs=(), attributes={}
    )
    for name, alone, split in (("torchtitan", 12, 16), ("megatron", 4, 4)):
        made = training(load_framework(name), "flash").costs(head, 0, (2,), 0)
        read = 2 * 128 * 64
        assert made.saved_bytes_per_sample == read + alone * 128 * 1024
        kept = read if name == "torchtitan" else read / 2
        way = next(each for each in made.alternatives if each.tensor_parallel == 2)
        assert way.saved_bytes_per_sample == kept + split * 128 * 512


def test_the_second_flash_attention_is_slow_on_hopper() -> None:
    """35 % of the peak at most (Shah et al. 2024); as measured on other devices and by the third."""
    sizes = (2, 8192, 32.0, 8.0, 128, True)
    second, third = (replace(load_framework("torchtitan"), flash_generation=each) for each in (2, 3))
    for name in ("H100-SXM5-80GB", "A100-SXM4-80GB"):
        slow_s, fast_s = (Speeds(load_device(name), "bf16", each).attention_s(*sizes) for each in (second, third))
        flops = 4 * 2 * 32 * 8192**2 * 128 / 2
        assert slow_s == (pytest.approx(flops / (0.35 * 989e12)) if name.startswith("H100") else fast_s)
        assert slow_s >= fast_s


@pytest.mark.parametrize("ways", [1, 4])
def test_products_in_eight_bits_keep_a_byte_of_what_they_read(ways: int) -> None:
    """Of the 34 bytes of Korthikanti et al. 2022, table 2: 2 for each of both first products' inputs and 8 for the
    second feed-forward product's become 1 and 4; the context is kept for attention, and a byte for its product.
    """
    shape = LayerShape(
        sequence=2048, hidden=4096, heads=32, kv_heads=32, head=128, ffn=4 * 4096, branches=1, dropout=True
    )
    sh, statistics = 2048 * 4096, 4 * 32 * 2048
    assert saved_bytes(shape, 2, ways, narrow_bytes=1) == (29 * sh + statistics) / ways
    whole = saved_bytes(shape, 2, ways, narrow_bytes=1, sequence_split=False)
    assert whole == 8 * sh + (21 * sh + statistics) / ways


def test_products_in_four_bits_keep_them_and_a_scale_for_sixteen() -> None:
    """Of 34 s h: five activations that products read, of 2 bytes, and the context once more for attention."""
    shape = layer_shape(layer(4096, 32, 2048))
    sh = 2048 * 4096
    saved = [saved_bytes(shape, 2, narrow_bytes=each) for each in (None, 1, 4 / 8 + 1 / 16)]
    per_element = (saved[0] - saved[1]) / sh, (saved[0] - saved[2]) / sh
    # inputs of both first products and the activation's result (4 h) are narrow; the context is kept both ways.
    assert per_element == (6 * 1 - 1, 6 * (2 - 0.5625) - 0.5625)


def test_frameworks_differ_in_what_eight_bit_products_keep() -> None:
    h100, operator = load_device("H100-SXM5-80GB"), layer(4096, 32, 2048)

    def kept(name: str, products: Literal["", "fp8"]) -> float:
        framework = load_framework(name)
        speeds = Speeds(h100, "bf16", framework, (), products)
        made = TrainingCosts(speeds, framework, "flash", 2, (1,), 1 if products else None)
        return made.costs(operator, 0, (), 0).saved_bytes_per_sample

    assert kept("megatron", "") - kept("megatron", "fp8") == 5 * 2048 * 4096
    assert kept("torchtitan", "") == kept("torchtitan", "fp8")


def test_the_fused_softmax_wants_heads_in_fours() -> None:
    """Two heads times samples a rank: softmax takes more kernels, which the host must launch."""
    slow = replace(V2, launch_s=1e-3)
    odd, _ = seconds(training(slow, sizes=(1,)), layer(), "tp8")
    even, _ = seconds(training(slow, sizes=(2,)), layer(), "tp8")
    assert odd - even == pytest.approx(5e-3)


def test_gradients_are_added_to_those_of_earlier_micro_batches() -> None:
    """12 h^2 elements, whatever the micro-batch."""
    none = replace(V2, accumulate_bytes=0.0, launch_s=0.0)
    added = replace(none, accumulate_bytes=8.0)
    apart = seconds(training(added), layer())[1] - seconds(training(none), layer())[1]
    assert apart == pytest.approx(12 * 1024**2 * 8 / (USUAL_REACH.stream_share * 2.039e12))


def test_the_head_pays_for_the_logits_of_the_loss() -> None:
    head = Operator(name="head", kind=HEAD, dims={"sequence": 1024, "hidden": 1024, "vocab": 50304}, inputs=())
    cheap, dear = replace(V2, loss_bytes=0.0, launch_s=0.0), replace(V2, loss_bytes=100.0, launch_s=0.0)
    more = sum(seconds(training(dear), head)) - sum(seconds(training(cheap), head))
    assert more == pytest.approx(4 * 1024 * 50304 * 100 / (USUAL_REACH.stream_share * 2.039e12))


def test_a_table_of_embeddings_has_a_gradient_of_its_own_size() -> None:
    dims = {"sequence": 8, "hidden": 1024, "entries": 50304}
    table = Operator(name="embedding", kind=EMBEDDING, dims=dims, inputs=())
    free = replace(V2, launch_s=0.0)
    small, large = (
        training(free, sizes=(1,)).costs(table, size, (), 0).backward_s[0] for size in (10**8, 2 * 10**8)
    )
    assert large - small == pytest.approx(4e8 / (USUAL_REACH.stream_share * 2.039e12))


def test_ranks_of_several_nodes_reduce_over_the_network() -> None:
    speeds = Speeds(A100, "fp16", V2, NODES)
    inside, across = speeds.all_reduce_s(64e6, 8), speeds.all_reduce_s(64e6, 16)
    assert across == pytest.approx(2 * 15 / 16 * 64e6 / (0.95 * 100e9), rel=0.02)
    assert across > 2 * inside


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(framework_names()), st.sampled_from([1, 2, 8]), st.sampled_from([256, 1024]))
def test_more_samples_never_take_less(name: str, samples: int, hidden: int) -> None:
    framework = load_framework(name)
    fewer, more = (
        seconds(training(framework, framework.attention, (size,)), layer(hidden))
        for size in (samples, 2 * samples)
    )
    # A number of heads that the fused softmax does not take makes a single sample slow.
    assert more[0] >= 0.9 * fewer[0]
    assert more[1] >= 0.9 * fewer[1]


@pytest.mark.parametrize("device", ["H100-SXM5-80GB", "V100-SXM2-16GB"])
def test_devices_with_and_without_measured_kernels_are_priced(device: str) -> None:
    known = load_device(device)
    forward_s, backward_s = seconds(training(device=known), layer(4096, 32, 2048))
    flops = 24 * 4 * 2048 * 4096**2
    assert 0.25 < flops / forward_s / known.peak_flops["fp16"] < 0.9
    assert backward_s > forward_s
    assert (kernel_speeds(device) is not None) == device.startswith("H100")


def test_a_device_without_rates_is_refused() -> None:
    with pytest.raises(PipebenchError, match="no peak rate in fp16"):
        Speeds(DeviceType(name="cpu", memory_bytes=1), "fp16", V2)


def test_products_in_eight_bits_are_faster_and_need_a_table() -> None:
    h100 = load_device("H100-SXM5-80GB")
    wide, narrow = (Speeds(h100, "bf16", V2, (), products) for products in ("", "fp8"))  # type: ignore[arg-type]
    shape = 8192, 8192, 8192
    assert 1.3 < wide.layer_product_s(*shape) / narrow.layer_product_s(*shape) < 2.2
    assert wide.product_s(*shape) == narrow.product_s(*shape)
    with pytest.raises(PipebenchError, match="no measured products in fp8") as caught:
        Speeds(A100, "bf16", V2, (), "fp8")
    assert "it has those in bf16" in str(caught.value.hint)
    b200 = load_device("B200-SXM-180GB")
    eight, four = (Speeds(b200, "bf16", V2, (), products) for products in ("fp8", "fp4"))  # type: ignore[arg-type]
    assert 1.2 < eight.layer_product_s(*shape) / four.layer_product_s(*shape) < 2.0


def test_a_table_of_ones_own_comes_before_what_ships(tmp_path: Path) -> None:
    """A device twice as slow as the surface that ships: products take twice as long, all-reduces as before."""
    surface = kernel_speeds("A100-SXM4-80GB")
    assert surface is not None
    products = surface.products("bf16")
    assert products is not None
    draw = random.Random(1)
    sizes = [2**power for power in range(8, 14)]
    shapes = [tuple(draw.choice(sizes) + draw.randrange(0, 64, 8) for _ in "mnk") for _ in range(150)]
    lines = [f"gemm,bf16,{m},{n},{k},{2e3 * float(products.seconds(m, n, k))}" for m, n, k in shapes]
    table = tmp_path / "own.csv"
    table.write_text("\n".join(["op,dtype,m,n,k,latency_ms", *lines]))
    own = Speeds(A100, "bf16", V2, own=own_speeds(str(table), A100))
    shipped = Speeds(A100, "bf16", V2)
    ratios = [own.product_s(*shape) / shipped.product_s(*shape) for shape in shapes]
    assert 1.85 < statistics.median(ratios) < 2.15
    assert own.all_reduce_s(1e8, 8) == shipped.all_reduce_s(1e8, 8)
    assert own_speeds(str(table), A100) is own_speeds(str(table), A100)
    with pytest.raises(PipebenchError, match="cannot read"):
        own_speeds(str(tmp_path / "none.csv"), A100)
