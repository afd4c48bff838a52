"""list frameworks, and a workload that names one."""

import json

import pytest

from pipebench.domain.errors import ExitCode
from pipebench.formats.frameworks.facts import framework_names
from tests.cli.command_line import CommandLine

MODEL = "llm[architecture=gpt2,layers=4,hidden=512,heads=8,ffn=2048,sequence=256,vocab=1024]"
WORKLOAD = ("-m", MODEL, "--cluster", "dgx-a100", "-n", "2", "--mini-batch", "8", "--precision", "fp16")


def test_the_list_has_all_facts_and_says_where_they_come_from(pipebench: CommandLine) -> None:
    listed = {each["name"]: each for each in json.loads(pipebench("list", "frameworks", "--json").out)}
    assert list(listed) == framework_names()
    assert listed["megatron"]["attention"] == "flash"
    assert any("Korthikanti" in source for source in listed["megatron"]["sources"])


def test_a_framework_is_slower_than_peak_rates_and_carries_an_interval(pipebench: CommandLine) -> None:
    plain, priced = (
        pipebench("compare", "--planners", "layout", "--regime", "sync", *WORKLOAD, *more, "--json")
        for more in ((), ("--framework", "megatron-deepspeed", "--optimizer", "adam"))
    )
    before, after = (json.loads(done.out)["rows"][0] for done in (plain, priced))
    assert before["simulated_low_s"] is None
    assert after["simulated_low_s"] < after["simulated_s"] < after["simulated_high_s"]
    assert after["simulated_s"] > before["simulated_s"]
    assert after["device_memory_bytes"] < before["device_memory_bytes"]


@pytest.mark.parametrize(
    ("framework", "sharding", "degrees", "said"),
    [
        ("torchtitan", "zero3", (), True),
        pytest.param("torchtitan-eager", "zero3", ("--pp", "2"), True, marks=pytest.mark.nightly),
        pytest.param("torchtitan", "zero3", ("--pp", "1"), False, marks=pytest.mark.nightly),
        ("torchtitan", "zero1", (), False),
        ("megatron", "zero3", (), False),
    ],
)
def test_what_torchtitan_does_not_shard_in_a_pipeline_is_said(
    pipebench: CommandLine, framework: str, sharding: str, degrees: tuple[str, ...], said: bool
) -> None:
    step = ("--framework", framework, "--optimizer", "adam", "--optimizer-sharding", sharding)
    done = pipebench("plan", "uniform", *WORKLOAD, *step, *degrees)
    assert ("torchtitan keeps what it gathers in a pipeline" in done.out + done.err) == said


def test_an_unknown_framework_is_no_traceback(pipebench: CommandLine) -> None:
    done = pipebench("plan", "layout", *WORKLOAD, "--framework", "megaton")
    assert done.code != 0
    assert "did you mean 'megatron'" in done.err


def test_an_option_of_kernels_counts_with_a_framework(pipebench: CommandLine) -> None:
    done = pipebench("plan", "layout", *WORKLOAD, "--profiler", "analytic[attention=flash]")
    assert done.code != 0
    assert "--framework" in done.err


@pytest.mark.parametrize(
    ("memory", "left"),
    [
        ((), "79.5 GB of 84.9 GB of a device"),
        (("--memory", "80GB"), "74.8 GB of 80.0 GB of a device"),
        (("--memory", "40GB"), "36.7 GB of 40.0 GB of a device"),
    ],
)
def test_tensors_get_what_a_process_sees_of_a_card_or_what_is_said(
    pipebench: CommandLine, memory: tuple[str, ...], left: str
) -> None:
    """A card of "80 GB" has 79.1 GiB; context and slack are taken off."""
    model = ("--models", "llm[layers=4,hidden=256,heads=4,ffn=512,vocab=1024,sequence=256]")
    options = ("--cluster", "dgx-h100", "--devices", "2", "--mini-batch", "4", "--framework", "megatron")
    done = pipebench("plan", "layout", *model, *options, *memory)
    assert done.code == 0, done.err
    assert f"{left} are left to tensors under megatron" in done.err


def test_a_device_that_a_framework_fills_alone_is_refused(pipebench: CommandLine) -> None:
    """Its context and libraries take more than there is."""
    small = ("--profile", "resnet50", "--devices", "2", "--mini-batch", "8", "--memory", "0.4GB")
    done = pipebench("plan", "uniform", *small, "--framework", "megatron")
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert "megatron leaves none of its 0.400 GB to tensors (use a device with more memory" in done.err
