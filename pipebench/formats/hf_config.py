"""A Hugging Face config.json as the options of the model `llm`: the table of model types applied to one file."""

from math import prod
from typing import Any

import msgspec

from pipebench.documents.decoding import MALFORMED, bounded_json, require_unique_keys
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import LARGEST_CONFIG_BYTES, MOST_COUNT, MOST_LAYERS, MOST_UNTYPED_ELEMENTS
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.formats.files import read_file
from pipebench.formats.hf_architectures import (
    ACTIVATION_KEYS,
    ACTIVATIONS,
    CONFIGS,
    NOT_PRICED,
    REFUSED,
    ROTARY_KEYS,
)
from pipebench.formats.hf_facts import ConfigFacts, Key, Options
from pipebench.formats.hf_layers import parts, routed, turns, windowed

PARTS_OF_A_HEAD = (("nope", 128), ("rope", 64))
"""Words for what is rotated of a head of DeepSeek's latent attention and what is not, and their usual widths."""
PRECISIONS: dict[str, Precision] = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


class ModelConfig(Value, frozen=True, kw_only=True):
    """options: of the model `llm`, as texts, but for its defaults. precision: the file's, None where it says
    none. notes: what was assumed.
    """

    options: dict[str, str]
    precision: Precision | None
    notes: tuple[str, ...]


