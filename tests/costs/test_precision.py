"""A graph at another precision."""

from pipebench.costs.shapes.rescale import in_precision
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor


def graph() -> OperatorGraph:
    return OperatorGraph(
        name="g",
        operators=(
            Operator(name="embed", kind="embedding", inputs=("ids",), parameters=("table",)),
            Operator(name="head", kind="linear", inputs=("hidden",)),
        ),
        tensors=(
            Tensor(name="ids", forward_bytes_per_sample=8.0, gradient_bytes_per_sample=0.0),
            Tensor(
                name="hidden",
                producer="embed",
                forward_bytes_per_sample=100.0,
                gradient_bytes_per_sample=60.0,
                fixed_bytes=12,
            ),
        ),
        parameters=(Parameter(name="table", bytes=400),),
    )


def test_half_precision_halves_floats_and_keeps_ids() -> None:
    half = in_precision(graph(), "bf16")
    assert half.parameter_bytes == {"table": 200}
    sizes = [(t.forward_bytes_per_sample, t.gradient_bytes_per_sample, t.fixed_bytes) for t in half.tensors]
    assert sizes == [(8.0, 0.0, 0), (50.0, 30.0, 6)]


def test_fp32_is_what_models_describe() -> None:
    assert in_precision(graph(), "fp32") == graph()
