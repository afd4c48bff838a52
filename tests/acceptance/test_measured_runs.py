"""Predictions against published iterations: the errors that the docs state, on the runs that were given.

A model of training that drifts away from what was measured fails here, whatever else it passes.
"""

from collections.abc import Sequence
from statistics import fmean, median

import pytest

from pipebench.bench.accuracy.comparison import held_against
from pipebench.bench.accuracy.reader import read_runs
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.summary import Accuracy
from pipebench.hooks.manager import Host
from tests.shared_data import shared_data

HOST = Host()


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return list(read_runs(str(shared_data("measured/published_runs.csv"))))


def accuracy(runs: Sequence[Run], start: str, step: int = 1) -> Accuracy:
    return held_against(HOST, [run for run in runs if run.id.startswith(start)][::step])


def errors(made: Accuracy) -> list[float]:
    return [abs(row.error) for row in made.rows if row.error is not None]


def test_one_node(runs: list[Run]) -> None:
    """Every fifth of 540 runs of Megatron-DeepSpeed: 5.0 % over all of them."""
    made = accuracy(runs, "vtrain-s", 5)
    assert len(errors(made)) == len(made.rows) == 108
    assert fmean(errors(made)) < 0.065
    assert 0.85 <= (made.covered or 0.0) <= 1.0


def test_many_nodes(runs: list[Run]) -> None:
    """73 runs on 64 and 512 GPUs: 7.4 %, median 3.5 %. Some of them are outliers that nothing explains."""
    made = accuracy(runs, "vtrain-m")
    assert len(errors(made)) == 73
    assert fmean(errors(made)) < 0.09
    assert median(errors(made)) < 0.05
    assert 0.85 <= (made.covered or 0.0) <= 1.0


def test_runs_to_which_no_constant_was_fitted(runs: list[Run]) -> None:
    """Korthikanti et al.: full and selective recomputation, 8 and 64 GPUs: 6.8 %; from SC'21: 8.2 %."""
    assert fmean(errors(accuracy(runs, "korthikanti"))) < 0.08
    assert fmean(errors(accuracy(runs, "megatron21"))) < 0.1


def test_choices_among_layouts(runs: list[Run]) -> None:
    """Rank agreement within groups of one model, GPU count and mini-batch: 0.90 over all groups."""
    made = accuracy([run for run in runs if run.gpus in (2, 512)], "vtrain")
    assert (made.mean_tau or 0.0) > 0.85
    assert (made.mean_regret if made.mean_regret is not None else 1.0) < 0.06


def test_torchtitan(runs: list[Run]) -> None:
    """FSDP and selective checkpoints on a device of 500 W without a table: 24.9 % too fast. Memory is
    within 8 % but for the run of eight stages, whose micro-batch nobody knows.
    """
    made = accuracy(runs, "torchtitan")
    assert len(errors(made)) == 5
    assert fmean(errors(made)) < 0.27
    known = accuracy([run for run in runs if run.pp == 1], "torchtitan")
    assert known.memory is not None
    assert known.memory.errors.count == 4
    assert known.memory.errors.mean_absolute < 0.08
    assert known.memory.at_or_above == 1.0


def test_tensor_parallelism_beside_products(runs: list[Run]) -> None:
    """Llama-3 70B on 64 H100: 0.4 and 0.8 % off with the overlap that both sources speak of, 12 and 14 without."""
    ids = ("megatron-lm-llama3-70B", "bridge-25.11-LLAMA3_70B-DGX-H100-FP8-CS-64-128")
    made = held_against(HOST, [run for run in runs if run.id.startswith(ids)])
    assert len(errors(made)) == 2
    assert max(errors(made)) < 0.03


def test_racks_of_devices_whose_kernels_were_not_measured(runs: list[Run]) -> None:
    """Llama-3 on GB200 and GB300: 14.3 %, median 10.1 %, with the kernels of a B200; one run says too little."""
    racks = [run for run in runs if run.device.startswith(("DGX-GB200", "DGX-GB300"))]
    wide = [run for run in racks if run.precision != "NVFP4" and (run.cp or 1) == 1]
    made = held_against(HOST, [run for run in wide if "LLAMA" in run.model])
    assert len(errors(made)) == 17
    assert fmean(errors(made)) < 0.18
    assert median(errors(made)) < 0.12
    assert sum(row.low_s <= row.measured_s <= row.high_s for row in made.rows if row.low_s and row.high_s) >= 16


def test_products_in_four_bits(runs: list[Run]) -> None:
    """Llama-3 in NVFP4 on GB200 and GB300: 4.3 %, at most 11.5 %, with a surface of products of a B200."""
    made = held_against(HOST, [run for run in runs if run.precision == "NVFP4"])
    assert len(errors(made)) == 7
    assert fmean(errors(made)) < 0.05
    assert max(errors(made)) < 0.12
    assert all(row.low_s <= row.measured_s <= row.high_s for row in made.rows if row.low_s and row.high_s)


def test_experts_that_ranks_share_out(runs: list[Run]) -> None:
    """Qwen3 on five kinds of devices: 20.4 %, median 13.9 %; 8 to 13 % until spring 2026, and faster since."""
    experts = [run for run in runs if "Qwen3" in run.model and (run.ep or 1) > 1]
    made = held_against(HOST, experts)
    assert len(errors(made)) == 29
    assert fmean(errors(made)) < 0.22
    assert median(errors(made)) < 0.15
    spring = held_against(HOST, [run for run in experts if run.id.startswith(("bridge-26.02", "bridge-26.04"))])
    assert len(errors(spring)) == 16
    assert fmean(errors(spring)) < 0.12


def test_experts_beside_dense_layers_and_windows(runs: list[Run]) -> None:
    """DeepSeek-V3: 16.4 %, median 7.2 %, 4.5 % until spring 2026. GPT OSS 120B: 29.7 %. Nothing was fitted."""
    experts = [run for run in runs if (run.ep or 1) > 1]
    made = held_against(HOST, [run for run in experts if "DeepSeekV3" in run.model])
    assert len(errors(made)) == 15
    assert fmean(errors(made)) < 0.19
    assert median(errors(made)) < 0.09
    spring = [
        abs(row.error) for row in made.rows if row.error and row.id.startswith(("bridge-26.02", "bridge-26.04"))
    ]
    assert len(spring) == 8
    assert fmean(spring) < 0.06
    made = held_against(HOST, [run for run in experts if "GPT OSS" in run.model])
    assert len(errors(made)) == 12
    assert fmean(errors(made)) < 0.32


def test_hybrid_models(runs: list[Run]) -> None:
    """Nemotron 3 Nano, nine runs, fitted to nothing: 13.4 % too fast, the scan by a roofline. No interval."""
    made = held_against(HOST, [run for run in runs if run.model.startswith("Nemotron_3_Nano")])
    assert len(errors(made)) == len(made.rows) == 9
    assert fmean(errors(made)) < 0.15
    assert all(row.low_s is None for row in made.rows)


def test_the_zero_bubble_paper(runs: list[Run]) -> None:
    """Four schedules of two models: 3.6 % with nothing fitted to them; every peak is below its upper end."""
    made = accuracy(runs, "zb-t4")
    assert len(errors(made)) == 24
    assert fmean(errors(made)) < 0.05
    assert made.memory is not None
    assert made.memory.errors.mean_absolute < 0.05
    assert made.memory.at_or_above == 1.0