def read_config(path: str, sequence: int | None = None, expert_parallel: int = 1) -> ModelConfig:
    """The figures of a config.json. sequence: tokens a sample, None: the file's longest. expert_parallel: how many
    ranks share out the experts, for the notes.

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
    if kind is None:
        raise PipebenchError(
            f"{path}: the key 'model_type' is missing", f"{_part(said)}valid: {', '.join(CONFIGS)}"
        )
    if not isinstance(kind, str) or kind not in CONFIGS:
        named = f"{kind!r}"
        if isinstance(kind, str) and kind in REFUSED:
            raise PipebenchError(
                f"{path}: {kind} cannot be priced: {REFUSED[kind]}", "profile the model and use --profile"
            )
        raise PipebenchError(
            f"{path}: unknown architecture {named}",
            f"{_part(said)}{_meant(str(kind))}; a model with the layers of a Llama may be given with model_type "
            "llama, for others profile the model and use --profile",
        )
    return _ConfigReader(path, said, CONFIGS[kind], expert_parallel).read(sequence)


def _meant(kind: str) -> str:
    """The nearest model_type, and all. None is near a known one with an ending, such as qwen3_moe: it is another
    model.
    """
    if kind.startswith(tuple(CONFIGS)):
        return f"valid: {', '.join(sorted(CONFIGS))}"
    return nearest(kind, CONFIGS)


def _part(said: dict[str, Any]) -> str:
    """What can be read of a model that has a language model inside."""
    inside = said.get("text_config")
    kind = inside.get("model_type") if isinstance(inside, dict) else None
    if not isinstance(kind, str) or kind not in CONFIGS:
        return ""
    return f"its text_config is a {kind}, which a file of its own may hold; "


class _ConfigReader:
    """Keys of one file, under the names that its architecture gives them."""

    def __init__(self, path: str, said: dict[str, Any], facts: ConfigFacts, expert_parallel: int) -> None:
        self._expert_parallel = expert_parallel
        self._path, self._said, self._facts = path, facts.left_out | said, facts
        self._notes: list[str] = []

    def read(self, sequence: int | None) -> ModelConfig:
        self._refuse_other_layers()
        facts = self._facts
        longest = self._count(facts.longest)
        sequence = self._sequence(sequence, longest)
        hidden, heads = self._count(facts.hidden), self._count(facts.heads)
        head = self._count(Key(("head_dim",), facts.head_width)) if not facts.latent else 0
        kind = self._said["model_type"]
        options: dict[str, Any] = {
            "architecture": facts.architecture,
            "model_type": kind if kind != facts.architecture else "",
            "layers": self._count(facts.layers, MOST_LAYERS),
            "hidden": hidden,
            "heads": heads,
            "kv_heads": self._count(facts.kv_heads) or heads,
            "head": head,
            "ffn": self._count(facts.ffn) or self._count(facts.ffn_factor) * hidden,
            "vocab": self._count(Key(("vocab_size",))),
            "sequence": sequence,
            "positions": longest + facts.more_positions if facts.learned and longest else 0,
            "token_types": self._count(Key(("type_vocab_size",), 2)),
            "experts": self._count(facts.experts) if facts.experts and not facts.parts else 1,
            "active": self._count(facts.active) if facts.active and not facts.parts else 1,
            "tied": self._flag("tie_word_embeddings", facts.tied),
            "dropout": self._number(*facts.dropout) > 0,
            "activation": self._activation(),
            "rotary_percent": self._rotary_percent(head or max(1, hidden // heads)),
        }
        options |= facts.always
        for switch in facts.switches:
            options |= switch.on if self._flag(switch.key, switch.default) else switch.off
        for name, value in options.items():
            if isinstance(value, Key):
                options[name] = self._count(value)
        options |= self._latent(heads) if facts.latent else {}
        options |= self._parts(options["ffn"]) if facts.parts else {}
        options |= self._routed(options["layers"]) if facts.experts and not facts.parts else {}
        options |= self._windowed(options["layers"], sequence)
        self._say_what_is_not_priced(options)
        usual = {"kv_heads": heads, "experts": 1, "active": 1, "token_types": 2, "activation": "usual"}
        usual |= {"rotary_percent": 100, "norms": 2}
        said = {name: value for name, value in options.items() if value and value != usual.get(name)}
        texts = {name: str(value).lower() for name, value in said.items()}
        return ModelConfig(options=texts, precision=self._precision(), notes=tuple(self._notes))

    def _refuse_other_layers(self) -> None:
        """Raise PipebenchError where a key says that layers are built as none of this model_type here."""
        wanted = dict(self._facts.required)
        wanted |= {key: (self._said[other],) for key, other in self._facts.alike.items() if other in self._said}
        for key, values in wanted.items():
            first, _, second = key.partition(".")
            value = self._said.get(first)
            if second:
                value = value.get(second) if isinstance(value, dict) else None
            if value is not None and value not in values:
                raise PipebenchError(
                    f"{self._path}: {key} is {repr(value)[:40]}, only {values[0]!r} can be priced",
                    "profile the model and use --profile",
                )

    def _latent(self, heads: int) -> Options:
        """Keys and values of low rank, as all DeepSeek models since the second say them."""
        plain, rotated = (self._count(Key((f"qk_{part}_head_dim",), width)) for part, width in PARTS_OF_A_HEAD)
        return {
            "query_rank": self._count(Key(("q_lora_rank",), 0)) if "q_lora_rank" in self._said else 1536,
            "key_rank": self._count(Key(("kv_lora_rank",), 512)),
            "head": plain + rotated,
            "rotated": rotated,
            "value_head": self._count(Key(("v_head_dim",), 128)),
            "kv_heads": heads,
        }

    def _parts(self, ffn: int) -> Options:
        """The part of each layer. ffn: width of a feed-forward part without experts."""
        facts, letters = self._facts, parts(self._path, self._said)
        found: Options = {"layers": len(letters), "hybrid": turns(letters)}
        if "e" not in letters or not (facts.experts and facts.active and facts.expert_ffn):
            return found
        found |= {"experts": self._count(facts.experts), "active": self._count(facts.active)}
        found |= {"ffn": self._count(facts.expert_ffn), "shared_ffn": prod(map(self._count, facts.shared))}
        return found | ({"dense_ffn": ffn} if "d" in letters else {})

    def _routed(self, layers: int) -> Options:
        """Which layers have experts, and the one that all tokens pass."""
        facts, letters = self._facts, routed(self._path, self._said, self._facts, layers, self._count)
        if "e" not in letters:
            raise PipebenchError(
                f"{self._path}: no layer has experts", "a model without them may be given with another model_type"
            )
        dense = {"dense_ffn": self._count(facts.dense_ffn)} if "d" in letters and facts.dense_ffn else {}
        shared = {"shared_ffn": prod(map(self._count, facts.shared))} if facts.shared else {}
        return {"routed": turns(letters) if "d" in letters else ""} | dense | shared

    def _windowed(self, layers: int, sequence: int) -> Options:
        """The window or the chunk that tokens see, where it is shorter than the sequence."""
        if not self._said.get("use_sliding_window", True):
            return {}
        name = "chunk" if "attention_chunk_size" in self._said else "window"
        size = self._said.get("attention_chunk_size" if name == "chunk" else "sliding_window")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < sequence:
            return {}
        letters = windowed(self._path, self._said, self._facts, layers, self._count)
        if letters is None:
            self._notes.append(f"the sliding window of {size} tokens is not priced: attention sees all {sequence}")
        if letters is None or "w" not in letters:
            return {}
        seen = f"the last {size} tokens" if name == "window" else f"those before them of {size} tokens"
        self._notes.append(f"tokens of {letters.count('w')} of {layers} layers see {seen}")
        return {name: size, "windowed": turns(letters) if "f" in letters else ""}

    def _sequence(self, sequence: int | None, longest: int) -> int:
        """Tokens a sample."""
        if sequence is None:
            if not longest:
                raise PipebenchError(f"{self._path}: the length of a sample is not known", "give it with --seq")
            self._notes.append(f"{longest} tokens a sample, the most that the model takes (--seq)")
            return longest
        if longest and sequence > longest:
            if self._facts.learned:
                raise PipebenchError(
                    f"{self._path}: {sequence} tokens a sample are more than the {longest} positions that the "
                    "model has learned",
                    f"use --seq {longest} or less",
                )
            self._notes.append(f"{sequence} tokens a sample are more than the model's {longest}")
        return sequence

    def _say_what_is_not_priced(self, options: dict[str, Any]) -> None:
        left_out = [text for key, text in NOT_PRICED.items() if self._said.get(key) not in (None, False, 0, 1)]
        left_out += ["ALiBi's distances"] if options.get("alibi") else []
        left_out += self._facts.not_priced
        if left_out:
            self._notes.append(f"not priced: {', '.join(dict.fromkeys(left_out))}")
        if options.get("parallel"):
            norms = options.get("norms", 2)
            self._notes.append(
                f"attention and feed-forward part both read the layer's input, with {norms} "
                f"{'norm' if norms == 1 else 'norms'} a layer; under tensor parallelism two all-reduces are "
                "priced each way, where a framework that adds the results first needs one"
            )
        if options["rotary_percent"] != 100 and not options.get("key_rank"):
            self._notes.append(
                f"{options['rotary_percent']} % of a head's features are rotated; the price is of rotating all"
            )
        if "m" in options.get("hybrid", ""):
            self._notes.append(
                "convolution, scan and norm of Mamba-2 layers are not calibrated: FLOP and bytes by a roofline"
            )
        if options["experts"] > 1:
            self._notes.append(self._experts(options["experts"], options["active"]))
        ahead = self._said.get("num_nextn_predict_layers")
        if isinstance(ahead, int) and ahead > 0:
            self._notes.append(
                "what predicts further tokens (num_nextn_predict_layers) is left out, as the library leaves it out"
            )

    def _experts(self, experts: int, active: int) -> str:
        """How the experts of a layer are held and priced."""
        even = f"a token passes {active}, tokens spread evenly"
        if self._expert_parallel > 1:
            return (
                f"{self._expert_parallel} ranks share out the {experts} experts of a layer, {even} and none is "
                "dropped; what the ranks exchange is modelled, not measured"
            )
        return (
            f"each tensor-parallel group holds all {experts} experts (--ep shares them out), {even}; under "
            "--framework experts run one after the other; routing is not priced"
        )

    def _activation(self) -> str:
        """The option's word: usual, where it is so in this architecture."""
        said = next((self._said[key] for key in ACTIVATION_KEYS if isinstance(self._said.get(key), str)), None)
        known = ACTIVATIONS.get(said or self._facts.activation)
        if known is None:
            self._notes.append(f"the activation {repr(said)[:40]} is priced as any other")
        usual = "silu" if self._facts.gated else "gelu"
        return "usual" if known is None or known == usual else known

    def _rotary_percent(self, head: int) -> int:
        """Of the features of a head, how many are rotated."""
        features = self._count(Key(("rotary_dim",), 0))
        if features:
            return min(100, round(100 * features / head))
        inside = self._said.get("rope_parameters")
        places = (self._said, inside if isinstance(inside, dict) else {})
        said = next((place[key] for place in places for key in ROTARY_KEYS if place.get(key) is not None), None)
        share = self._facts.rotary if said is None else said
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
            raise PipebenchError(
                f"{self._path}: the share of rotated features is {repr(share)[:40]}, it must be more than 0 and "
                "at most 1"
            )
        return max(1, round(100 * share))

    def _precision(self) -> Precision | None:
        kind = self._said.get("torch_dtype", self._said.get("dtype"))
        return PRECISIONS.get(kind) if isinstance(kind, str) else None

    def _flag(self, key: str, default: bool) -> bool:
        """True or false; null and a missing key are the default."""
        value = self._said.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise PipebenchError(f"{self._path}: {key} is {repr(value)[:40]}, it must be true or false")
        return value

    def _number(self, key: str, default: float) -> float:
        """A number; anything else is the default."""
        value = self._said.get(key)
        return value if isinstance(value, int | float) else default

    def _count(self, key: Key, most: int = MOST_COUNT) -> int:
        """A whole number from 1 to `most`; null and a missing key are the default."""
        name = next((name for name in key.names if self._said.get(name) is not None), None)
        if name is None:
            if key.default is None:
                raise PipebenchError(f"{self._path}: the key {key.names[0]!r} is missing")
            return key.default
        value = self._said[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            allowed = f"it must be a whole number from 1 to {most}"
            raise PipebenchError(f"{self._path}: {name} is {repr(value)[:40]}, {allowed}")
        return value
