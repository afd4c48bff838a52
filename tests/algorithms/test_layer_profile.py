"""Layers of several operators as one that recomputes: small figures by hand, and BERT against closed forms."""

import pytest
from msgspec.structs import replace

from pipebench.algorithms.blocks.layer_profile import JOINED, with_layers
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench.domain.recomputation import LayerRecompute
from pipebench.testing.cases import DEVICE, cluster
from tests.analytic.profiling import costs_of, run
from tests.models.zoo import model

NS = 1e-9


def small(layer_of_last: int | None = 0) -> Profile:
    """in -> a -> (b, c) -> d -> head; a to d are layer 0. Forward 1, 2, 3, 4, 5 ns; saved 10, 20, 30, 40, 50."""
    reads = {"a": ("x",), "b": ("ta",), "c": ("ta",), "d": ("tb", "tc", "x"), "head": ("td",)}
    names = tuple(reads)
    sizes = {"x": 7.0, "ta": 11.0, "tb": 13.0, "tc": 17.0, "td": 19.0}
    graph = OperatorGraph(
        name="small",
        operators=tuple(
            Operator(
                name=name,
                kind="matmul",
                inputs=read,
                parameters=(f"w{name}",),
                layer={"head": None, "d": layer_of_last}.get(name, 0),
            )
            for name, read in reads.items()
        ),
        tensors=tuple(
            Tensor(
                name=name,
                producer=None if name == "x" else name[1:],
                forward_bytes_per_sample=size,
                gradient_bytes_per_sample=size,
            )
            for name, size in sizes.items()
        ),
        parameters=tuple(Parameter(name=f"w{name}", bytes=4 * place + 4) for place, name in enumerate(names)),
    )
    operators = tuple(
        OperatorCosts(
            operator=name,
            forward_s=((place + 1) * NS, 2 * (place + 1) * NS),
            backward_s=(2 * (place + 1) * NS, 4 * (place + 1) * NS),
            weight_gradient_s=((place + 1) * NS, 2 * (place + 1) * NS),
            saved_bytes_per_sample=10.0 * (place + 1),
            workspace_bytes=100 - place,
            alternatives=(halved(place),) if name in ("b", "c") else (),
        )
        for place, name in enumerate(names)
    )
    costs = DeviceCosts(device_type=DEVICE, micro_batches=(1, 2), operators=operators)
    return Profile(name="small", graph=graph, costs=(costs,))


def halved(place: int) -> Alternative:
    times = ((place + 1) * NS, (place + 1) * NS)
    return Alternative(
        id="tp2",
        tensor_parallel=2,
        forward_s=times,
        backward_s=times,
        parameter_bytes=2 * place + 2,
        saved_bytes_per_sample=5.0 * (place + 1),
    )


def ns(seconds: tuple[float, ...]) -> list[int]:
    return [round(each / NS) for each in seconds]


def test_a_layer_keeps_what_enters_it_and_runs_again() -> None:
    made = with_layers(small(), "full")
    assert [operator.name for operator in made.graph.operators] == ["layer 0", "head"]
    assert made.graph.operators[0].inputs == ("x",)
    assert made.graph.operators[0].parameters == ("wa", "wb", "wc", "wd")
    assert {tensor.name for tensor in made.graph.tensors} == {"x", "td"}
    assert made.provenance.notes == (JOINED,)
    layer, head = made.costs[0].operators
    assert head == small().costs[0].operators[-1]
    assert (ns(layer.forward_s), ns(layer.backward_s), ns(layer.weight_gradient_s)) == (
        [10, 20],
        [20, 40],
        [10, 20],
    )
    assert (layer.saved_bytes_per_sample, layer.workspace_bytes) == (100.0, 100)
    again = layer.alternative("recompute")
    assert (again.recompute, again.selective, again.tensor_parallel) == (True, False, 1)
    assert (ns(again.forward_s), ns(again.backward_s)) == ([10, 20], [30, 60])
    assert (again.saved_bytes_per_sample, again.transient_bytes_per_sample) == (7.0, 93.0)
    assert again.parameter_bytes == 4 + 8 + 12 + 16


