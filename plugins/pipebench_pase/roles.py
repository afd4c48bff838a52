"""What each dim of a product of two operands is: shared, of the one, of the other, or summed over."""

from dataclasses import dataclass

from pipebench.domain.graph import Operator, OperatorGraph


@dataclass(frozen=True, slots=True)
class Roles:
    """PaSE, section II: the GEMM of a product. rows (m) and columns (n) span the result, `summed` (k) does not,
    `shared` dims are in both operands and the result: so many separate products.
    """

    shared: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]


def roles(graph: OperatorGraph, operator: Operator) -> Roles:
    """The first input is one operand; the second input, or all parameters, the other."""
    first = set(operator.axes[operator.inputs[0]])
    others = operator.inputs[1:] or operator.parameters
    second = {dim for name in others for dim in operator.axes[name]}
    made = graph.tensors[graph.outputs[graph.index[operator.name]][0]].name
    result = set(operator.axes[made])
    dims = ("batch", *operator.dims)
    return Roles(
        shared=tuple(d for d in dims if d in first and d in second and d in result),
        rows=tuple(d for d in dims if d in result and d not in second),
        columns=tuple(d for d in dims if d in result and d not in first),
        summed=tuple(d for d in dims if d not in result),
    )
