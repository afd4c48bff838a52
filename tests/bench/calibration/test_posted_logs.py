"""Logs as people post them: formats of several years and forks, damaged ends, several jobs in one file.

Formats are those of Megatron-LM's `training_log` and `_print_args` (2020 to 2026), BigScience's and deepspeedai's
Megatron-DeepSpeed, GPT-NeoX's arguments, AMD's Primus, NeMo's progress lines, and torchtitan's metrics and
`maybe_log` (2024 to 2026).
"""

import json
from pathlib import Path

import pytest

from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.sources import measured_runs
from pipebench.domain.errors import PipebenchError
from tests.bench.calibration.logs import TITAN, megatron, posted, torchtitan

DEVICE = "A100-SXM4-80GB"
DUMP = megatron(times_ms=())


def read(folder: Path, log: str | bytes) -> Run:
    path = folder / "train.log"
    path.write_bytes(log if isinstance(log, bytes) else log.encode())
    (run,) = measured_runs([str(path)], DEVICE)
    return run


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("elapsed time per iteration (ms): {:.1f} |", 0.1005),
        ("elapsed time per iteration (ms):  {:.1f} |", 0.1005),
        ("elapsed time per iteration (s): {:.2f} |", 100.5),
        ("elapsed time per iteration (ms): {:.1f}/7000.0 |", 0.1005),
        ("current time: 1706860208.35 | elapsed time per iteration (ms): {:.1f} |", 0.1005),
    ],
)
def test_the_time_of_an_iteration_is_in_its_own_unit(tmp_path: Path, line: str, seconds: float) -> None:
    assert read(tmp_path, DUMP + posted(line=line)).iter_s == pytest.approx(seconds)


def test_iterations_of_a_batch_that_still_grows_do_not_count(tmp_path: Path) -> None:
    grown = DUMP + posted((900, 50, 50, 50, 50, 50, 50, 200, 202, 204), batches=dict.fromkeys(range(1, 8), 4))
    assert read(tmp_path, grown).iter_s == pytest.approx(0.202)
    assert "5 of a smaller batch" in read(tmp_path, grown).how_read
    with pytest.raises(PipebenchError, match="no iteration line has the whole mini-batch of 16 samples"):
        read(tmp_path, DUMP + posted(batches=dict.fromkeys(range(1, 7), 4)))


def test_iterations_of_short_samples_do_not_count(tmp_path: Path) -> None:
    short = posted((90, 50, 50, 50, 50)).replace("loss scale", "actual seqlen:    64 | loss scale")
    whole = posted((200, 200), start=6).replace("loss scale", "actual seqlen:   512 | loss scale")
    assert read(tmp_path, DUMP + short + whole).iter_s == pytest.approx(0.2)


def test_an_iteration_without_its_update_counts_where_there_is_no_other(tmp_path: Path) -> None:
    times = (900, 90, 90, 90, 90, 100, 100)
    assert read(tmp_path, DUMP + posted(times, skipped=range(1, 6))).iter_s == pytest.approx(0.1)
    assert read(tmp_path, DUMP + posted(times, skipped=range(1, 8))).iter_s == pytest.approx(0.09)


def test_a_line_that_was_cut_inside_its_time_does_not_count(tmp_path: Path) -> None:
    cut = DUMP + posted((900, 150, 120, 100)).rpartition("0.0 |")[0]
    assert cut.endswith("(ms): 10")
    assert read(tmp_path, cut).iter_s == pytest.approx(0.12)
    log = torchtitan((300, 1024, 1024))
    assert read(tmp_path, log.rpartition(",024")[0]).iter_s == read(tmp_path, log).iter_s


