"""Every way in which a foreign file may be wrong is one line with the file and the place inside it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.profiles import layer_table, piper, tarnawski


def tmpc(**figures: Any) -> dict[str, Any]:
    return {
        "id": "vanilla",
        "timePerSample": 3.0,
        "parameterSize": 4.0,
        "memoryUsageA": 5.0,
        "memoryUsageB": 8.0,
        "syncTimeFw": {},
        "syncTimeBw": {},
        **figures,
    }


PIPER: dict[str, Any] = {
    "maxDevices": 4,
    "maxMemoryPerDevice": 1e9,
    "bandwidth": 1e9,
    "mbsInBatch": 8,
    "nodes": [
        {"id": 7, "name": "a", "TMPCs": {"1": [tmpc()], "2": [tmpc(syncTimeBw={"8": 2.0})]}},
        {"id": 8, "name": "b", "TMPCs": {"1": [tmpc()], "2": [tmpc(syncTimeFw={"7": 2.0})]}},
    ],
    "edges": [{"sourceId": 7, "destId": 8, "communicationCost": 6.0}],
}


def node(identifier: int, backward: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "name": f"n{identifier}",
        "supportedOnFpga": 1,
        "cpuLatency": 10.0,
        "fpgaLatency": 1.0,
        "isBackwardNode": backward,
        "colorClass": identifier % 10,
        "size": 3.0,
        **fields,
    }


TARNAWSKI: dict[str, Any] = {
    "maxSizePerFPGA": 1e9,
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "nodes": [node(1), node(2), node(11, 1), node(12, 1)],
    "edges": [
        {"sourceId": 1, "destId": 2, "cost": 0.5},
        {"sourceId": 12, "destId": 11, "cost": 0.25, "size": 100.0},
    ],
}
Change = Callable[[dict[str, Any]], Any]


def read_piper(content: Any, **options: Any) -> Profile:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return piper.read(data, "net.json", piper.PiperOptions(**options))


def read_tarnawski(content: Any, **options: Any) -> Profile:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return tarnawski.read(data, "net.json", tarnawski.TarnawskiOptions(**options))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(maxBatchSize=8), "mbsInBatch or maxBatchSize: one is needed, both are there"),
        (lambda c: c.pop("mbsInBatch"), "one is needed, neither is there"),
        (lambda c: c.update(bandwith=1), "unknown key 'bandwith'.*did you mean 'bandwidth'"),
        (lambda c: c.pop("bandwidth"), "missing required field `bandwidth`"),
        (lambda c: c.update(bandwidth=0), "bandwidth is 0"),
        (lambda c: c.update(nodes=[]), "nodes is empty"),
        (lambda c: c["nodes"][1].update(id=7), r"nodes\[1\]: id 7 occurs twice, first in nodes\[0\]"),
        (
            lambda c: c["nodes"][1]["TMPCs"].pop("2"),
            r"nodes\[1\].TMPCs: tensor-parallel degrees 1, nodes\[0\] has 1, 2",
        ),
        (lambda c: c["nodes"][0]["TMPCs"].pop("1"), r"nodes\[0\].TMPCs: degree 1 is missing"),
        (lambda c: c["nodes"][0]["TMPCs"].update(x=[]), "'x' is no tensor-parallel degree"),
        (lambda c: c["nodes"][0]["TMPCs"].update({"01": [tmpc()]}), "degree 1 occurs twice"),
        (lambda c: c["nodes"][0]["TMPCs"].update({"2": []}), r"nodes\[0\].TMPCs\[2\] is empty"),
        (
            lambda c: c["nodes"][1]["TMPCs"]["2"][0].update(timePerSampel=1),
            r"nodes\[1\].TMPCs\[2\]\[0\]: unknown key 'timePerSampel'.*did you mean 'timePerSample'",
        ),
        (
            lambda c: c["nodes"][1]["TMPCs"]["2"][0].update(timePerSample=-1),
            r"nodes\[1\].TMPCs\[2\]\[0\].timePerSample is -1",
        ),
        (lambda c: c["nodes"][0]["TMPCs"]["1"].append(tmpc()), r"TMPCs\[1\]\[1\]: id 'vanilla' occurs twice"),
        (
            lambda c: c["nodes"][0]["TMPCs"]["1"][0]["syncTimeFw"].update({"8": 1.0}),
            r"nodes\[0\].TMPCs\[1\]\[0\].syncTimeFw\[8\]: there is no edge 8 -> 7",
        ),
        (lambda c: c["edges"][0].update(destId=9), r"edges\[0\].destId: 9 is not a node"),
        (lambda c: c["edges"].append(c["edges"][0]), r"edges\[1\]: 7 -> 8 occurs twice, first in edges\[0\]"),
        (lambda c: c["edges"][0].update(communicationCost="6"), r"edges\[0\].communicationCost"),
        (lambda c: c["edges"].append({"sourceId": 8, "destId": 7, "communicationCost": 1}), "cycle"),
    ],
)
def test_piper(change: Change, message: str) -> None:
    content = copy.deepcopy(PIPER)
    change(content)
    with pytest.raises(PipebenchError, match=message) as caught:
        read_piper(content)
    assert caught.value.message.startswith("net.json: ")
    assert "\n" not in str(caught.value)


def test_both_names_of_the_batch_field() -> None:
    renamed = {("maxBatchSize" if key == "mbsInBatch" else key): value for key, value in PIPER.items()}
    assert read_piper(renamed) == read_piper(PIPER)


def test_weight_state_is_taken_out_of_piper_memory() -> None:
    content = copy.deepcopy(PIPER)
    content["nodes"][0]["TMPCs"]["1"][0]["memoryUsageB"] = 11.0
    ways = read_piper(content).costs[0].operators[0].alternatives
    assert [way.fixed_bytes for way in ways] == [3, 0]
    assert ways[1].boundary_bytes == {"a.out": (0.0, 2.0)}
    assert read_piper(content, units="ms").costs[0].operators[0].forward_s == (1e-3,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("maxFPGAs"), "missing required field `maxFPGAs`"),
        (lambda c: c.update(maxGPUs=1), "unknown key 'maxGPUs'"),
        (lambda c: c["nodes"][1].update(colourClass=1), r"unknown key 'nodes\[1\].colourClass'.*'colorClass'"),
        (lambda c: c["nodes"][1].update(id=1), r"nodes\[1\]: id 1 occurs twice, first in nodes\[0\]"),
        (lambda c: c["nodes"][1].update(isBackwardNode=2), r"nodes\[1\].isBackwardNode is 2"),
        (lambda c: c["nodes"][1].update(fpgaLatency=-1), r"nodes\[1\].fpgaLatency is -1"),
        (lambda c: c["edges"][0].update(destId=99), r"edges\[0\].destId: 99 is not a node"),
        (lambda c: c["edges"].append(c["edges"][0]), r"edges\[2\]: 1 -> 2 occurs twice"),
        (
            lambda c: c["edges"][1].update(destId=1),
            r"edges\[1\]: leads from the backward node 12 to the forward node 1",
        ),
        (
            lambda c: (c["nodes"].append(node(3)), c["edges"].append({"sourceId": 1, "destId": 3, "cost": 0.75})),
            r"edges\[2\].cost is 0.75, another edge of node 1 has 0.5",
        ),
    ],
)
def test_tarnawski(change: Change, message: str) -> None:
    content = copy.deepcopy(TARNAWSKI)
    change(content)
    with pytest.raises(PipebenchError, match=message) as caught:
        read_tarnawski(content)
    assert caught.value.message.startswith("net.json: ")
    assert "\n" not in str(caught.value)


def test_backward_nodes_join_their_forward_nodes() -> None:
    profile = read_tarnawski(TARNAWSKI)
    assert [op.name for op in profile.graph.operators] == ["n1", "n2"]
    assert profile.device_types == ("accelerator", "cpu")
    assert [c.backward_s for c in profile.costs[1].operators] == [(0.01,), (0.01,)]
    sent = {
        t.name: (t.producer, t.forward_bytes_per_sample, t.gradient_bytes_per_sample)
        for t in profile.graph.tensors
    }
    assert sent == {"n1.out": ("n1", 200.0, 0.0), "n12.out": ("n1", 0.0, 100.0)}
    assert profile.provenance.setting.bandwidth_bytes_s == 400_000.0  # type: ignore[union-attr]


def test_edge_units() -> None:
    assert read_tarnawski(TARNAWSKI, edge_units="s").provenance.setting.bandwidth_bytes_s == 400.0  # type: ignore[union-attr]


def test_a_colour_with_backward_nodes_only() -> None:
    """It gets a forward part without costs, behind what its backward part precedes."""
    content = copy.deepcopy(TARNAWSKI)
    content["nodes"] += [node(15, 1, colorClass=5)]
    content["edges"] += [{"sourceId": 15, "destId": 12, "cost": 1.0}]
    profile = read_tarnawski(content)
    assert profile.graph.successors == ((1,), (2,), ())
    assert profile.costs[0].operators[2].forward_s == (0.0,)


def test_forward_cycles_of_colours_join() -> None:
    content = copy.deepcopy(TARNAWSKI)
    content["nodes"] += [node(3, colorClass=1)]
    content["edges"] += [{"sourceId": 2, "destId": 3, "cost": 1.0}]
    assert len(read_tarnawski(content).graph.operators) == 1


def test_what_only_the_cpu_supports() -> None:
    content = copy.deepcopy(TARNAWSKI)
    content["nodes"][0]["supportedOnFpga"] = False
    profile = read_tarnawski(content)
    assert profile.graph.operators[0].attributes["cpu_only"] == 1
    assert profile.costs[0].operators[0].forward_s == (0.01,)


CSV = "name,forward_ms,backward_ms,activation_bytes,weight_bytes\na,1,2,3,4\nb,1,2,3,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header"),
        ("# micro_batch: 2\n", "no header"),
        *(
            (
                f"# {name}: {value}\n{CSV}",
                f"line 1: micro_batch is '{value}', it must be a whole number of samples",
            )
            for name in ("micro_batch", "micro-batch", "Micro Batch", "microbatch_size")
            for value in ("8 samples", "eight", "-4", "8.0", "")
        ),
        (f"# micro_batch: 8\n{CSV}# micro-batch: 4\n", "line 5: micro_batch is said twice"),
        ("name,forward_ms,backward_ms,activation_bytes,weight_bytes\n", "no layers"),
        (CSV.replace("forward_ms", "forward", 1), "line 1: column 'forward' has no unit.*forward_ms"),
        (CSV.replace("weight_bytes", "weights"), "line 1: column 'weights' has no unit.*weights_bytes"),
        (CSV.replace("forward_ms", "forward_MB", 1), "'MB' is not one of ns, us"),
        (CSV.replace("activation_bytes", "activation [ms]"), "'ms' is not one of bytes"),
        (CSV.replace("backward_ms", "bakward_ms"), "unknown column 'bakward_ms'.*did you mean 'backward'"),
        (CSV.replace("backward_ms", "fwd_ms"), "column 'forward' occurs twice"),
        (CSV.replace(",weight_bytes", ""), "column 'weight' is missing"),
        (CSV + "c,1,2,3\n", "line 4: 4 cells, the header has 5"),
        (CSV + "c,1,2,x,1\n", "line 4: activation is 'x'"),
        (CSV + "c,1,-2,1,1\n", "line 4: backward is '-2'"),
        (CSV + "c,nan,2,1,1\n", "line 4: forward is 'nan'"),
        (CSV + "a,1,2,1,1\n", "line 4: layer 'a' occurs twice"),
        (CSV + ",1,2,1,1\n", "line 4: name is empty"),
        (
            "name,inputs,forward_s,backward_s,activation_B,weight_B\nabc,,1,1,1,1\nd,abd,1,1,1,1\n",
            "line 3: 'd' reads 'abd', which is not a layer .did you mean 'abc'",
        ),
        ("name,inputs,forward_s,backward_s,activation_B,weight_B\na,b,1,1,1,1\nb,a,1,1,1,1\n", "cycle"),
    ],
)
def test_csv(text: str, message: str) -> None:
    with pytest.raises(PipebenchError, match=message) as caught:
        layer_table.read_csv(text.encode(), "net.csv", layer_table.TableOptions())
    assert caught.value.message.startswith("net.csv: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        "# micro_batch: 8",
        "#micro-batch=8",
        "  # Micro Batch : 8 ",
        "# microbatch size: 8",
        "## micro_batches (samples): 8",
    ],
)
def test_samples_of_a_csv_however_they_are_written(said: str) -> None:
    profile = layer_table.read_csv(
        f"# made by hand; micro_batch: see below\n{said}\n{CSV}".encode(), "net.csv", layer_table.TableOptions()
    )
    assert profile.costs[0].micro_batches == (8,)


def test_units_and_samples_of_a_csv() -> None:
    text = "# micro_batch: 4\nname;fwd [us];bwd (s);act_KiB;weight_MB;saved_B\na;5;2;1;3;8\n"
    profile = layer_table.read_csv(text.encode(), "net.csv", layer_table.TableOptions())
    costs = profile.costs[0]
    assert (costs.micro_batches, costs.operators[0].forward_s, costs.operators[0].backward_s) == (
        (4,),
        (5e-6,),
        (2.0,),
    )
    assert costs.operators[0].saved_bytes_per_sample == 2.0
    assert profile.graph.tensors[0].forward_bytes_per_sample == 256.0
    assert profile.graph.parameters[0].bytes == 3_000_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"layers": []}, "no layers"),
        ({"layers": 3}, "layers is not a list"),
        ({"layers": [3]}, r"layers\[0\] is not an object"),
        ({"layers": [], "microbatch": 2}, "unknown field 'microbatch'.*did you mean 'micro_batch'"),
        ({"layers": [], "micro_batch": "2"}, "micro_batch is '2'"),
        ([{"name": "a", "forward": 1}], r"layers\[0\]: column 'forward' has no unit"),
        (
            [{"name": 3, "forward_s": 1, "backward_s": 1, "activation_B": 1, "weight_B": 1}],
            r"layers\[0\]: name is '3', it must be text",
        ),
        (
            [{"name": "a", "forward_s": True, "backward_s": 1, "activation_B": 1, "weight_B": 1}],
            r"layers\[0\]\.forward_s is 'True'",
        ),
    ],
)
def test_json_table(content: Any, message: str) -> None:
    with pytest.raises(PipebenchError, match=message) as caught:
        layer_table.read_json(json.dumps(content).encode(), "net.json", layer_table.TableOptions())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("read", "content"), [(read_piper, PIPER), (read_tarnawski, TARNAWSKI)])
@given(data=st.data())
def test_a_truncated_file_is_told(read: Any, content: dict[str, Any], data: Any) -> None:
    whole = json.dumps(content).encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(PipebenchError, match=r"net\.json: not valid JSON"):
        read(cut)


@given(st.integers(0, len(CSV)), st.text(max_size=2))
def test_a_changed_letter_of_a_csv_gives_a_profile_or_an_error(position: int, letters: str) -> None:
    text = CSV[:position] + letters + CSV[position + 1 :]
    try:
        data = text.encode("utf-8", "surrogatepass")
        assert isinstance(layer_table.read_csv(data, "net.csv", layer_table.TableOptions()), Profile)
    except PipebenchError as error:
        assert str(error).startswith("net.csv: ")  # noqa: PT017