def test_a_split_layer_keeps_whole_inputs_and_operators_that_cannot_be_split_run_whole() -> None:
    layer = with_layers(small(), "full").costs[0].operators[0]
    plain, again = layer.alternative("tp2"), layer.alternative("tp2-recompute")
    assert (plain.tensor_parallel, again.tensor_parallel) == (2, 2)
    assert ns(plain.forward_s) == [1 + 2 + 3 + 4, 2 + 2 + 3 + 8]
    assert plain.saved_bytes_per_sample == 10 + 10 + 15 + 40
    assert plain.parameter_bytes == 4 + 4 + 6 + 16
    assert (again.saved_bytes_per_sample, again.transient_bytes_per_sample) == (7.0, 68.0)
    assert ns(again.backward_s) == [sum((2, 2, 3, 8)) + 10, sum((4, 2, 3, 16)) + 15]


def test_collectives_of_the_forward_run_again_with_it() -> None:
    """As the profiler of language models counts them: those of the backward, and again those of the forward."""
    given = small()
    operators = tuple(
        replace(each, alternatives=tuple(map(with_collectives, each.alternatives)))
        for each in given.costs[0].operators
    )
    layer = with_layers(replace(given, costs=(replace(given.costs[0], operators=operators),)), "full")
    plain, again = (layer.costs[0].operators[0].alternative(name) for name in ("tp2", "tp2-recompute"))
    assert (ns(plain.forward_collective_s), ns(plain.backward_collective_s)) == ([2, 4], [4, 2])
    assert (ns(again.forward_collective_s), ns(again.backward_collective_s)) == ([2, 4], [6, 6])


def with_collectives(way: Alternative) -> Alternative:
    return replace(way, forward_collective_s=(1 * NS, 2 * NS), backward_collective_s=(2 * NS, 1 * NS))


def test_no_core_no_selective_way() -> None:
    assert [each.id for each in with_layers(small(), "selective").costs[0].operators[0].alternatives] == ["tp2"]


def test_what_comes_back_to_a_layer_cannot_be_joined() -> None:
    back = small(layer_of_last=None)
    operators = tuple(
        replace(
            each, layer=1 if each.name in ("b", "c") else 0 if each.layer is not None or each.name == "d" else None
        )
        for each in back.graph.operators
    )
    profile = replace(back, graph=replace(back.graph, operators=operators))
    with pytest.raises(InvalidValue, match="layers of profile 'small' cannot recompute one by one"):
        with_layers(profile, "full")


def test_layers_of_one_operator_get_the_way_that_they_lack_and_no_other() -> None:
    given = small()
    alone = replace(
        given,
        graph=replace(
            given.graph,
            operators=tuple(replace(each, layer=place) for place, each in enumerate(given.graph.operators)),
        ),
    )
    made = with_layers(alone, "full")
    assert made.graph == alone.graph
    assert [each.id for each in made.costs[0].operators[1].alternatives] == ["tp2", "recompute", "tp2-recompute"]
    assert with_layers(made, "full") is made
    assert with_layers(made, "selective") == made


HIDDEN, HEADS, SEQUENCE, LAYERS = 64, 4, 32, 3
MASK_BYTES = 4 * SEQUENCE
"""Attention's mask enters every layer."""


def bert(recompute: LayerRecompute) -> tuple[Profile, Profile]:
    plain = run(
        model("bert", layers=LAYERS, hidden=HIDDEN, heads=HEADS, sequence=SEQUENCE),
        (1, 2, 4),
        max_tensor_parallel=2,
    )
    return plain, with_layers(plain, recompute)


