"""The kit's problems with operators that can be computed: an executor of real tensors runs them, too."""

from msgspec.structs import replace

from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Problem

FEATURES = 16
INPUT = "x"
OUT, IN = "out_features", "in_features"
BYTES = 4.0 * FEATURES


def computable(problem: Problem) -> Problem:
    """The same operators, edges and times, as layers of 16 features: `linear`, `add` where tensors meet."""
    graph = problem.profile.graph
    producer = {tensor.name: tensor.producer for tensor in graph.tensors}
    operators = [_operator(op.name, [f"{producer[name]}.out" for name in op.inputs]) for op in graph.operators]
    made = [
        Tensor(
            name=f"{op.name}.out",
            producer=op.name,
            forward_bytes_per_sample=BYTES,
            gradient_bytes_per_sample=BYTES,
        )
        for op in operators
    ]
    weights = [Parameter(name=name, bytes=4 * FEATURES**2) for op in operators for name in op.parameters]
    image = OperatorGraph(
        name=graph.name,
        operators=tuple(operators),
        tensors=(Tensor(name=INPUT, forward_bytes_per_sample=BYTES, gradient_bytes_per_sample=0.0), *made),
        parameters=tuple(weights),
    )
    return replace(problem, profile=replace(problem.profile, graph=image))


def _operator(name: str, inputs: list[str]) -> Operator:
    written = f"{name}.out"
    if len(inputs) > 1:
        axes: dict[str, tuple[str, ...]] = dict.fromkeys((*inputs, written), ("batch", "features"))
        return Operator(name=name, kind="add", dims={"features": FEATURES}, axes=axes, inputs=tuple(inputs))
    weight = f"{name}.weight"
    (read,) = inputs or [INPUT]
    return Operator(
        name=name,
        kind="linear",
        dims={IN: FEATURES, OUT: FEATURES},
        axes={read: ("batch", IN), weight: (OUT, IN), written: ("batch", OUT)},
        inputs=(read,),
        parameters=(weight,),
    )
