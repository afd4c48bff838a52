"""A module as a graph of operators: captured by torch.export, made plain, nodes grouped by module."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node, map_arg

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Parameter
from pipebench.domain.graph import Tensor as GraphTensor
from pipebench_torch.modules.catalog import Source

GRADIENTS, CASTS = "wrap_with_set_grad_enabled", "wrap_with_autocast"
"""`torch.no_grad()`: (enabled, graph, …); `torch.autocast`: (device, format, enabled, cached, graph, …)."""
ASSERTION = "_assert_tensor_metadata"
OFF = "pipebench: without gradients"


def make_plain(module: GraphModule) -> None:
    """Put the nodes of nested regions into the graph, in place. Nodes of a region without gradients are marked.

    Raises PipebenchError for a region that computes in an autocast format, which its nodes do not say. Raises it
    too for a region without gradients that changes a tensor in place, because the tensor's history would be lost.
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
    """Replace a call of a region by its nodes."""
    graph = module.graph
    place = next(i for i, each in enumerate(node.args) if isinstance(each, Node) and each.op == "get_attr")
    enabled = node.args[0] if name == GRADIENTS else node.args[2]
    if name == CASTS and enabled:
        raise PipebenchError("it computes in a region of torch.autocast", "give --precision in its place")
    held: Any = node.args[place]
    inner = getattr(module, str(held.target))
    make_plain(inner)
    with graph.inserting_before(node):
        made = _copy_region(module, inner, node.args[place + 1 :], not enabled if name == GRADIENTS else None)
    for pick in list(node.users):
        pick.replace_all_uses_with(made[pick.args[1]])
        graph.erase_node(pick)
    graph.erase_node(node)
    if not held.users:
        graph.erase_node(held)


def without_gradients(node: Node) -> bool:
    """Whether autograd is off where the node is."""
    return bool(node.meta.get(OFF))


def _copy_region(
    module: GraphModule, inner: GraphModule, arguments: tuple[Any, ...], off: bool | None
) -> list[Any]:
    """Copy the nodes of a region to the current place in the graph. Returns the region's outputs.

    off: whether gradients are off; None: as around the region. A region inside decides for itself.
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


Group = Literal["node", "module"]


@dataclass(frozen=True)
class CapturedProgram:
    """The program of torch.export for one number of samples.

    parameters, buffers, inputs: name of each placeholder.
    """

    samples: int
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    parameters: dict[str, str]
    constants: dict[str, str]
    inputs: tuple[str, ...]
    exported: Any


def export(source: Source, samples: int, dtype: torch.dtype) -> CapturedProgram:
    """The program for this number of samples, with parameters and inputs in one number format.

    Raises PipebenchError when torch.export cannot capture the module.
    """
    with torch.device("meta"):
        module = source.build().train()
        in_format(module, dtype)
        turn_dropout_off(module)
        given: object = source.inputs(samples)
        if not isinstance(given, dict):
            raise PipebenchError(
                f"{source.name}: its example inputs are a {type(given).__name__}, not a dict",
                "give each argument of forward by its name: {'x': torch.zeros(samples, 64)}",
            )
        inputs = {name: _as(value, dtype) for name, value in given.items()}
    owner = tied_parameters(module)
    try:
        exported = torch.export.export(module, (), inputs, strict=False)
        make_plain(exported.graph_module)
    except PipebenchError:
        raise
    except Exception as error:  # torch.export raises errors of many kinds
        first = str(error).strip().splitlines()[:1]
        raise PipebenchError(f"{source.name}: torch.export cannot capture it: {' '.join(first)[:200]}") from error
    signature = exported.graph_signature
    constants = dict(signature.inputs_to_buffers) | dict(signature.inputs_to_lifted_tensor_constants)
    return CapturedProgram(
        samples=samples,
        nodes=tuple(exported.graph.nodes),
        outputs=_outputs(exported),
        parameters={place: owner.get(name, name) for place, name in signature.inputs_to_parameters.items()},
        constants=constants,
        inputs=tuple(str(each) for each in signature.user_inputs),
        exported=exported,
    )


def _as(value: Any, dtype: torch.dtype) -> Any:
    """A tensor of real numbers in the format; anything else unchanged."""
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def in_format(module: nn.Module, dtype: torch.dtype) -> None:
    """Convert the real numbers of a module to the format. Complex numbers and integers stay."""
    module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def _outputs(exported: Any) -> tuple[str, ...]:
    """The nodes that the graph gives as the model's outputs."""
    given = next(node for node in exported.graph.nodes if node.op == "output").args[0]
    kinds = [spec.kind.name for spec in exported.graph_signature.output_specs]
    return tuple(
        node.name
        for node, kind in zip(given, kinds, strict=True)
        if kind == "USER_OUTPUT" and isinstance(node, Node)
    )


def tied_parameters(module: nn.Module) -> dict[str, str]:
    """The first name of each parameter, by name: an embedding and a head may share a table."""
    first: dict[int, str] = {}
    names = list(module.named_parameters(remove_duplicate=False))
    return {name: first.setdefault(id(parameter), name) for name, parameter in names}


def turn_dropout_off(module: nn.Module) -> None:
    """Turn dropout off, so that two runs give the same."""
    for each in module.modules():
        if isinstance(each, nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d):
            each.p = 0.0


def computing_nodes(program: CapturedProgram) -> list[Node]:
    """The nodes that compute something, in order."""
    return [node for node in program.nodes if node.op == "call_function"]


