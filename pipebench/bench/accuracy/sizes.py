"""Sizes of models that everybody knows by name, for rows that name the model and not its sizes."""

import re

from pipebench.bench.accuracy.run import Run
from pipebench.domain.value import Value


class ModelSizes(Value, frozen=True, kw_only=True):
    """architecture: of the model `llm`. kv_heads: 0 for as many as heads. ffn: 0 for four times hidden; of a model
    with experts that of one of them. head: width of a head, 0 for hidden / heads. experts, active: feed-forward
    parts, and how many of them a token passes. head_norm: whether queries and keys are normed. besides: other
    options of the model `llm`. further: tokens besides the next one that it is trained to predict. source: of the
    sizes.
    """

    architecture: str
    layers: int
    hidden: int
    heads: int
    vocab: int
    kv_heads: int = 0
    ffn: int = 0
    head: int = 0
    experts: int = 1
    active: int = 1
    head_norm: bool = False
    besides: dict[str, str | int | bool] = {}
    further: int = 0
    source: str = ""


_LLAMA = "Grattafiori et al. 2024, The Llama 3 Herd of Models, table 3"
_QWEN = "Yang et al. 2025, Qwen3 Technical Report, table 2, and the public config.json"
_DEEPSEEK = "DeepSeek-AI 2024, DeepSeek-V3 Technical Report, section 4.2, and the public config.json"
_OSS = "OpenAI 2025, gpt-oss-120b & gpt-oss-20b Model Card, section 2, and the public config.json"
_NEMOTRON = "NVIDIA 2025, Nemotron 3 Nano technical report, and the public config.json"
_SELECTIVE = "Korthikanti et al. 2022, Reducing Activation Recomputation, table 3"


def _gpt_oss(layers: int, experts: int) -> ModelSizes:
    return ModelSizes(
        architecture="mixtral",
        layers=layers,
        hidden=2880,
        heads=64,
        kv_heads=8,
        ffn=2880,
        head=64,
        experts=experts,
        active=4,
        vocab=201088,
        besides={
            "window": 128,
            "windowed": "wf",
            "sinks": True,
            "qkv_bias": True,
            "out_bias": True,
            "ffn_bias": True,
            "router_bias": True,
        },
        source=_OSS,
    )


PUBLIC: dict[str, ModelSizes] = {
    "llama3-8b": ModelSizes(
        architecture="llama", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256, source=_LLAMA
    ),
    "llama3-70b": ModelSizes(
        architecture="llama", layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=128256, source=_LLAMA
    ),
    "llama3-405b": ModelSizes(
        architecture="llama",
        layers=126,
        hidden=16384,
        heads=128,
        kv_heads=8,
        ffn=53248,
        vocab=128256,
        source=_LLAMA,
    ),
    "qwen3-30b-a3b": ModelSizes(
        architecture="mixtral",
        layers=48,
        hidden=2048,
        heads=32,
        kv_heads=4,
        ffn=768,
        head=128,
        experts=128,
        active=8,
        head_norm=True,
        vocab=151936,
        source=_QWEN,
    ),
    "qwen3-235b-a22b": ModelSizes(
        architecture="mixtral",
        layers=94,
        hidden=4096,
        heads=64,
        kv_heads=4,
        ffn=1536,
        head=128,
        experts=128,
        active=8,
        head_norm=True,
        vocab=151936,
        source=_QWEN,
    ),
    "deepseek-v3": ModelSizes(
        architecture="mixtral",
        layers=61,
        hidden=7168,
        heads=128,
        ffn=2048,
        head=192,
        experts=256,
        active=8,
        vocab=129280,
        besides={
            "routed": "d3e58",
            "dense_ffn": 18432,
            "shared_ffn": 2048,
            "query_rank": 1536,
            "key_rank": 512,
            "rotated": 64,
            "value_head": 128,
        },
        further=1,
        source=_DEEPSEEK,
    ),
    "gpt-oss-20b": _gpt_oss(layers=24, experts=32),
    "gpt-oss-120b": _gpt_oss(layers=36, experts=128),
    "nemotron-3-nano": ModelSizes(
        architecture="nemotron_h",
        layers=52,
        hidden=2688,
        heads=32,
        kv_heads=2,
        ffn=1856,
        head=128,
        experts=128,
        active=6,
        vocab=131072,
        besides={
            "hybrid": "memem" + 4 * "aememem" + "aemememem" + "aememememe",
            "mamba_heads": 64,
            "shared_ffn": 3712,
            "activation": "squared_relu",
        },
        source=_NEMOTRON,
    ),
    "megatron-22b": ModelSizes(
        architecture="gpt2", layers=48, hidden=6144, heads=64, vocab=51200, source=_SELECTIVE
    ),
    "gpt3-175b": ModelSizes(
        architecture="gpt2", layers=96, hidden=12288, heads=96, vocab=51200, source=_SELECTIVE
    ),
}
ARCHITECTURES = {"gpt": "gpt2", "megatron": "gpt2", "llama": "llama", "mistral": "llama"}
"""How names of models begin, and the architecture whose layers these have. No word follows behind a blank: a GPT
OSS is no GPT."""
GATED = ("llama", "mixtral")
"""Architectures whose feed-forward part is gated, that of their experts too."""
_BEGINNING = re.compile(rf"({'|'.join(ARCHITECTURES)})(?! ?[a-z]|-oss)")


def plain_name(model: str) -> str:
    """In small letters, without what stands in brackets and without its organisation: LLAMA3.1_405B (Pre-Training)
    and meta-llama/Llama-3.1-405B are llama3-405b, GPT OSS 120B is gpt-oss-120b.
    """
    name = re.sub(r"\(.*?\)", "", model).strip().lower().replace("_", "-").rpartition("/")[-1]
    name = re.sub(r"^gpt[- ]oss[- ]", "gpt-oss-", re.sub(r"^deepseek[- ]?v3$", "deepseek-v3", name))
    return re.sub(r"^llama[- ]?3(?:\.\d)?", "llama3", name)


def public_sizes(model: str) -> ModelSizes | None:
    """The sizes of a model by its name, None for one that is not known."""
    return PUBLIC.get(plain_name(model))


SIZES = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")
"""Fields of a run, and of public sizes."""


def sizes_of(run: Run) -> dict[str, int]:
    """Sizes of the model by their names, as the run says them, else as its model is known; without those that are
    neither.
    """
    known = public_sizes(run.model)
    found = {name: getattr(run, name) or (known and getattr(known, name)) for name in SIZES}
    return {name: size for name, size in found.items() if size}


def architecture_of(model: str) -> str | None:
    """The architecture of a model by its name (ARCHITECTURES), None where it says none."""
    known, found = public_sizes(model), _BEGINNING.match(plain_name(model))
    if known is not None:
        return known.architecture
    return ARCHITECTURES[found[1]] if found else None
