"""An operator graph as a networkx graph: nothing is lost."""

import networkx as nx
from hypothesis import given

from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Problem
from tests.algorithms.strategies import dags


def test_operators_are_nodes_and_tensors_are_edges() -> None:
    graph = OperatorGraph(
        name="small",
        operators=(
            Operator(name="embed", kind="embedding", dims={"d": 4}, inputs=("ids",), parameters=("table",)),
            Operator(name="head", kind="linear", inputs=("x", "y"), parameters=("table",), layer=1),
        ),
        tensors=(
            Tensor(name="ids", forward_bytes_per_sample=8.0, gradient_bytes_per_sample=0.0),
            Tensor(name="x", producer="embed", forward_bytes_per_sample=4.0, gradient_bytes_per_sample=2.0),
            Tensor(
                name="y",
                producer="embed",
                forward_bytes_per_sample=1.0,
                gradient_bytes_per_sample=1.0,
                fixed_bytes=3,
            ),
            Tensor(name="loss", producer="head", forward_bytes_per_sample=4.0, gradient_bytes_per_sample=4.0),
        ),
        parameters=(Parameter(name="table", bytes=100),),
    )
    made = graph.to_networkx()
    assert list(made) == ["embed", "head"]
    assert made.nodes["embed"]["dims"] == {"d": 4}
    assert (
        made.nodes["head"] | {"position": 1, "layer": 1, "kind": "linear", "parameters": ("table",)}
        == (made.nodes["head"])
    )
    assert {(tail, head, name) for tail, head, name in made.edges} == {
        ("embed", "head", "x"),
        ("embed", "head", "y"),
    }
    assert made.edges["embed", "head", "y"] == {
        "forward_bytes_per_sample": 1.0,
        "gradient_bytes_per_sample": 1.0,
        "fixed_bytes": 3,
    }
    assert made.graph == {"name": "small", "inputs": {"ids": ["embed"]}, "parameters": {"table": 100}}


@given(dags())
def test_it_has_the_same_neighbours_and_fields(problem: Problem) -> None:
    graph = problem.profile.graph
    made = graph.to_networkx()
    names = [op.name for op in graph.operators]
    assert list(made) == names
    for position, op in enumerate(graph.operators):
        fields = dict(made.nodes[op.name])
        assert fields.pop("position") == position
        assert Operator(name=op.name, **fields) == op
        assert {names.index(after) for after in made.successors(op.name)} == set(graph.successors[position])
    assert nx.is_directed_acyclic_graph(made)
    place = {op.name: at for at, op in enumerate(graph.operators)}
    order = nx.lexicographical_topological_sort(made, key=place.__getitem__)
    assert tuple(place[name] for name in order) == graph.topological
    for tail, head, name in made.edges:
        tensor = graph.tensors[graph.tensor_index[name]]
        assert tensor == Tensor(name=name, producer=tail, **made.edges[tail, head, name])
        assert name in graph.operators[place[head]].inputs
    assert made.number_of_edges() == sum(
        len(readers) for tensor, readers in zip(graph.tensors, graph.consumers, strict=True) if tensor.producer
    )
