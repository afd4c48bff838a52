"""Modules by name: torchvision's and transformers' from their configurations, or anything by import path or file.

Nothing is downloaded: weights are made up, times do not depend on them.
"""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from pipebench.domain.errors import PipebenchError, unknown
from pipebench_torch.modules.names import TORCHVISION, TRANSFORMERS, family_of, split_name

Inputs = Callable[[int], dict[str, Tensor]]
"""The keyword arguments of a module for so many samples, on torch's current default device."""

_KEPT: list[Any] = []
"""Registrations that last as long as this process."""


@dataclass(frozen=True, slots=True)
class Source:
    """How to build a module, and what to call it with."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Inputs


def source_of(text: str) -> Source:
    """The module of a name: torchvision:NAME, transformers:NAME, NAME of either, package.module:function or
    ./file.py:function. Whoever calls this has made sure that the user typed the name (see modules.names).

    The function returns a module that has a method `example_inputs(samples)` giving its keyword arguments, or a
    pair of a module and such a function. Options in brackets go to the configuration or the function.
    Raises PipebenchError for a name that does not exist or an import that fails.
    """
    name, options = split_name(text)
    place, colon, short = name.rpartition(":")
    if not colon:
        place, short = family_of(name), name
        if not place:
            raise unknown("model", name, [*TORCHVISION, *TRANSFORMERS])
    if place == "torchvision":
        return _torchvision(short, options)
    if place == "transformers":
        return _transformers(short, options)
    return _made_source(place, short, options)


def _torchvision(name: str, options: dict[str, Any]) -> Source:
    if name not in TORCHVISION:
        raise unknown("torchvision model", name, TORCHVISION)
    models = _torchvision_models()
    side = int(options.pop("image_size", TORCHVISION[name]))
    settings = {"weights": None, **options}
    if name in ("inception_v3", "googlenet"):
        settings |= {"init_weights": False, "aux_logits": options.get("aux_logits", False)}
    return Source(
        name=name,
        build=lambda: getattr(models, name)(**settings),
        inputs=lambda samples: {"x": torch.randn(samples, 3, side, side)},
    )


def _torchvision_models() -> Any:
    """torchvision's models.

    A torchvision built for another torch lacks two operators, which no model here calls; they are declared then,
    and it is imported again. (To declare them where it has them ends the process.)
    """
    if importlib.util.find_spec("torchvision") is None:
        raise PipebenchError("torchvision is not installed", "pip install torchvision")
    try:
        return importlib.import_module("torchvision.models")
    except (ImportError, RuntimeError) as error:
        if _KEPT or "torchvision::nms" not in str(error):
            raise PipebenchError(f"torchvision cannot be imported: {error}") from error
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(library)
    for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    return _torchvision_models()


def _ids(samples: int, sequence: int) -> Tensor:
    return torch.zeros(samples, sequence, dtype=torch.long)


def _bert(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    sequence = int(options.pop("sequence", 128))
    config = transformers.BertConfig(**_quiet(options, "hidden_dropout_prob", "attention_probs_dropout_prob"))
    return lambda: transformers.BertModel(config), lambda n: {"input_ids": _ids(n, sequence)}


def _gpt2(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    sequence = int(options.pop("sequence", 128))
    config = transformers.GPT2Config(use_cache=False, **_quiet(options, "resid_pdrop", "embd_pdrop", "attn_pdrop"))
    return lambda: _with_positions(transformers.GPT2LMHeadModel(config)), lambda n: {
        "input_ids": _ids(n, sequence)
    }


def _vit(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    config = transformers.ViTConfig(**_quiet(options, "hidden_dropout_prob", "attention_probs_dropout_prob"))
    side = config.image_size
    return lambda: transformers.ViTModel(config), lambda n: {"pixel_values": torch.randn(n, 3, side, side)}


def _clip(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    sequence = int(options.pop("sequence", 77))
    config = transformers.CLIPConfig(**options)
    side = config.vision_config.image_size
    return lambda: transformers.CLIPModel(config), lambda n: {
        "input_ids": _ids(n, sequence),
        "pixel_values": torch.randn(n, 3, side, side),
    }


def _t5(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    sequence = int(options.pop("sequence", 128))
    config = transformers.T5Config(use_cache=False, **_quiet(options, "dropout_rate"))
    return lambda: transformers.T5Model(config), lambda n: {
        "input_ids": _ids(n, sequence),
        "decoder_input_ids": _ids(n, sequence),
    }


def _llama(transformers: Any, options: dict[str, Any]) -> tuple[Callable[[], nn.Module], Inputs]:
    sequence = int(options.pop("sequence", 128))
    config = transformers.LlamaConfig(use_cache=False, **options)
    return lambda: _with_positions(transformers.LlamaForCausalLM(config)), lambda n: {
        "input_ids": _ids(n, sequence)
    }


def _with_positions(module: nn.Module) -> nn.Module:
    """A decoder that is given its positions.

    By itself it would repeat them only where there are several samples, and its graph would depend on their
    number.
    """

    def tell(_: nn.Module, arguments: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        ids = named["input_ids"]
        positions = torch.arange(ids.shape[1], device=ids.device)[None].expand(ids.shape[0], -1)
        return arguments, {**named, "position_ids": positions}

    module.register_forward_pre_hook(tell, with_kwargs=True)
    return module


def _quiet(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Options with every dropout off, unless the user sets it."""
    return {**dict.fromkeys(names, 0.0), **options}


