"""Hybrid models, as a user types it: does it fit, what to type into Megatron-LM, what is refused, how far off."""

import json
from pathlib import Path

import pytest

from tests.bench.accuracy.tables import table
from tests.cli.command_line import CommandLine
from tests.hybrid_models import NANO, nano_elements

TOKENS = 4096
RUN = {
    "id": "nano",
    "model": "Nemotron_3_Nano (Pre-Training Performance)",
    "seq": "8192",
    "gpus": "8",
    "device": "DGX-GB200",
    "tp": "1",
    "pp": "1",
    "ep": "8",
    "mbs": "2",
    "gbs": "512",
    "precision": "MXFP8",
    "framework": "Megatron-Bridge 26.06",
    "iter_s": "1",
    "source": "made up",
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(NANO))
    return str(path)


def asked(config: str, *more: str) -> tuple[str, ...]:
    return (
        *("plan", "layout", "--config", config, "--seq", str(TOKENS), "--cluster", "dgx-h100", "-n", "16"),
        *("--framework", "megatron", "--mini-batch", "16", "--micro-batch-size", "1", *more),
    )


def test_the_memory_of_nemotron_3_nano_by_hand(pipebench: CommandLine, tmp_path: Path, config: str) -> None:
    """16 H100, 8 ranks share out 128 experts: each expert is in two places, all else in sixteen."""
    done = pipebench(
        *asked(config, "--ep", "8", "--tp", "1", "--pp", "1", "--dp", "16", "--recompute", "none"),
        *("--optimizer-sharding", "zero1", "--json", "-o", str(tmp_path / "plan.json")),
    )
    assert done.code == 0, done.err
    h, vocab, inner, projected = 2688, 131_072, 4096, 2 * 4096 + 2 * 1024 + 64
    experts = 23 * (128 // 8) * 2 * h * 1856
    alike = sum(nano_elements(0))
    held = 6 * alike + 12 * alike // 16 + 6 * experts + 12 * experts // 2
    # A token: input of the norm and its result; what the first product makes and three activations; groups.
    mamba = 2 * (2 * h + projected + 3 * inner) + 4 * 8
    attention = 2 * (2 * h + 2 * 4096 + 2 * 256) + 4 * 32
    # The router's input, 6 copies that the experts read, both sides of the activations.
    feed_forward = 2 * (h + h + 6 * h + 2 * (6 * 1856 + 3712))
    saved = TOKENS * (23 * mamba + 6 * attention + 23 * feed_forward + 2 * h + 2 * h + 4 * vocab)
    assert max(json.loads(done.out)["peak_memory_bytes"].values()) == held + saved + 2**25


def test_what_to_type_into_megatron(pipebench: CommandLine, config: str) -> None:
    done = pipebench(
        *asked(config, "--ep", "8", "--pp", "2", "--dp", "8", "--vpp", "1", "--tp", "1", "--export", "megatron")
    )
    assert done.code == 0, done.err
    (line,) = [line for line in done.out.splitlines() if line.startswith("--hybrid-layer-pattern")]
    assert line.replace("|", "") == f"--hybrid-layer-pattern '{NANO['hybrid_override_pattern']}'"
    assert line.count("|") == 1
    assert "--expert-model-parallel-size 8" in done.out
    assert "Mamba-2 layers are not calibrated" in done.err


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (("--cp", "2"), "is Mamba-2: how ranks share out the sequence of its scan has no price"),
        (("--tp", "4"), "tensor parallelism of 1, 2 here, 4 is pinned"),
    ],
)
def test_what_is_refused(pipebench: CommandLine, config: str, option: tuple[str, str], reason: str) -> None:
    done = pipebench(*asked(config, "--ep", "8", "--micro-batch-size", "1", *option))
    assert done.code != 0
    assert reason in done.err


def test_a_run_that_names_it_is_predicted_without_an_interval(pipebench: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    others = [
        RUN | {"id": name, "model": name, "ep": "8"} for name in ("Nemotron_3_Ultra", "Nemotron_3_5_Lightning")
    ]
    path.write_bytes(table(RUN, *others))
    done = pipebench("accuracy", str(path), "--json")
    assert done.code == 0, done.err
    plain = json.loads(done.out)
    (row, *refused) = plain["rows"]
    assert row["simulated_s"] > 0
    assert (row["low_s"], row["high_s"]) == (None, None)
    assert {each["reason"] for each in refused} == {"experts that the suite does not know"}
