"""Operators of Transformers. Activations are (sequence, features)."""

from collections.abc import Sequence

from pipebench_models.graph_builder import Activation, GraphBuilder

TOKENS = ("sequence", "features")


def attention(graph: GraphBuilder, name: str, x: Activation, heads: int) -> Activation:
    """Multi-head self-attention with its four projections, without bias (Vaswani et al. 2017, section 3.2.2).

    One operator: `keys` are the positions attended to, `head` the width of one head.
    """
    sequence, features = x.shape
    inward = ("heads", "head", "in_features")
    return graph.operator(
        name,
        "attention",
        {
            "sequence": sequence,
            "keys": sequence,
            "heads": heads,
            "head": features // heads,
            "in_features": features,
            "out_features": features,
        },
        {x: ("sequence", "in_features")},
        ("sequence", "out_features"),
        parameters={
            "query": inward,
            "key": inward,
            "value": inward,
            "output": ("out_features", "heads", "head"),
        },
    )


def layer_norm(graph: GraphBuilder, name: str, x: Activation) -> Activation:
    """Normalises each token; scale and shift are parameters."""
    dims = dict(zip(TOKENS, x.shape, strict=True))
    scale_and_shift = {"weight": ("features",), "bias": ("features",)}
    return graph.operator(name, "layer_norm", dims, {x: TOKENS}, TOKENS, parameters=scale_and_shift)


def concat_features(graph: GraphBuilder, name: str, parts: Sequence[Activation]) -> Activation:
    """Join sequences of one length feature by feature. Parts have one width, so all span the `features` axis."""
    sequence, features = parts[0].shape
    dims = {"parts": len(parts), "sequence": sequence, "features": features}
    return graph.operator(
        name,
        "concat",
        dims,
        dict.fromkeys(parts, TOKENS),
        ("sequence", "parts", "features"),
        shape=(sequence, len(parts) * features),
    )
