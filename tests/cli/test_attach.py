"""pipebench attach with logs of frameworks, as a user runs it."""

import json
from pathlib import Path

import pytest

from pipebench.documents.document import Rows
from pipebench.formats.documents import read_document, write_document
from pipebench.simulation.step_parts import MILLION, Part, PartedStep
from tests.bench.attachment.card_trace import ADAM, ALL_REDUCE, PRODUCT, card_trace, write_trace
from tests.bench.attachment.logged_row import logged_run, store_of_logged_run
from tests.bench.calibration.logs import TITAN, megatron, torchtitan
from tests.cli.command_line import CommandLine
from tests.report.rows import row


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return store_of_logged_run(tmp_path_factory.mktemp("run") / "results")


@pytest.mark.parametrize(("part", "factor"), [("kernels", 1.3), ("tensor_parallel", 4.0), ("optimizer", 0.5)])
def test_a_log_whose_part_took_longer(
    pipebench: CommandLine, store: str, tmp_path: Path, part: Part, factor: float
) -> None:
    step = PartedStep(*logged_run()[:3])
    measured_ms = step.scaled_ns({part: round(factor * MILLION)}) / 1e6
    log = tmp_path / "train.log"
    log.write_text(megatron([9000, 9000, *[measured_ms] * 3], digits=6))
    done = pipebench("attach", store, str(log))
    assert done.code == 0, done.err
    assert "median of 3 iteration lines" in done.out
    assert "busy longest" in done.out
    told = json.loads(pipebench("attach", store, str(log), "--json").out)
    assert told["measured_s"] == pytest.approx(measured_ms / 1e3, abs=1e-9)
    explained = told["explanation"]
    assert sum(each["simulated_ns"] for each in explained["parts"]) == explained["simulated_ns"] == step.total_ns
    for device in explained["by_device"]:
        assert sum(device["ns"].values()) == step.total_ns
    (found,) = [each for each in explained["parts"] if each["part"] == part]
    assert found["factor"] == pytest.approx(factor, abs=1e-4)


def test_the_words_of_parts_that_cannot_explain_it(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    log, row = tmp_path / "train.log", tmp_path / "row.json"
    log.write_text(megatron([10_000] * 5))
    said = pipebench("attach", store, str(log), "-o", str(row)).out
    assert "gradient reduction" in said
    assert "cannot explain it alone: 10 times as long the step takes" in said
    log.write_text(megatron([1] * 5))
    said = pipebench("attach", store, str(log)).out
    assert "cannot explain it alone: without it the step takes" in said
    (kept,) = read_document(row, "rows").rows
    assert kept.measured_s == 10.0
    assert kept.measured_throughput == 1.6


LLAMA = {"swiglu": True, "ffn_hidden_size": 3584, "group_query_attention": True, "num_query_groups": 4}


def test_a_log_of_torchtitan(pipebench: CommandLine, tmp_path: Path) -> None:
    store = store_of_logged_run(tmp_path / "results", **LLAMA)
    config = TITAN | {
        "model": {"name": "llama3", "flavor": "debugmodel"},
        "activation_checkpoint": {"mode": "none"},
        "training": {"local_batch_size": 8, "global_batch_size": 16, "seq_len": 512},
        "parallelism": TITAN["parallelism"]
        | {
            "data_parallel_replicate_degree": 2,
            "tensor_parallel_degree": 2,
            "pipeline_parallel_microbatch_size": 2,
        },
    }
    log = tmp_path / "titan.log"
    log.write_text(torchtitan([300, 5120, 5120], config))
    told = json.loads(pipebench("attach", store, str(log), "--json").out)
    assert told["measured_s"] == pytest.approx(16 * 512 / (5120 * 8))
    assert told["source"] == "median throughput of the steps of a torchtitan log"
    assert told["explanation"]["parts"]
    log.write_text(torchtitan([300, 5120], config | {"model": TITAN["model"], "activation_checkpoint": {}}))
    done = pipebench("attach", store, str(log))
    assert done.code == 2
    assert "layers 32, the plan has 4; width 4096, the plan has 1024; heads 32, the plan has 16" in done.err


def test_the_log_of_another_run(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    log = tmp_path / "other.log"
    log.write_text(megatron(num_layers=8, micro_batch_size=1, virtual_pipeline_model_parallel_size=2))
    done = pipebench("attach", store, str(log))
    assert done.code == 2
    for words in (
        "micro-batch of a replica 1, the plan has 2",
        "layers 8, the plan has 4",
        "stages of a device 2",
    ):
        assert words in done.err
    log.write_text(megatron(tensor_model_parallel_size=4, data_parallel_size=1))
    done = pipebench("attach", store, str(log))
    for words in ("tensor parallelism 4, the plan has 2", "replicas 1, the plan has 2"):
        assert words in done.err
    log.write_text(megatron())
    twice = pipebench("attach", store, str(log), str(log))
    assert twice.code == 2
    assert "2 logs, a row has one run" in twice.err


FP8_AND_MORE = {
    "fp8": "hybrid",
    "recompute_granularity": "full",
    "use_distributed_optimizer": True,
    "sequence_parallel": False,
    "tp_comm_overlap": True,
    "context_parallel_size": 2,
}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"hidden_size": 2048}, ": width 2048, the plan has 1024 ("),
        ({"num_attention_heads": 8}, ": heads 8, the plan has 16 ("),
        ({"ffn_hidden_size": 4096}, ": feed-forward width 4096, the plan has 3584 ("),
        ({"num_query_groups": 8}, ": key and value heads 8, the plan has 4 ("),
        ({"seq_length": 1024}, ": tokens of a sample 1024, the plan has 512 ("),
        ({"padded_vocab_size": 128256}, ": padded vocabulary 128256, the plan has 50432 ("),
        ({"swiglu": False}, ": a gated feed-forward off, the plan has on ("),
        ({"pipeline_model_parallel_layout": "Ettt|tL"}, ": layers of the stages 3-1, the plan has 2-2 ("),
        (
            FP8_AND_MORE,
            ": context parallelism 2, the plan has 1; recomputation full, the plan has none; "
            "precision of products fp8, the plan has bf16; optimizer sharding zero1, the plan has none; "
            "sequence parallelism off, the plan has on; tensor-parallel overlap on, the plan has off (",
        ),
    ],
)
def test_a_log_of_other_sizes_or_settings_is_refused(
    pipebench: CommandLine, tmp_path: Path, said: dict[str, object], words: str
) -> None:
    store = store_of_logged_run(tmp_path / "results", **LLAMA)
    log = tmp_path / "other.log"
    log.write_text(megatron(**LLAMA | said))
    done = pipebench("attach", store, str(log))
    assert done.code == 2
    assert words in done.err


