"""What is said of a run that cannot be expressed: its figures and what is valid; and models that names tell."""

import pytest

from pipebench.bench.accuracy.assumptions import NotExpressed
from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.sizes import architecture_of, public_sizes
from tests.bench.accuracy.tables import run


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"tp": "4"}, "4 x 2 x 2 = 16, gpus is 8"),
        ({"tp": "3", "dp": ""}, "3 x 2 = 6, gpus is 8"),
        ({"ep": "8"}, "model is gpt, ep is 8"),
        ({"gbs": "33"}, "gbs is 33, dp is 2, mbs is 4"),
        ({"gbs": "33", "mbs": ""}, "gbs is 33, dp is 2"),
        ({"schedule": "hanayo"}, "valid: 1f1b, gpipe, interleaved-1f1b, zb-1p, zb-2p, zb-h1, zb-v"),
        ({"schedule": "interleaved-1f1b", "vpp": "8"}, "16 stages, 8 layers"),
        ({"model": "mamba-2.8B"}, "model is mamba-2.8B; names begin with gpt, megatron, llama, mistral"),
        ({"recompute": "fulll"}, "fulll; did you mean 'full'? Valid: full, none, selective"),
        ({"precision": "int3"}, "int3; valid: bf16, fp16, fp32"),
        ({"precision": "NVFP4"}, "it has bf16, fp16, fp32"),
        ({"partition": "5-5"}, "5-5 for 8 layers in 2 stages"),
        ({"framework": "torchtitn"}, "framework is torchtitn"),
        ({"framework": "torchtitan, FSDP=64"}, "FSDP=64, 2 replicas"),
        ({"tp": "2 (4)"}, "in tp"),
    ],
)
def test_what_cannot_be_expressed_says_its_figures_and_what_is_valid(changes: dict[str, str], detail: str) -> None:
    with pytest.raises(NotExpressed) as refused:
        express(run(**changes))
    assert refused.value.detail == detail


def test_a_device_that_does_not_ship_is_named_with_the_nearest() -> None:
    with pytest.raises(NotExpressed) as refused:
        express(run(device="A10-80GB"))
    assert refused.value.detail.startswith("did you mean 'A100-")


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("meta-llama/Llama-3.1-8B", "llama"),
        ("mistralai/Mistral-7B-v0.1", "llama"),
        ("mistral-7B", "llama"),
        ("EleutherAI/gpt-1.3B", "gpt2"),
        ("gpt2", "gpt2"),
        ("llama 7B", "llama"),
        ("mixtral-8x7B", None),
        ("GPT OSS 120B", "mixtral"),
        ("GPT OSS 7B", None),
        ("openai/gpt-oss-7b", None),
        ("gptq", None),
    ],
)
def test_names_begin_with_their_architecture_behind_an_organisation(name: str, architecture: str | None) -> None:
    assert architecture_of(name) == architecture


def test_an_organisation_is_no_part_of_a_well_known_name() -> None:
    assert public_sizes("meta-llama/Llama-3.1-8B") == public_sizes("llama3-8B") is not None