BUILDERS: dict[str, Callable[[Any, dict[str, Any]], tuple[Callable[[], nn.Module], Inputs]]] = dict(
    zip(TRANSFORMERS, (_bert, _gpt2, _vit, _clip, _t5, _llama), strict=True)
)


def _transformers(name: str, options: dict[str, Any]) -> Source:
    if name not in TRANSFORMERS:
        raise unknown("transformers model", name, TRANSFORMERS)
    if importlib.util.find_spec("transformers") is None:
        raise PipebenchError("transformers is not installed", "pip install transformers")
    if importlib.util.find_spec("torchvision") is not None:
        _torchvision_models()
    try:
        build, inputs = BUILDERS[name](importlib.import_module("transformers"), options)
    except (TypeError, ValueError) as error:
        raise PipebenchError(f"transformers:{name}: {error}") from error
    return Source(name, lambda: _without_masks(build()), inputs)


UNMASKED = "pipebench_unmasked"
"""The name under which transformers knows attention without masks."""


def _without_masks(module: Any) -> nn.Module:
    """The module with attention that is given no mask: samples are whole, and causal attention knows its own.

    A capture cannot tell that a mask hides nothing and keeps it. With a mask, a card has none of its fast kernels
    for attention, which the module itself would use. transformers makes no masks for attention of another name.
    """
    try:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward
        from transformers.modeling_utils import AttentionInterface

        AttentionInterface.register(UNMASKED, sdpa_attention_forward)
        module.set_attn_implementation(UNMASKED)
    except (ImportError, AttributeError) as error:
        raise PipebenchError(
            f"this transformers cannot be told to attend without masks: {error}", "pip install -U transformers"
        ) from error
    found: nn.Module = module
    return found


def _made_source(place: str, function: str, options: dict[str, Any]) -> Source:
    """What a function makes. place: a module on the import path, or a Python file."""
    name = f"{place}:{function}"
    try:
        module = _module_in(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        make = getattr(module, function)
    except Exception as error:  # the user's module may raise anything
        what = f"{type(error).__name__}: {error}" if not isinstance(error, ImportError | AttributeError) else error
        raise PipebenchError(f"{name} cannot be imported: {what}", _remedy(place, function)) from error
    with torch.device("meta"):
        made = make(**options)
    inputs: Inputs | None = made[1] if isinstance(made, tuple) else getattr(made, "example_inputs", None)
    module = made[0] if isinstance(made, tuple) else made
    if not isinstance(module, nn.Module) or inputs is None:
        raise PipebenchError(
            f"{name} gives {type(module).__name__} without example inputs",
            "return a torch.nn.Module that has a method example_inputs(samples), or (module, function)",
        )

    def build() -> nn.Module:
        again = make(**options)
        built: nn.Module = again[0] if isinstance(again, tuple) else again
        return built

    short = Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]
    return Source(function if function != "build" else short, build, inputs)


def _module_in(file: Path) -> ModuleType:
    """The module in a file, found by its place. Its folder does not come on the import path."""
    name = f"pipebench_model_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ImportError(f"there is no file {str(file)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _remedy(place: str, function: str) -> str:
    """What to type instead. The current folder is not on the import path: a file there may be anybody's."""
    here = Path(*place.split(".")).with_suffix(".py")
    if place.endswith(".py"):
        return "what it imports beside it is found in folders named in PYTHONPATH"
    if here.is_file():
        return f"this folder is not on the import path: write ./{here}:{function}"
    return "name it package.module:function, or ./file.py:function"
