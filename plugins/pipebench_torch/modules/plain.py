"""A captured graph made plain: regions that torch.export calls as graphs of their own are put back in their place,
assertions are dropped.
"""

from typing import Any

from torch.fx import GraphModule, Node, map_arg

from pipebench.domain.errors import PipebenchError

GRADIENTS, CASTS = "wrap_with_set_grad_enabled", "wrap_with_autocast"
"""`torch.no_grad()`: (enabled, graph, …); `torch.autocast`: (device, format, enabled, cached, graph, …)."""
ASSERTION = "_assert_tensor_metadata"
OFF = "pipebench: without gradients"


def make_plain(module: GraphModule) -> None:
    """In place. Nodes of a region without gradients are marked so.

    Raises PipebenchError for a region that computes in a format of autocast, which its nodes do not say, and for
    one without gradients that changes a tensor in place, whose history would be lost.
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
        made = _copied(module, inner, node.args[place + 1 :], not enabled if name == GRADIENTS else None)
    for pick in list(node.users):
        pick.replace_all_uses_with(made[pick.args[1]])
        graph.erase_node(pick)
    graph.erase_node(node)
    if not held.users:
        graph.erase_node(held)


def without_gradients(node: Node) -> bool:
    """Whether autograd is off where the node is."""
    return bool(node.meta.get(OFF))


def _copied(module: GraphModule, inner: GraphModule, arguments: tuple[Any, ...], off: bool | None) -> list[Any]:
    """The nodes of a region, where the graph stands; what it gives. off: without gradients (None: as around it); a
    region inside has decided for itself.
    """
    given = iter(arguments)
    known: dict[Node, Any] = {}
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            known[node] = next(given)
        elif node.op == "output":
            return list(map_arg(node.args[0], known.__getitem__))
        else:
            made = known[node] = module.graph.node_copy(node, known.__getitem__)
            if off is not None:
                made.meta.setdefault(OFF, off)
            if off:
                _refuse_changes(made, arguments)
    raise AssertionError("a graph without an output")


def _refuse_changes(node: Node, given: tuple[Any, ...]) -> None:
    schema = getattr(node.target, "_schema", None)
    changed = node.args[0] if schema is not None and schema.is_mutable and node.args else None
    if isinstance(changed, Node) and changed.op == "call_function" and changed in given:
        raise PipebenchError(
            f"{node.name!r} changes a tensor in place under torch.no_grad()", "make a new tensor of it"
        )