def test_the_log_of_a_plan_that_says_all_of_it_is_taken(pipebench: CommandLine, tmp_path: Path) -> None:
    said = {
        **{"use_distributed_optimizer": True, "tp_comm_overlap": True, "recompute_granularity": "full"},
        **{"pipeline_model_parallel_layout": "Ettt|tL", "padded_vocab_size": 50432},
    }
    store = store_of_logged_run(tmp_path / "results", **LLAMA, **said)
    log = tmp_path / "train.log"
    log.write_text(megatron(**LLAMA, **said))
    done = pipebench("attach", store, str(log))
    assert done.code == 0, done.err
    assert "busy longest" in done.out


def test_what_is_no_store_and_what_took_no_time(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "rank0.json", card_trace([(PRODUCT, 0.0, 0.0)], 0.0))
    done = pipebench("attach", store, trace)
    assert done.code == 2
    assert "take no time" in done.err
    done = pipebench("attach", str(tmp_path / "nowhere"), trace)
    assert done.code == 2
    assert f"there are no results at '{tmp_path / 'nowhere'}'" in done.err


def test_of_several_rows_one_is_to_be_named(pipebench: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    write_document(file, "rows", Rows(rows=(row("a", key="1" * 64), row("b", key="2" * 64))))
    done = pipebench("attach", str(file), "train.log")
    assert done.code == 2
    assert "has 2 rows and one is asked for" in done.err
    assert f"name one: {file}:11111111 (a, sync), {file}:22222222 (b, sync)" in done.err


def test_a_trace_of_one_rank_settles_the_kernels(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    """Kernels 1.3 and collectives twice as long: the trace shows the first, what is left is the second."""
    step = PartedStep(*logged_run()[:3])
    measured_us = step.scaled_ns({"kernels": 1_300_000, "tensor_parallel": 2_000_000}) / 1e3
    (lane,) = [each.ns for each in step.devices if 0 in each.devices]
    kernels_us, collectives_us = 1.3 * lane["kernels"] / 1e3, 2 * lane["tensor_parallel"] / 1e3
    after = kernels_us + collectives_us
    kernels = [
        (PRODUCT, 0.0, kernels_us),
        (ALL_REDUCE, kernels_us, collectives_us),
        (ADAM, after, lane["optimizer"] / 1e3),
    ]
    trace = write_trace(tmp_path / "rank0.json", card_trace(kernels, measured_us))
    done = pipebench("attach", store, trace)
    assert done.code == 0, done.err
    assert "as the traces say, kernels 1.30 and optimizer 1.00 times as long as simulated; with that" in done.out
    told = json.loads(pipebench("attach", store, trace, "--json").out)
    (rank,) = told["rank_parts"]
    assert sum(each["measured_ns"] for each in rank["groups"]) == rank["iteration_ns"]
    assert sum(each["simulated_ns"] for each in rank["groups"]) == step.total_ns
    explained = told["explanation"]
    assert explained["given"] == pytest.approx({"kernels": 1.3, "optimizer": 1.0}, abs=1e-4)
    (found,) = [each for each in explained["parts"] if each["part"] == "tensor_parallel"]
    assert found["factor"] == pytest.approx(2.0, rel=1e-3)
    assert {each["part"] for each in explained["parts"]} == {"tensor_parallel", "messages", "gradients", "bubble"}
    log = tmp_path / "train.log"
    log.write_text(megatron([9000, 9000, *[measured_us / 2e3] * 3], digits=6))
    both = json.loads(pipebench("attach", store, str(log), trace, "--json").out)
    assert both["measured_s"] == pytest.approx(measured_us / 2e6)
    assert both["explanation"]["given"] == explained["given"]
