"""A Hugging Face config.json as the options of the model `llm`."""

from typing import Any

import msgspec

from pipebench.documents.decoding import MALFORMED, bounded_json, require_unique_keys
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import LARGEST_CONFIG_BYTES, MOST_COUNT, MOST_LAYERS, MOST_UNTYPED_ELEMENTS
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.formats.files import read_file

ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "llama",
    "qwen3": "llama",
    "gpt2": "gpt2",
    "bert": "bert",
    "mixtral": "mixtral",
}
"""model_type to the architecture whose layers it has. Sliding windows, of mistral and others, are not priced."""
BESIDES = {"qwen2": "qkv_bias", "qwen3": "head_norm"}
"""What the layers of a model_type have besides: the option of `llm` that says so."""
PRECISIONS: dict[str, Precision] = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class ModelConfig(Value, frozen=True, kw_only=True):
    """options: of the model `llm`, as texts, but for its defaults. precision: the file's, None where it says
    none. notes: what was assumed.
    """

    options: dict[str, str]
    precision: Precision | None
    notes: tuple[str, ...]


def read_config(path: str, sequence: int | None = None) -> ModelConfig:
    """The figures of a config.json. sequence: tokens a sample, None: the file's longest.

    Raises PipebenchError: no JSON object, an architecture without a rule, a key that is missing or no count.
    """
    data = read_file(path)
    if len(data) > LARGEST_CONFIG_BYTES:
        raise PipebenchError(f"{path}: {len(data)} bytes, a config.json has at most {LARGEST_CONFIG_BYTES}")
    if data.startswith(b"\xef\xbb\xbf"):
        raise PipebenchError(f"{path}: starts with a byte-order mark", "save it as UTF-8 without one")
    bounded_json(data, path, MOST_UNTYPED_ELEMENTS)
    try:
        said = msgspec.json.decode(data, type=dict[str, Any])
    except MALFORMED as error:
        raise PipebenchError(f"{path}: not a config.json: {error}", "give the model's config.json") from None
    require_unique_keys(data, path)
    kind = said.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        named = f"{kind!r}" if kind is not None else "no model_type"
        raise PipebenchError(
            f"{path}: unknown architecture {named}",
            f"{_meant(str(kind))}; a model with the layers of a Llama may be given with model_type llama, "
            "for others profile the model and use --profile",
        )
    return _ConfigReader(path, said, kind).read(sequence)


def _meant(kind: str) -> str:
    """The nearest model_type, and all. None is near a known one with an ending, such as qwen3_moe: it is another
    model.
    """
    if kind.startswith(tuple(ARCHITECTURES)):
        return f"valid: {', '.join(sorted(ARCHITECTURES))}"
    return nearest(kind, ARCHITECTURES)


class _ConfigReader:
    """Keys of one file, under the names that its architecture gives them."""

    def __init__(self, path: str, said: dict[str, Any], kind: str) -> None:
        self._path, self._said, self._kind, self._architecture = path, said, kind, ARCHITECTURES[kind]
        self._notes: list[str] = []

    def read(self, sequence: int | None) -> ModelConfig:
        gpt2 = self._architecture == "gpt2"
        hidden = self._count("n_embd" if gpt2 else "hidden_size")
        longest = self._count("n_positions" if gpt2 else "max_position_embeddings", 1024 if gpt2 else 0)
        if sequence is None:
            if not longest:
                raise PipebenchError(f"{self._path}: the length of a sample is not known", "give it with --seq")
            sequence = longest
            self._notes.append(f"{sequence} tokens a sample, the most that the model takes (--seq)")
        elif longest and sequence > longest and self._architecture in ("llama", "mixtral"):
            self._notes.append(f"{sequence} tokens a sample are more than the model's {longest}")
        window = self._said.get("sliding_window")
        if isinstance(window, int) and window < sequence and self._said.get("use_sliding_window", True):
            self._notes.append(
                f"the sliding window of {window} tokens is not priced: attention sees all {sequence}"
            )
        heads = self._count("n_head" if gpt2 else "num_attention_heads")
        learned = self._architecture in ("gpt2", "bert")
        dropout = self._said.get("resid_pdrop" if gpt2 else "hidden_dropout_prob", 0.1 if learned else 0.0)
        options: dict[str, Any] = {
            "architecture": self._architecture,
            "layers": self._count("n_layer" if gpt2 else "num_hidden_layers", most=MOST_LAYERS),
            "hidden": hidden,
            "heads": heads,
            "kv_heads": self._count("num_key_value_heads", heads),
            "head": self._count("head_dim", 0),
            "ffn": self._count("n_inner" if gpt2 else "intermediate_size", 4 * hidden if gpt2 else None),
            "vocab": self._count("vocab_size"),
            "sequence": sequence,
            "positions": longest if learned else 0,
            "token_types": self._count("type_vocab_size", 2) if self._architecture == "bert" else 2,
            "experts": self._count("num_local_experts", 8) if self._architecture == "mixtral" else 1,
            "active": self._count("num_experts_per_tok", 2) if self._architecture == "mixtral" else 1,
            "tied": bool(self._said.get("tie_word_embeddings", learned)),
            "dropout": isinstance(dropout, int | float) and dropout > 0,
        }
        if self._kind in BESIDES:
            options[BESIDES[self._kind]] = True
        usual = {"kv_heads": heads, "experts": 1, "active": 1, "token_types": 2}
        said = {name: value for name, value in options.items() if value and value != usual.get(name)}
        texts = {name: str(value).lower() for name, value in said.items()}
        return ModelConfig(options=texts, precision=self._precision(), notes=tuple(self._notes))

    def _precision(self) -> Precision | None:
        kind = self._said.get("torch_dtype", self._said.get("dtype"))
        return PRECISIONS.get(kind) if isinstance(kind, str) else None

    def _count(self, key: str, default: int | None = None, most: int = MOST_COUNT) -> int:
        """A whole number from 1 to `most`; null and a missing key are the default."""
        value = self._said.get(key)
        if value is None:
            if default is None:
                raise PipebenchError(f"{self._path}: the key {key!r} is missing")
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            allowed = f"it must be a whole number from 1 to {most}"
            raise PipebenchError(f"{self._path}: {key} is {repr(value)[:40]}, {allowed}")
        return value
