"""--micro-batch-size and idle devices, as a user of a framework types them."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.language_models import config

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}


@pytest.fixture
def where(tmp_path: Path) -> tuple[str, ...]:
    return ("--config", config(tmp_path, **SMALL), "--cluster", "dgx-h100", "-n", "8", "--mini-batch", "16")


def test_all_gpus_are_used_with_one_sample_a_replica(pipebench: CommandLine, where: tuple[str, ...]) -> None:
    done = pipebench("plan", "layout", *where, "--micro-batch-size", "1", "--export", "megatron")
    assert done.code == 0, done.err
    assert "--micro-batch-size 1\n" in done.out
    assert "# 8 GPUs: Megatron-LM computes DP = 8 / " in done.out


def test_idle_devices_are_refused_unless_they_are_allowed(
    pipebench: CommandLine, where: tuple[str, ...], tmp_path: Path
) -> None:
    path = str(tmp_path / "plan.json")
    asked = ("plan", "data-parallel", *where, "--micro-batch", "1", "-o", path)
    done = pipebench(*asked, "--export", "megatron")
    assert done.code == 1
    assert "the plan uses 1 of 8 devices, 7 would stand idle" in done.err
    assert "--allow-idle" in done.err
    assert "--micro-batch-size those of one" in done.err
    assert re.search(r"notice +uses 1 of 8 devices", done.out)
    assert "--num-layers" not in done.out
    assert pipebench(*asked, "--export", "megatron", "--allow-idle").code == 0
    block = tmp_path / "block.txt"
    refused = pipebench("export", path, "--to", "megatron", "-o", str(block))
    assert (refused.code, block.exists()) == (1, False)
    allowed = pipebench("export", path, "--to", "megatron", "--allow-idle", "--json")
    assert allowed.code == 0
    launch = json.loads(allowed.out)["launch"]
    assert (launch["gpus"], launch["data_parallel"], launch["accumulation"]) == (1, 1, 16)


@pytest.mark.nightly
def test_best_leaves_plans_out_that_cannot_be_exported_for_idle_devices(
    pipebench: CommandLine, where: tuple[str, ...]
) -> None:
    done = pipebench("plan", "best", *where, "--micro-batch", "1", "--timeout", "20", "--export", "megatron")
    assert done.code == 0, done.err
    assert "# 8 GPUs" in done.out
    assert "left out: data-parallel: it uses 1 of 8 devices" in done.err


def test_both_sizes_must_agree(pipebench: CommandLine, where: tuple[str, ...]) -> None:
    done = pipebench("plan", "layout", *where, "--micro-batch-size", "4", "--micro-batch", "2")
    assert done.code == 2
    assert "the pinned micro-batch 2 is not the micro-batch size 4 times a number of replicas" in done.err
    done = pipebench("plan", "layout", *where, "--micro-batch-size", "2", "--micro-batch", "4", "--json")
    assert done.code == 0, done.err
    assert set(json.loads(done.out)["micro_batch"]) == {4}


def test_a_planner_that_does_not_count_so_says_it(pipebench: CommandLine, where: tuple[str, ...]) -> None:
    done = pipebench("plan", "pase", *where, "--micro-batch-size", "1")
    assert done.code == 5
    assert "unsupported: pase does not plan for a micro-batch size of one replica, 1 is pinned" in done.err


def test_idle_devices_are_said_of_any_planner_once(
    pipebench: CommandLine, where: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "first.py"
    file.write_text(
        "from pipebench.domain.plan import Plan, Stage\n\n"
        "def plan(problem, context):\n"
        "    names = tuple(problem.profile.graph.operators[i].name for i in problem.profile.graph.topological)\n"
        "    return Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1),))\n"
    )
    for planner in (str(file), "data-parallel"):
        done = pipebench("plan", planner, *where, "--micro-batch", "1")
        assert done.code == 0, done.err
        assert done.out.count("uses 1 of 8 devices") == 1