@pytest.mark.parametrize(
    "change",
    [
        lambda log: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in log.splitlines()).encode(),
        lambda log: log.replace("\n", "\r\n").encode(),
        lambda log: log.encode("utf-16"),
        lambda log: b"10%|\x96\x88 caf\xe9\n" + log.encode(),
        lambda log: "".join(f"[default7]:{line}\n" for line in log.splitlines()).encode(),
    ],
    ids=["colours", "Windows", "PowerShell", "torn letters", "rank"],
)
def test_what_a_terminal_adds_is_taken_off(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    assert read(tmp_path, change(megatron())) == read(tmp_path, megatron())


def test_a_job_that_was_started_again_is_one_run_and_another_run_is_refused(tmp_path: Path) -> None:
    again = DUMP + posted((5000, 300, 80, 80, 80, 80, 80, 80, 80), start=7)
    run = read(tmp_path, DUMP + posted() + again)
    assert run.iter_s == pytest.approx(0.08)
    assert run.how_read == "Megatron-LM log: median of 11 iteration lines, 4 dropped"
    assert read(tmp_path, DUMP + DUMP + posted()).iter_s == pytest.approx(0.1005)  # one of them never trained
    with pytest.raises(PipebenchError, match=r"line 27: another run starts, with tp 1 and not 2"):
        read(tmp_path, DUMP + posted() + megatron(tensor_model_parallel_size=1, data_parallel_size=4))
    other = TITAN | {"activation_checkpoint": {"mode": "none"}}
    with pytest.raises(PipebenchError, match="another run starts, with another 'activation_checkpoint'"):
        read(tmp_path, torchtitan() + torchtitan(config=other))


@pytest.mark.parametrize(
    ("said", "recompute"),
    [
        ({"activations_checkpoint_method": "uniform", "activations_checkpoint_num_layers": 1}, "full"),
        ({"activations_checkpoint_method": "uniform", "activations_checkpoint_num_layers": 2}, "stage"),
        ({"activations_checkpoint_method": "block", "activations_checkpoint_num_layers": 2}, "full"),
        ({"activations_checkpoint_method": None, "activations_checkpoint_num_layers": 1}, "none"),
        ({"checkpoint_activations": True, "checkpoint_num_layers": 2}, "stage"),
    ],
)
def test_recomputation_had_other_names_until_2022(tmp_path: Path, said: dict[str, object], recompute: str) -> None:
    run = read(tmp_path, megatron(recompute_granularity=..., sequence_parallel=..., **said))
    assert run.recompute == f"{recompute} + no sequence parallel"


def test_a_dense_model_of_megatron_deepspeed(tmp_path: Path) -> None:
    run = read(tmp_path, megatron(deepspeed=True, num_experts="[1]", swiglu=True, num_key_value_heads=4))
    assert (run.model, run.kv_heads) == ("llama", 4)
    assert read(tmp_path, megatron(deepspeed=True, num_experts="[8]")).model == "mixture-of-experts"


@pytest.mark.parametrize(
    ("stage", "words"), [("0", ", no distributed optimizer"), ("1", ", distributed optimizer"), ("3", ", FSDP")]
)
def test_what_deepspeed_shares_out_is_what_its_engine_prints(tmp_path: Path, stage: str, words: str) -> None:
    line = "[2024-05-04 11:33:02,220] [INFO] [config.py:1000:print]   zero_optimization_stage ...... "
    log = megatron(deepspeed=True, zero_stage="1.0")
    assert read(tmp_path, f"{log}{line}{stage}\n").framework == f"Megatron-DeepSpeed{words}"
    with pytest.raises(PipebenchError, match="zero_stage"):
        read(tmp_path, f"{log}{line}2\n")


NEOX = """-------------------- arguments --------------------
  num_layers ...................... 32..........................updated
  pipe_parallel_size .............. 1...........................updated
---------------- end of arguments ----------------
 samples/sec: 13.5 | iteration       10/  320000 | elapsed time per iteration (ms): 2362.2 | learning rate: 1E-6 |
"""
NEMO = "Training epoch 0, iteration 5/99 | lr: 1e-06 | global_step: 5 | train_step_timing in s: 6.08 |\n"
NANOTRON = "[INFO|DP=0|PP=0|TP=0|node1]: iteration: 9 / 10 | elapsed_time_per_iteration_ms: 45 | lm_loss: 10.6\n"
TRAINER = "{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 1e-5, 'epoch': 0.1}\n"
TITAN_2024 = (
    "[rank0]:2024-06-13 12:53:42,562 - root - INFO - step: 10  loss: 10.7798  memory: 41.18GiB(43.33%)  "
    "wps: 2,792  mfu: 16.35%\n"
)


@pytest.mark.parametrize(
    ("log", "framework"),
    [
        (NEOX, "line 3: a log of GPT-NeoX"),
        (NEMO, "a log of NeMo"),
        (NANOTRON, "a log of nanotron"),
        (TRAINER, "neither a table of runs nor a log that is read"),
        (TITAN_2024, "the log has no configuration"),
        (posted(), "no dump of its arguments"),
    ],
)
def test_what_no_run_can_be_read_from_is_called_by_its_name(tmp_path: Path, log: str, framework: str) -> None:
    with pytest.raises(PipebenchError, match=framework) as error:
        read(tmp_path, log)
    assert error.value.hint


@pytest.mark.parametrize("start", ["Running with configs: ", "Running with args: "])
def test_torchtitan_printed_its_configuration_as_a_dict_of_python(tmp_path: Path, start: str) -> None:
    """Until December 2025 (#2094), in one line; until June 2025 with `batch_size`."""
    older = TITAN | {"training": {"batch_size": 4, "seq_len": 8192}, "compile": {"enable": False, "name": None}}
    printed = f"Running with configs: {json.dumps(TITAN, indent=2)}"
    assert printed in torchtitan()
    assert read(tmp_path, torchtitan().replace(printed, f"{start}{older!r}")) == read(tmp_path, torchtitan())
    before = {name: part for name, part in older.items() if name != "parallelism"} | {"experimental": {}}
    with pytest.raises(PipebenchError, match="before April 2025"):
        read(tmp_path, torchtitan().replace(printed, f"{start}{before!r}"))


def test_products_of_8_bits_are_in_torchtitans_configuration(tmp_path: Path) -> None:
    """Its line of a step said a share of the peak of bf16 until February 2026 (#2451)."""
    model = {"name": "llama3", "flavor": "8B", "converters": ["float8"]}
    assert read(tmp_path, torchtitan(config=TITAN | {"model": model})).precision == "narrower-than-bf16"
    assert read(tmp_path, torchtitan(config=TITAN | {"model": model | {"converters": []}})).precision == "bf16"
