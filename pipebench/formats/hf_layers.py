"""Which layers of a config.json see a window of the tokens before them, and which have experts."""

from collections.abc import Callable, Container, Sequence
from itertools import groupby
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_LAYERS
from pipebench.formats.hf_facts import ConfigFacts, Key

SEES = {"full_attention": "f", "sliding_attention": "w", "chunked_attention": "w"}
"""Words of `layer_types` to the letters of the option `windowed`."""
Count = Callable[[Key], int]


def turns(letters: str) -> str:
    """The shortest text that says these letters: what recurs once, a count behind a letter that repeats."""
    runs = [(letter, len(list(run))) for letter, run in groupby(letters[: period(letters)])]
    return "".join(letter if count == 1 else f"{letter}{count}" for letter, count in runs)


def period(each: Sequence[object]) -> int:
    """After how many entries a list begins again; it may end within a round. At least one entry."""
    return next(size for size in range(1, len(each) + 1) if _repeats(each, size))


def _repeats(each: Sequence[object], size: int) -> bool:
    return all(entry == each[position % size] for position, entry in enumerate(each))


def windowed(path: str, said: dict[str, Any], facts: ConfigFacts, layers: int, count: Count) -> str | None:
    """A letter for each layer, w where its tokens see a part of those before them; None where nothing says which.

    Raises PipebenchError for attention that is neither full nor local.
    """
    kinds = _list(path, said, "layer_types", layers)
    if kinds is not None:
        other = next((kind for kind in kinds if not isinstance(kind, str) or kind not in SEES), None)
        if other is not None:
            raise PipebenchError(
                f"{path}: layer_types has {repr(other)[:40]}, only {', '.join(SEES)} can be priced",
                "profile the model and use --profile",
            )
        return "".join(SEES[kind] for kind in kinds)
    rotates = _list(path, said, "no_rope_layers", layers)
    if rotates is not None and facts.windows == "turns":  # of Llama 4: layers that rotate nothing see all
        return "".join("w" if each else "f" for each in rotates)
    if facts.windows == "last":
        first = count(Key(("max_window_layers",), 28))
        return "".join("w" if layer >= first else "f" for layer in range(layers))
    every = count(facts.full_every)
    if facts.windows == "turns":
        return "".join("w" if (layer + 1) % every else "f" for layer in range(layers))
    return "w" * layers if facts.windows == "all" else None


PARTS = {"M": "m", "*": "a", "-": "d", "E": "e"}
"""Letters of `hybrid_override_pattern` to those of the option `hybrid`."""
WORDS_FOR_PARTS = {
    "mamba": "m",
    "linear_attention": "m",
    "attention": "a",
    "full_attention": "a",
    "mlp": "d",
    "moe": "e",
}
"""Words of `layers_block_type`, of older files and of newer ones."""


def parts(path: str, said: dict[str, Any]) -> str:
    """A letter of the option `hybrid` for each layer.

    Raises PipebenchError where the file says none, or a part that no price knows.
    """
    pattern, kinds = said.get("hybrid_override_pattern"), said.get("layers_block_type", said.get("layer_types"))
    key, each, words = "hybrid_override_pattern", pattern, PARTS
    if kinds is not None:
        key, each, words = "layers_block_type", kinds, WORDS_FOR_PARTS
    if not isinstance(each, str if words is PARTS else list) or not each:
        raise PipebenchError(
            f"{path}: nothing says which part each layer has", "give hybrid_override_pattern, such as M-M-M*-"
        )
    if len(each) > MOST_LAYERS:
        raise PipebenchError(f"{path}: {key} has {len(each)} layers, at most {MOST_LAYERS} are read")
    other = next((part for part in each if not isinstance(part, str) or part not in words), None)
    if other is not None:
        raise PipebenchError(
            f"{path}: {key} has {repr(other)[:40]}, only {', '.join(words)} can be priced",
            "profile the model and use --profile",
        )
    layers = said.get("num_hidden_layers")
    if layers is not None and layers != len(each):
        raise PipebenchError(f"{path}: num_hidden_layers is {repr(layers)[:40]}, {key} has {len(each)}")
    return "".join(words[part] for part in each)


def routed(path: str, said: dict[str, Any], facts: ConfigFacts, layers: int, count: Count) -> str:
    """A letter for each layer: e where it has experts, d where it has one feed-forward part."""
    if facts.routed == "first-dense":
        first = said.get(facts.first_routed.names[0]) == 0
        first_layer = 0 if first else count(facts.first_routed)
        return "".join("e" if layer >= first_layer else "d" for layer in range(layers))
    if facts.routed == "steps":
        step, dense = count(Key(("decoder_sparse_step",), 1)), _layers(path, said, "mlp_only_layers") or set()
        return "".join("e" if (layer + 1) % step == 0 and layer not in dense else "d" for layer in range(layers))
    if facts.routed == "interleaved":
        step, named = count(Key(("interleave_moe_layer_step",), 1)), _layers(path, said, "moe_layers")
        chosen: Container[int] = range(step - 1, layers, step) if named is None else named
        return "".join("e" if layer in chosen else "d" for layer in range(layers))
    return "e" * layers


def _list(path: str, said: dict[str, Any], key: str, layers: int) -> list[Any] | None:
    """The first so many of a list that has one for each layer; None where there is none."""
    value = said.get(key)
    if not isinstance(value, list) or not value:
        return None
    if len(value) < layers:
        raise PipebenchError(
            f"{path}: {key} has {len(value)} entries for {layers} layers", "give one for each layer"
        )
    return value[:layers]


def _layers(path: str, said: dict[str, Any], key: str) -> set[int] | None:
    """A list of numbers of layers, in any order; None where there is none."""
    value = said.get(key)
    if value is None:
        return None
    if isinstance(value, list) and all(type(layer) is int for layer in value):
        return set(value)
    raise PipebenchError(f"{path}: {key} is {repr(value)[:40]}, it must be a list of numbers of layers")
