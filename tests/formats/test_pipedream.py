"""What a graph.txt becomes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from tests.formats.graph_txt import DIAMOND, IMAGES, node, read_text


def saved(profile: Profile) -> dict[str, float]:
    return {costs.operator: costs.saved_bytes_per_sample for costs in profile.costs[0].operators}


def test_units_are_seconds_and_bytes_a_sample() -> None:
    profile = read_text(DIAMOND)
    assert profile.name == "net"
    (costs,) = profile.costs
    assert (costs.device_type, costs.micro_batches) == ("profiled-gpu", (2,))
    assert [(c.operator, c.forward_s, c.backward_s) for c in costs.operators] == [
        ("node2", (2e-3,), (4e-3,)),
        ("node3", (3.5e-3,), (7e-3,)),
        ("node4", (0.25e-3,), (0.5e-3,)),
        ("node5", (1e-3,), (2e-3,)),
    ]
    graph = profile.graph
    assert sum(graph.parameter_bytes.values()) == 64 + 32 + 128
    assert [op.kind for op in graph.operators] == ["conv2d", "conv2d", "add", "linear"]
    sizes = {t.name: (t.forward_bytes_per_sample, t.gradient_bytes_per_sample) for t in graph.tensors}
    assert sizes["node2.out"] == (400, 400)
    assert sizes["node1.out"] == (IMAGES / 2, 0)


def test_the_input_is_no_operator_but_a_tensor_that_is_read() -> None:
    graph = read_text(DIAMOND).graph
    assert "node1" not in graph.index
    assert graph.tensors[graph.tensor_index["node1.out"]].producer is None
    assert graph.operators[graph.index["node2"]].inputs == ("node1.out",)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Single-tensor cuts lie behind node2 and node4: layers {2}, {3, 4}, {5}.
        ("boundary", {"node2": IMAGES / 2, "node3-node4": 400, "node5": 200}),
        ("inputs", {"node2": IMAGES / 2, "node3": 400, "node4": 600, "node5": 200}),
        ("outputs", {"node2": 400, "node3": 200, "node4": 200, "node5": 8}),
    ],
)
def test_saved_rules(rule: Any, expected: dict[str, float]) -> None:
    profile = read_text(DIAMOND, saved=rule)
    assert saved(profile) == expected
    assert profile.provenance.saved.startswith(f"{rule}:")


def test_inputs_is_the_default() -> None:
    assert read_text(DIAMOND) == read_text(DIAMOND, saved="inputs")


def test_layers_add_up_and_exchange_the_tensors_of_their_cuts() -> None:
    whole, joined = read_text(DIAMOND), read_text(DIAMOND, saved="boundary")
    graph = joined.graph
    assert [op.name for op in graph.operators] == ["node2", "node3-node4", "node5"]
    assert [op.inputs for op in graph.operators] == [("node1.out",), ("node2.out",), ("node4.out",)]
    assert graph.successors == ((1,), (2,), ())
    assert graph.parameters == whole.graph.parameters
    assert graph.operators[1].parameters == ("node3.parameters",)
    costs = joined.costs[0].operators[1]
    assert (costs.forward_s, costs.backward_s) == ((3.75e-3,), (7.5e-3,))


def test_options_say_batch_and_device() -> None:
    profile = read_text(DIAMOND, batch=8, device="V100")
    assert profile.costs[0].micro_batches == (8,)
    assert profile.device_types == ("V100",)
    assert profile.graph.tensors[profile.graph.tensor_index["node2.out"]].forward_bytes_per_sample == 100


@pytest.mark.parametrize(("size", "batch"), [(224, 1), (224, 128), (299, 128), (299, 1)])
def test_batch_is_told_by_the_image(size: int, batch: int) -> None:
    text = DIAMOND.replace(str(IMAGES), str(batch * 3 * size * size * 4))
    assert read_text(text).costs[0].micro_batches == (batch,)


def test_batch_is_told_by_the_state_of_an_lstm() -> None:
    state = 4 * 16 * 32
    text = (
        node("node1", "Input0")
        + node("node2", "LSTM(64, 32)", 1, 2, f"[9000; {state}; {state}]", 5)
        + "\tnode1 -- node2\n"
    )
    assert read_text(text).costs[0].micro_batches == (16,)


def test_batch_that_nothing_tells_is_asked_for() -> None:
    text = DIAMOND.replace(str(IMAGES), "1000")
    with pytest.raises(PipebenchError, match=r"mini-batch is not known.*net\.txt\[batch=64\]"):
        read_text(text)
    assert read_text(text, batch=4).costs[0].micro_batches == (4,)


def test_lists_are_summed() -> None:
    text = DIAMOND.replace("activation_size=800,", "activation_size=[500; 200.0; 100],")
    assert text != DIAMOND
    assert read_text(text).graph == read_text(DIAMOND).graph


def test_items_that_nobody_reads_are_dropped() -> None:
    text = DIAMOND + node("node6", "__getitem__(1)", 0, 0, 4) + node("node7", "__getitem__(0)", 0, 0, 4)
    text += node("node8", "Dropout(p=0.2)", 1, 1, 4) + "\tnode2 -- node6\n\tnode2 -- node7\n\tnode7 -- node8\n"
    profile = read_text(text)
    assert "node6" not in profile.graph.index
    assert profile.graph.operators[profile.graph.index["node7"]].kind == "getitem"
    assert any("left out 1 __getitem__" in note for note in profile.provenance.notes)


def test_items_with_a_cost_stay() -> None:
    text = DIAMOND + node("node6", "__getitem__(1)", 0.5, 0, 4) + "\tnode2 -- node6\n"
    assert "node6" in read_text(text).graph.index


def test_operators_that_no_input_reaches_are_constant() -> None:
    text = DIAMOND + node("node6", "hidden") + node("node7", "__getitem__(0)") + node("node8", "Add", 1, 1, 8)
    text += "\tnode6 -- node7\n\tnode7 -- node8\n\tnode5 -- node8\n"
    graph = read_text(text).graph
    assert [op.name for op in graph.operators if op.constant] == ["node6", "node7"]


def test_a_file_that_lost_its_last_edges_is_suspected() -> None:
    whole, cut = read_text(DIAMOND), read_text(DIAMOND[: DIAMOND.index("\tnode2 -- node3")])
    assert not any("cut short" in note for note in whole.provenance.notes)
    assert any("no input reaches 2 operators" in note for note in cut.provenance.notes)


def test_a_file_of_several_operators_without_edges_is_refused() -> None:
    with pytest.raises(PipebenchError, match=r"^net.txt: 4 operators and no edge between them: .*cut short"):
        read_text(DIAMOND[: DIAMOND.index("\tnode1")])
    alone = node("node1", "Input", 99, 0, IMAGES) + node(
        "node2", "Linear(in_features=8, out_features=2)", 1, 2, 16
    )
    assert len(read_text(alone).graph.operators) == 1


def test_parts_that_share_no_tensor_are_noted() -> None:
    kept, (first, *others) = DIAMOND.partition("\tnode1")[0], DIAMOND.splitlines()[5:]
    for edges, parts in ((others, 1), ([first, others[0]], 3), ([first, others[0], others[3]], 2)):
        notes = read_text(kept + "\n".join([*edges, ""])).provenance.notes
        assert any(f"falls into {parts} parts that share no tensor" in note for note in notes) == (parts > 1)
    sisters = kept + "\tnode1 -- node2\n\tnode1 -- node3\n\tnode1 -- node4\n\tnode1 -- node5\n"
    assert not any("parts" in note for note in read_text(sisters).provenance.notes)


def test_a_file_without_inputs_has_no_constants() -> None:
    text = node("node1", "Linear(1, 1)", 1, 1, 8) + node("node2", "ReLU()", 1, 1, 8) + "\tnode1 -- node2\n"
    profile = read_text(text, batch=1)
    assert not any(op.constant for op in profile.graph.operators)
    assert saved(profile) == {"node1": 0, "node2": 8}


def test_several_inputs_are_kept_by_the_layer_that_reads_them() -> None:
    text = DIAMOND + node("node6", "Input0", 5, 0, 30) + "\tnode6 -- node5\n"
    profile = read_text(text, batch=2)
    assert saved(profile)["node5"] == 200 + 15


def test_descriptions_may_hold_commas_and_dashes() -> None:
    odd = "RNN(  (a): Linear(1, 2) -- x, forward_compute_time=7  )"
    graph = read_text(DIAMOND.replace("Add", odd)).graph
    assert graph.operators[2].kind == "rnn"


def test_stages_are_kept_as_an_attribute() -> None:
    text = DIAMOND.replace("parameter_size=128", "parameter_size=128 -- stage_id=3")
    graph = read_text(text).graph
    assert graph.operators[3].attributes == {"stage_id": 3}
    assert graph.operators[0].attributes == {}


@pytest.mark.parametrize(
    "change", [("\n", "\r\n"), ("\n", "\n\n"), ("\t", "    "), ("node1 --", "\ufeffnode1 --")]
)
def test_line_ends_blank_lines_and_spaces_do_not_matter(change: tuple[str, str]) -> None:
    text = node("node1", "Input", 0, 0, IMAGES) + DIAMOND.replace(node("node1", "Input", 99, 0, IMAGES), "")
    assert read_text(text.replace(*change, 1 if "\ufeff" in change[1] else -1)).graph == read_text(DIAMOND).graph


def test_an_edge_listed_twice_counts_once() -> None:
    assert read_text(DIAMOND + "\tnode4 -- node5\n").graph == read_text(DIAMOND).graph


@given(st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(random: Any) -> None:
    lines = DIAMOND.splitlines(keepends=True)
    random.shuffle(lines)
    shuffled, plain = read_text("".join(lines)), read_text(DIAMOND)
    assert shuffled.costs == plain.costs
    assert shuffled.graph.operators[0] == plain.graph.operators[0]
    assert shuffled.graph.successors == plain.graph.successors
