"""A captured graph made plain: regions that torch.export calls as graphs of their own are put back in their place,
assertions are dropped.
"""

from typing import Any

import torch
from torch.fx import GraphModule, Node, map_arg

from pipebench.domain.errors import PipebenchError

GRADIENTS, CASTS = "wrap_with_set_grad_enabled", "wrap_with_autocast"
"""`torch.no_grad()`: (enabled, graph, …); `torch.autocast`: (device, format, enabled, cached, graph, …)."""
ASSERTION = "_assert_tensor_metadata"


def make_plain(module: GraphModule) -> None:
    """In place. What a region without gradients makes is detached.

    Raises PipebenchError for a region that computes in a format of autocast: its nodes do not say which.
    """
    for node in list(module.graph.nodes):
        if node.op != "call_function":
            continue
        name = getattr(node.target, "__name__", str(node.target))
        if name.startswith(ASSERTION):
            module.graph.erase_node(node)
        elif name in (GRADIENTS, CASTS):
            _inline(module, node, name)


def _inline(module: GraphModule, node: Node, name: str) -> None:
    """Nodes in place of a call of a region."""
    graph = module.graph
    place = next(i for i, each in enumerate(node.args) if isinstance(each, Node) and each.op == "get_attr")
    enabled = node.args[0] if name == GRADIENTS else node.args[2]
    if name == CASTS and enabled:
        raise PipebenchError("it computes in a region of torch.autocast", "give --precision in its place")
    held: Any = node.args[place]
    inner = getattr(module, str(held.target))
    make_plain(inner)
    with graph.inserting_before(node):
        made = _copied(module, inner, node.args[place + 1 :])
        if name == GRADIENTS and not enabled:
            made = [_detached(module, each) for each in made]
    for pick in list(node.users):
        pick.replace_all_uses_with(made[pick.args[1]])
        graph.erase_node(pick)
    graph.erase_node(node)
    if not held.users:
        graph.erase_node(held)


def _copied(module: GraphModule, inner: GraphModule, arguments: tuple[Any, ...]) -> list[Any]:
    """The nodes of a region, where the graph stands; what it gives."""
    given = iter(arguments)
    known: dict[Node, Any] = {}
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            known[node] = next(given)
        elif node.op == "output":
            return list(map_arg(node.args[0], known.__getitem__))
        else:
            known[node] = module.graph.node_copy(node, known.__getitem__)
    raise AssertionError("a graph without an output")


def _detached(module: GraphModule, made: Node) -> Node:
    detached = module.graph.call_function(torch.ops.aten.detach.default, (made,))
    detached.meta = dict(made.meta)
    return detached