def test_bert_by_layer_keeps_the_hidden_state() -> None:
    """Korthikanti et al. 2022, section 5: full recomputation keeps the input of each layer, s b h elements."""
    plain, made = bert("full")
    inside = [each for each in plain.graph.operators if each.layer == 1]
    layer = costs_of(made, "layer 1")
    for name, degree in (("recompute", 1), ("tp2-recompute", 2)):
        again = layer.alternative(name)
        assert again.saved_bytes_per_sample == 4 * SEQUENCE * HIDDEN + MASK_BYTES
        assert again.tensor_parallel == degree
    kept = sum(costs_of(plain, each.name).saved_bytes_per_sample for each in inside)
    assert layer.saved_bytes_per_sample == pytest.approx(kept)
    again = layer.alternative("recompute")
    assert again.saved_bytes_per_sample + again.transient_bytes_per_sample == pytest.approx(kept)
    for size in range(3):
        forward = sum(round(costs_of(plain, each.name).forward_s[size] / NS) for each in inside)
        backward = sum(round(costs_of(plain, each.name).backward_s[size] / NS) for each in inside)
        assert (ns(layer.forward_s)[size], ns(layer.backward_s)[size]) == (forward, backward)
        assert ns(again.backward_s)[size] == forward + backward


def test_bert_selectively_keeps_all_but_scores() -> None:
    """The core holds softmax (4 bytes), its dropout's mask (1) and result (4) of a s^2 scores."""
    plain, made = bert("selective")
    scores = HEADS * SEQUENCE**2
    layer = costs_of(made, "layer 1")
    again = layer.alternative("selective")
    assert (again.recompute, again.selective) == (True, True)
    assert again.transient_bytes_per_sample == pytest.approx(9 * scores - MASK_BYTES)
    assert layer.saved_bytes_per_sample == pytest.approx(again.saved_bytes_per_sample + 9 * scores - MASK_BYTES)
    split, half = layer.alternative("tp2"), layer.alternative("tp2-selective")
    assert half.transient_bytes_per_sample == pytest.approx((9 * scores - MASK_BYTES) / 2)
    assert half.saved_bytes_per_sample == pytest.approx(
        split.saved_bytes_per_sample - half.transient_bytes_per_sample
    )
    core = [
        each.name for each in plain.graph.operators if each.layer == 1 and {"heads", "keys"} <= each.dims.keys()
    ]
    assert [name.rpartition(".")[2] for name in core] == [
        "scores", "scaled", "masked", "softmax", "dropout", "context",
    ]  # fmt: skip
    repeated = sum(round(costs_of(plain, name).forward_s[2] / NS) for name in core)
    assert ns(again.backward_s)[2] - ns(layer.backward_s)[2] == repeated


def test_memory_of_a_stage_that_recomputes_by_layer() -> None:
    """A live micro-batch: the inputs of layers and what lies around them. Once: all that one layer saves."""
    plain, made = bert("full")
    samples = 2
    on = Problem(
        profile=replace(made, costs=(replace(made.costs[0], device_type=DEVICE),)),
        cluster=cluster(1),
        mini_batch=4,
        regime=Regime(mode="sync", optimizer="adam"),
        pins=Pins(recompute="full"),
    )
    names = tuple(on.profile.graph.operators[op].name for op in on.profile.graph.topological)
    choice = tuple("recompute" if name.startswith("layer ") else "" for name in names)
    plan = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=samples, choice=choice),))
    memory = CostModel(on).stage_memory(plan, 0, [])
    around = sum(
        costs_of(plain, each.name).saved_bytes_per_sample for each in plain.graph.operators if each.layer is None
    )
    kept = LAYERS * (4 * SEQUENCE * HIDDEN + MASK_BYTES)
    layer = costs_of(made, "layer 0").saved_bytes_per_sample
    assert memory.per_micro_batch == pytest.approx(samples * (around + kept), abs=20)
    assert memory.while_live == pytest.approx(samples * (layer - kept / LAYERS), abs=20)
    assert memory.held == 16 / 4 * sum(each.bytes for each in plain.graph.parameters)
