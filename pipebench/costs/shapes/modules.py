"""The modules of a layer that a framework can run again by themselves."""

from collections.abc import Collection

from pipebench.costs.shapes.transformer import LayerShape
from pipebench.domain.framework import RecomputeModule

WITHIN_EXPERTS: tuple[RecomputeModule, ...] = ("moe_act", "shared_experts")
"""Modules that are parts of `moe`."""


def modules_of(layer: LayerShape) -> tuple[RecomputeModule, ...]:
    """Those that the layer has (`RecomputeModule`).

    A norm before a product of full rank is a part of that product (Transformer Engine); those before latent
    attention and before experts are not (Megatron-LM, gpt_layer_specs.py).
    """
    experts, latent = layer.experts > 1, layer.latent is not None
    found: dict[RecomputeModule, bool] = {
        "core_attn": layer.heads > 0,
        "moe_act": experts,
        "layernorm": experts or latent,
        "mla_up_proj": latent,
        "mlp": layer.ffn > 0 and not experts,
        "moe": experts,
        "shared_experts": layer.shared_ffn > 0,
    }
    return tuple(name for name, has in found.items() if has)


def norms_apart(layer: LayerShape) -> int:
    """Norms over the width that are no part of a product."""
    return (layer.latent is not None) + (layer.experts > 1)


def repeats(layer: LayerShape, modules: Collection[RecomputeModule]) -> tuple[RecomputeModule, ...]:
    """Of the modules those that the layer has."""
    return tuple(name for name in modules_of(layer) if name in modules)
