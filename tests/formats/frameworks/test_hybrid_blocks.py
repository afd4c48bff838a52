"""What blocks say of layers of one part."""

from typing import Any

import pytest

from pipebench.domain.problem import Pins
from pipebench.formats.frameworks import megatron
from pipebench.formats.frameworks.arrangement import Arrangement, arrange
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import TARGETS
from tests.hybrid_models import TINY_HYBRID
from tests.language_models import planned, problem


def arranged(tp: int = 1, pp: int = 2, vpp: int = 1, **options: Any) -> Arrangement:
    pins = Pins(
        tensor_parallel=tp, pipeline=pp, data_parallel=1, virtual_stages=vpp, micro_batch=1, recompute="none"
    )
    made = problem(devices=tp * pp, mini_batch=8, pins=pins, **TINY_HYBRID | options)
    return arrange(made, planned(made))


def block(made: Arrangement) -> list[str]:
    return TARGETS["megatron"].write(made, "").splitlines()


def test_megatron_is_told_the_part_of_each_layer_by_stage() -> None:
    made = arranged()
    lines = block(made)
    (pattern,) = [line for line in lines if line.startswith("--hybrid-layer-pattern")]
    stages = pattern.removeprefix("--hybrid-layer-pattern '").removesuffix("'").split("|")
    assert "".join(stages) == "MEM*-MEM"
    assert [len(stage) for stage in stages] == [sum(op.layer is not None for op in ops) for ops in made.operators]
    assert not any("pipeline-model-parallel-layout" in line or "num-layers" in line for line in lines)


def test_megatron_is_told_the_widths_of_each_part() -> None:
    lines = block(arranged(pp=1, tp=2))
    expected = {
        "--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec",
        "--hidden-size 256",
        "--ffn-hidden-size 512",
        "--num-attention-heads 8",
        "--group-query-attention --num-query-groups 2",
        "--kv-channels 64",
        "--num-experts 8 --moe-router-topk 2",
        "--moe-ffn-hidden-size 192",
        "--moe-shared-expert-intermediate-size 320",
        "--mamba-num-heads 8 --mamba-head-dim 64",
        "--mamba-num-groups 2 --mamba-state-dim 32",
        "--squared-relu",
        "--position-embedding-type none",
        "--seq-length 256",
        "--sequence-parallel",
        "--hybrid-layer-pattern 'MEM*-MEM'",
    }
    assert expected <= set(lines)
    assert not any("moe-layer-freq" in line for line in lines)


def test_stages_of_one_rank_are_more_segments() -> None:
    (pattern,) = [line for line in block(arranged(vpp=2)) if line.startswith("--hybrid-layer-pattern")]
    assert pattern.count("|") == 3


def test_layers_without_attention_have_heads_that_the_ranks_divide() -> None:
    """Megatron-LM asks for heads, and for a multiple of the ranks."""
    pure = {"hybrid": "m", "experts": 1, "active": 1, "shared_ffn": 0, "dense_ffn": 0}
    assert "--num-attention-heads 2" in block(arranged(pp=1, tp=2, **pure))


def test_what_megatron_has_no_flag_for() -> None:
    assert any("scans in chunks of 64 tokens" in line for line in megatron.comments(arranged(mamba_chunk=64)))
    assert not any("scans in chunks" in line for line in megatron.comments(arranged()))
    with pytest.raises(CannotExpress, match="a convolution over 3 tokens"):
        block(arranged(mamba_kernel=3))


def test_torchtitan_has_no_such_layers() -> None:
    with pytest.raises(CannotExpress, match="no llama-like language model"):
        TARGETS["torchtitan"].write(arranged(), "")
