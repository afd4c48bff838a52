"""Recomputation: the words for it, and which way to run an operator each of them asks for.

none: the backward finds what the forward kept.
selective: each layer keeps everything but what the core of its attention makes, which runs again (Korthikanti et
al. 2022, section 5). Priced with torchtitan it is what that calls so: the results of attention and of every second
product are kept.
full: each layer keeps its input alone and runs again as a whole, as Megatron-LM's full recomputation of one layer.
stage: each stage keeps its inputs alone and runs again as a whole.

`Stage.recompute` says that a stage runs again as a whole. A layer is an operator that has a `layer`; the
alternative that its stage chooses says that it runs again. Operators of no layer (embedding, head) may run in any
way.
"""

from collections.abc import Sequence
from typing import Literal

from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import Alternative, DeviceCosts

Recompute = Literal["none", "stage"]
"""Of a stage as a whole."""
LayerRecompute = Literal["selective", "full"]
"""Of each layer."""
RecomputePin = Literal["none", "selective", "full", "stage"]
Repeated = Literal["none", "selective", "full"]
"""What of an operator's forward runs again: nothing, attention's core, all."""
_LACKING = {"full": "runs all of it again", "selective": "runs the core of its attention again"}
_REMEDY = {
    "full": "give it one, as commands do (pipebench.algorithms.blocks.layer_profile), or pin stage",
    "selective": "profile a language model anew with --selective, or pin full or stage",
}


def of_layers(pin: RecomputePin | None) -> LayerRecompute | None:
    """The pin where it is about layers."""
    match pin:
        case "selective" | "full":
            return pin
        case _:
            return None


def of_stages(pin: RecomputePin | None) -> Recompute:
    """What `Stage.recompute` is where nothing else makes the stage honour the pin."""
    return "stage" if pin == "stage" else "none"


def repeated(way: Alternative | None) -> Repeated:
    """What runs again under this way to run an operator. None: the plain one."""
    if way is None or not way.recompute:
        return "none"
    return "selective" if way.selective else "full"


def permits(pin: RecomputePin | None, operator: Operator, way: Alternative | None) -> bool:
    """Whether the pin lets the operator run so, in a stage that does not recompute as a whole.

    stage: every operator runs again. none: no operator does. full, selective: every layer does.
    """
    if pin is None:
        return True
    if layers := of_layers(pin):
        return operator.layer is None or repeated(way) == layers
    return repeated(way) == ("full" if pin == "stage" else "none")


def require_offered(
    pin: RecomputePin | None, graph: OperatorGraph, costs: Sequence[DeviceCosts], name: str
) -> None:
    """Raise InvalidValue where the pin is about layers and the profile has no way to run them so.

    costs: on each device type that counts. name: of the profile.
    """
    layers = of_layers(pin)
    if layers is None:
        return
    what = f"recompute is pinned to {layers}, "
    first: dict[int, str] = {}
    for operator in graph.operators:
        if operator.layer is not None and first.setdefault(operator.layer, operator.name) != operator.name:
            raise InvalidValue(
                f"{what}layer {operator.layer} of profile {name!r} is not one operator: {first[operator.layer]!r} "
                f"and {operator.name!r} belong to it",
                "join its operators, as commands do (pipebench.algorithms.blocks.layer_profile), or pin stage",
                field="recompute",
            )
    if not first:
        raise InvalidValue(f"{what}profile {name!r} has no layers", "pin stage", field="recompute")
    for each in costs:
        for operator, offered in zip(graph.operators, each.operators, strict=True):
            if not any(permits(layers, operator, way) for way in (None, *offered.alternatives)):
                raise InvalidValue(
                    f"{what}{operator.name!r} of profile {name!r} has no alternative that {_LACKING[layers]}",
                    _REMEDY[layers],
                    field="recompute",
                )
