"""From a config.json to a framework's flags, as a user does it."""

import json
import os
import re
from pathlib import Path

import pytest

from pipebench.bench import best
from pipebench.cli.main import run
from pipebench.formats.frameworks.megatron import check_layout, parse_layout
from tests.cli.command_line import CommandLine
from tests.language_models import config

H100 = ("--cluster", "dgx-h100", "-n", "64", "--tp", "8", "--pp", "8", "--mini-batch", "64", "--micro-batch", "1")
TINY = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}
SMALL = ("--cluster", "dgx-h100", "-n", "4", "--mini-batch", "16")


def test_llama_70b_to_megatron(pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 H100 on 8 nodes, TP8 PP8: feasible, memory by stage, flags that obey the rules, in under 30 s."""
    monkeypatch.setattr(best, "MOST_STALL", 20)  # with more the search takes all of its time for nothing
    monkeypatch.setattr(best, "STARTS", 1)
    before = sum(os.times()[:4])
    done = pipebench(
        "plan", "best", "--config", config(tmp_path), *H100, "--timeout", "20", "--export", "megatron"
    )
    assert done.code == 0, done.err
    assert sum(os.times()[:4]) - before < 30  # CPU, children included: other work on the machine does not count
    assert "winner: layout" in done.err
    assert "runner-up: uniform" in done.err
    assert "valid, fits" in done.out
    assert len(re.findall(r"^ +\d+ +\d+-\d+ .* GB +[\d.]+ GB", done.out, re.MULTILINE)) in (8, 16, 24, 32, 40)
    (layout,) = re.findall(r"--pipeline-model-parallel-layout '(.*)'", done.out)
    assert check_layout(parse_layout(layout), 8, 80) >= 1
    for line in (
        "--tensor-model-parallel-size 8",
        "--pipeline-model-parallel-size 8",
        "--micro-batch-size 1",
        "--global-batch-size 64",
        "# the uniform split takes",
        "free on the fullest device",
        "Megatron-LM d98e8a64dd",
    ):
        assert line in done.out


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small plan on two stages in a file."""
    folder = tmp_path_factory.mktemp("plan")
    path = str(folder / "plan.json")
    options = ("--pp", "2", "--tp", "2", "--vpp", "1", "--micro-batch", "1", "-o", path)
    assert run(["plan", "layout", "--config", config(folder, **TINY), *SMALL, *options]) == 0
    return path


@pytest.mark.parametrize("name", ["megatron", "torchtitan", "pipelining", "deepspeed", "pipedream"])
def test_export_to_files(name: str, pipebench: CommandLine, plan: str, tmp_path: Path) -> None:
    target = tmp_path / "block.txt"
    done = pipebench("export", plan, "--to", name, "-o", str(target))
    assert done.code == 0, done.err
    assert "predicted" in done.out
    assert target.read_text()
    assert (tmp_path / "block.csv").exists() == (name == "torchtitan")
    told = json.loads(pipebench("export", plan, "--to", name, "--json").out)
    assert told["target"] == name
    assert told["fits"]


def test_a_plan_for_a_framework_is_ordered_as_that_one_runs_it(pipebench: CommandLine, tmp_path: Path) -> None:
    """What the score says and what is exported are of one schedule; without a target any order may be the best."""
    pins = ("--pp", "4", "--tp", "1", "--dp", "1", "--vpp", "1", "--micro-batch", "1", "--framework", "megatron")
    words = ("plan", "layout", "--config", config(tmp_path, **TINY), *SMALL, *pins)
    free = pipebench(*words)
    done = pipebench(*words, "--export", "megatron")
    assert done.code == 0, done.err
    texts = [" ".join(each.out.split()) for each in (free, done)]
    found = [re.findall(r"simulated ([\d.]+ m?s) .*?\(([^\s)]+)\)", text) for text in texts]
    assert found[1][0][1] == "1f1b", done.out
    assert found[0][0][1] != "1f1b", free.out
    assert f"predicted {found[1][0][0]}" in done.out


def test_our_schedule_validates_with_its_plan(pipebench: CommandLine, plan: str, tmp_path: Path) -> None:
    assert pipebench("export", plan, "--to", "torchtitan", "--schedule", str(tmp_path / "order.csv")).code == 0
    done = pipebench("validate", str(tmp_path / "order.csv"))
    assert (done.code, done.out[:48]) == (0, "valid: 2 ranks, 2 stages, 16 micro-batches; most")
    done = pipebench("validate", str(tmp_path / "order.csv"), "--plan", plan)
    assert done.code == 0
    assert "on the fullest device" in done.out


def test_another_order_of_a_plan_is_judged_by_what_it_keeps_itself(
    pipebench: CommandLine, plan: str, tmp_path: Path
) -> None:
    """GPipe's order holds all micro-batches, more than the 1F1B that the plan was made for."""
    order = tmp_path / "gpipe.csv"
    rows = (
        [f"{stage}{kind}{number}" for kind in kinds for number in range(16)]
        for stage, kinds in ((0, "FB"), (1, "FB"))
    )
    order.write_text("".join(",".join(row) + "\n" for row in rows))
    done = pipebench("validate", str(order), "--plan", plan)
    assert (done.code, done.out[:5]) == (0, "valid"), done.out


@pytest.mark.nightly
def test_parts_in_a_v_run_under_zb_v(pipebench: CommandLine, tmp_path: Path) -> None:
    names = ["tok_embeddings", *(f"layers.{k}" for k in range(8)), "norm", "lm_head"]
    parts = tmp_path / "parts.py"
    split = [names[:3], names[3:5], names[5:7], names[7:]]
    for schedule, ran in (("ZBVZeroBubble", "zb-v"), ("Interleaved1F1B", "interleaved-1f1b")):
        parts.write_text(
            f"ParallelismConfig(pipeline_parallel_schedule='{schedule}',\nmodule_fqns_per_model_part={split},\n)"
        )
        pins = ("--pp", "2", "--tp", "2", "--planners", "uniform", "--jobs", "2", "--json")
        done = pipebench("compare", "--config", config(tmp_path, **TINY), *SMALL, *pins, "--plans", str(parts))
        rows = {row["planner"]: row for row in json.loads(done.out)["rows"]}
        assert (rows["parts.py"]["status"], rows["parts.py"]["scheduler"]) == ("ok", ran), rows["parts.py"]


def test_a_refused_plan_and_the_nearest(pipebench: CommandLine, tmp_path: Path) -> None:
    path, near = str(tmp_path / "plan.json"), str(tmp_path / "near.json")
    pinned = ("--pp", "2", "--dp", "1", "--vpp", "2", "--micro-batch", "1", "-o", path)
    assert pipebench("plan", "layout", "--config", config(tmp_path, **TINY), *SMALL, *pinned).code == 0
    done = pipebench("export", path, "--to", "deepspeed", "--nearest", near)
    assert done.code == 1
    assert "deepspeed cannot express this plan: 2 stages a rank: DeepSpeed runs one" in done.err
    assert "the nearest that it can: TP 1, DP 1, 2 stages, micro-batch 1" in done.err
    ways = "plan with --vpp 1, or plan with best, which keeps to what deepspeed can express, or take the nearest"
    assert ways in " ".join(done.err.split())
    assert pipebench("validate", near).code == 0
    assert pipebench("export", near, "--to", "deepspeed", "--allow-idle").code == 0


def test_layouts_of_today_beside_planners(pipebench: CommandLine, tmp_path: Path, plan: str) -> None:
    parts = tmp_path / "parts.json"
    names = ["tok_embeddings", *(f"layers.{k}" for k in range(8)), "norm", "lm_head"]
    parts.write_text(json.dumps([names[:5], names[5:]]))
    points = tmp_path / "points.json"
    points.write_text('["layers.2"]')
    graph = tmp_path / "graph.txt"
    assert pipebench("export", plan, "--to", "pipedream", "-o", str(graph)).code == 0
    wanted = ["megatron:Et*4|t*4,L", "megatron:E(tt|)*3,ttL", str(parts), str(points), str(graph)]
    options = [word for each in wanted for word in ("--plans", each)]
    pins = ("--pp", "2", "--tp", "2", "--planners", "uniform", "--json")
    done = pipebench("compare", "--config", config(tmp_path, **TINY), *SMALL, *pins, *options)
    assert done.code == 0, done.err
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"]}
    assert set(rows) == {"uniform", *wanted[:2], "parts.json", "points.json", "graph.txt"}
    assert rows[wanted[0]]["plan_id"] == rows["parts.json"]["plan_id"]
    assert rows[wanted[1]]["scheduler"] == "interleaved-1f1b"
    assert rows["points.json"]["simulated_s"] > rows["parts.json"]["simulated_s"]


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (("--cp", "3"), 2, "--cp 3: a rank has 2 of 6 chunks"),
        (("--ep", "4"), 2, "--ep 4: llm has no experts that ranks could share out"),
        (("--tp", "3"), 5, "layout has tensor parallelism of 1, 2, 4, 8 here, 3 is pinned"),
        (("--pp", "16"), 5, "ask for 16 stages, the model has layers for at most 10"),
        (("--pp", "4", "--vpp", "3", "--tp", "1"), 5, "ask for 12 stages, the model has layers for at most 10"),
        (("--pp", "8", "--tp", "8", "-n", "60"), 5, "the nearest numbers of devices: -n 64"),
        (("--pp", "3", "--tp", "2"), 5, "the nearest numbers of devices: -n 6; or pin"),
        (("--dp", "4", "--mini-batch", "30"), 5, "the nearest mini-batches: 28, 32; the nearest --dp: 2, 3, 5"),
        (("--dp", "4", "--micro-batch-size", "16"), 5, "the nearest --micro-batch-size: 1, 2, 4"),
        (("--micro-batch-size", "5"), 2, "does not divide the mini-batch 16 (the nearest that divide it: 2, 4, 8"),
        (
            ("--micro-batch-size", "64"),
            2,
            "larger than the mini-batch 16 (the nearest that divide it: 4, 8, 16",
        ),
        (("--seq", "0"), 2, "--seq"),
        (("--precision", "int8"), 2, "int8"),
    ],
)
def test_pins_that_cannot_be(
    pipebench: CommandLine, tmp_path: Path, options: tuple[str, ...], code: int, reason: str
) -> None:
    done = pipebench("plan", "layout", "--config", config(tmp_path, **TINY), *SMALL, *options)
    assert done.code == code
    assert reason in done.err