def group_nodes(program: CapturedProgram, group: Group, depth: int) -> list[list[Node]]:
    """Groups of nodes: runs in the order of the graph, so that the groups have no cycle.

    `node`: each node is a group, together with nodes that pick results from its tuple. `module`: the nodes of one
    call of a module, to `depth` levels (0: the innermost).
    """
    found: list[list[Node]] = []
    last: object = None
    for node in computing_nodes(program):
        key: object = node.name if group == "node" else module_path(node, depth)
        if found and (key == last or _picks(node)):
            found[-1].append(node)
            continue
        found.append([node])
        last = key
    return found


def _picks(node: Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def module_path(node: Node, depth: int = 0) -> str:
    """The module that a node came from, to so many levels."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return ".".join(path.split(".")[:depth]) if depth else path


def graph_of(
    source: Source, small: CapturedProgram, large: CapturedProgram, group: Group, depth: int
) -> OperatorGraph:
    """The operator graph; bytes of a sample and fixed bytes from two sizes.

    Nodes that depend on no input (masks, positions) are constant. Raises PipebenchError when the two programs
    differ in more than sizes.
    """
    if [node.name for node in small.nodes] != [node.name for node in large.nodes]:
        raise PipebenchError(f"{source.name}: its graph depends on the number of samples")
    groups = group_nodes(small, group, depth)
    home = {node.name: position for position, nodes in enumerate(groups) for node in nodes}
    names = _names(groups, group)
    sizes = {node.name: node for node in large.nodes}
    dynamic = _dynamic(small)
    constant = [not any(node.name in dynamic for node in nodes) for nodes in groups]
    crossing = _crossing(small, home)
    tensors = []
    for node in small.nodes:
        if node.name in crossing:
            producer = names[home[node.name]] if node.name in home else None
            tensors.append(_tensor(node, sizes[node.name], producer, (small.samples, large.samples)))
    operators = []
    for position, nodes in enumerate(groups):
        used = dict.fromkeys(read.name for node in nodes for read in node.all_input_nodes)
        path = module_path(nodes[0], depth)
        operators.append(
            Operator(
                name=names[position],
                kind=_kind(nodes, small.parameters),
                inputs=tuple(name for name in used if name in crossing and home.get(name, -1) != position),
                parameters=tuple(
                    dict.fromkeys(small.parameters[name] for name in used if name in small.parameters)
                ),
                layer=_layer(path),
                path=path,
                constant=constant[position],
            )
        )
    held = {name: _bytes(node.meta["val"]) for node in small.nodes if (name := small.parameters.get(node.name))}
    return OperatorGraph(
        name=source.name,
        operators=tuple(operators),
        tensors=tuple(tensors),
        parameters=tuple(Parameter(name=name, bytes=size) for name, size in held.items()),
    )


def _names(groups: Sequence[Sequence[Node]], group: Group) -> list[str]:
    if group == "node":
        return [nodes[0].name for nodes in groups]
    count: dict[str, int] = {}
    found = []
    for nodes in groups:
        name = module_path(nodes[0]) or nodes[0].name
        count[name] = count.get(name, 0) + 1
        found.append(name if count[name] == 1 else f"{name}#{count[name]}")
    return found


def _dynamic(program: CapturedProgram) -> set[str]:
    """Nodes that depend on an input of the model or on a parameter."""
    found = set(program.inputs) | set(program.parameters)
    for node in program.nodes:
        if any(read.name in found for read in node.all_input_nodes):
            found.add(node.name)
    return found


def _crossing(program: CapturedProgram, home: dict[str, int]) -> set[str]:
    """Names of tensors that one group makes and another reads, of the model's inputs and its outputs."""
    found = {name for name in program.inputs if _is_tensor(program, name)}
    by_name = {node.name: node for node in program.nodes}
    for node in computing_nodes(program):
        for read in node.all_input_nodes:
            if read.name in home and home[read.name] != home[node.name]:
                found.add(read.name)
    return found | {
        name for name in program.outputs if name in home and isinstance(by_name[name].meta["val"], Tensor)
    }


def _is_tensor(program: CapturedProgram, name: str) -> bool:
    node = next(node for node in program.nodes if node.name == name)
    return isinstance(node.meta.get("val"), Tensor) and len(node.users) > 0


def _tensor(node: Node, larger: Node, producer: str | None, sizes: tuple[int, int]) -> GraphTensor:
    first, second = _bytes(node.meta["val"]), _bytes(larger.meta["val"])
    each = max(0.0, (second - first) / (sizes[1] - sizes[0]))
    learns = producer is not None and node.meta["val"].dtype.is_floating_point and not without_gradients(node)
    return GraphTensor(
        name=node.name,
        producer=producer,
        forward_bytes_per_sample=each,
        gradient_bytes_per_sample=each if learns else 0.0,
        fixed_bytes=max(0, round(first - each * sizes[0])),
    )


def _bytes(value: Any) -> int:
    parts = value if isinstance(value, tuple | list) else (value,)
    return sum(part.numel() * part.element_size() for part in parts if isinstance(part, Tensor))


def _kind(nodes: Sequence[Node], parameters: dict[str, str]) -> str:
    """The name of the call that reads a parameter, else of the first."""
    best = next((node for node in nodes if any(r.name in parameters for r in node.all_input_nodes)), nodes[0])
    name = getattr(best.target, "__name__", str(best.target))
    return name.split(".")[0].rstrip("_") or "op"


def _layer(path: str) -> int | None:
    """The first number in a path of modules."""
    return next((int(part) for part in path.split(".") if part.isdigit()), None)