def test_bad_files(pipebench: CommandLine, tmp_path: Path, plan: str) -> None:
    unknown = config(tmp_path, model_type="rwkv")
    done = pipebench("plan", "layout", "--config", unknown, *SMALL)
    assert (done.code, "unknown architecture 'rwkv'" in done.err) == (2, True)
    assert pipebench("plan", "layout", "--config", str(tmp_path / "none.json"), *SMALL).code == 2
    assert "--config" in pipebench("plan", "layout", "-m", "resnet50", "--seq", "128").err
    for data, reason in ((b"\xef\xbb\xbf0F0,0B0\n", "byte-order mark"), (b"0F0," * 10_000_000, "at most 1000000")):
        path = tmp_path / "order.csv"
        path.write_bytes(data)
        done = pipebench("validate", str(path))
        assert (done.code, reason in done.err) == (1, True)
    other = config(tmp_path, **TINY | {"num_hidden_layers": 6})
    done = pipebench(
        "compare", "--config", other, *SMALL, "--plans", plan, "--plans", "megatron:Et*4|t*4,L", "--jobs", "2"
    )
    assert done.code == 5
    said = " ".join(done.out.split())
    assert "8 decoder layers, the model 6" in said
    assert "planned for llama-8x256, not for llama-6x256" in said
    assert "is it for another model?" in said
    for layout, reason in (("Et |tL", "holds a space"), ("E((t)*2|)*2,L", "do not nest")):
        done = pipebench("compare", "--config", other, *SMALL, "--plans", f"megatron:{layout}")
        assert (done.code, reason in done.err) == (2, True)


def test_layers_that_do_not_divide(pipebench: CommandLine, tmp_path: Path) -> None:
    """Megatron's uniform split needs whole shares; a layout does not, and says how even it is."""
    odd = config(tmp_path, **TINY | {"num_hidden_layers": 7})
    pins = ("--pp", "4", "--vpp", "1", "--export", "megatron")
    done = pipebench("plan", "layout", "--config", odd, *SMALL, *pins)
    assert done.code == 0, done.err
    assert "7 layers on 4 stages: as equal as can be" in done.out
