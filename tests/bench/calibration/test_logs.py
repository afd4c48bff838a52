"""Logs of frameworks as runs: medians, degrees, and what is refused with its place."""

from pathlib import Path

import pytest

from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.sources import measured_runs
from pipebench.domain.errors import PipebenchError
from tests.bench.calibration.logs import TITAN, megatron, torchtitan

DEVICE = "A100-SXM4-80GB"


@pytest.fixture
def read(tmp_path: Path):  # type: ignore[no-untyped-def]
    def work(text: str, device: str | None = DEVICE) -> Run:
        path = tmp_path / "train.log"
        path.write_text(text)
        (made,) = measured_runs([str(path)], device)
        return made

    return work


def test_a_megatron_log_is_a_run(read) -> None:  # type: ignore[no-untyped-def]
    run = read(megatron())
    assert run.iter_s == pytest.approx(0.1005)  # the median of 110, 101, 99, 100: two are warm-up
    assert (run.layers, run.hidden, run.heads, run.seq, run.vocab) == (4, 1024, 16, 512, 50304)
    assert (run.gpus, run.tp, run.pp, run.dp, run.mbs, run.gbs) == (8, 2, 2, 2, 2, 16)
    assert (run.device, run.framework, run.precision) == (DEVICE, "Megatron-LM", "bf16")
    assert (run.recompute, run.schedule) == ("none + sequence parallel", "1f1b")
    made = express(run)
    assert (made.spec.tp, made.spec.mini_batch, made.cluster.types[0].name) == (2, 16, DEVICE)


def test_options_of_megatron(read) -> None:  # type: ignore[no-untyped-def]
    full = read(
        megatron(recompute_granularity="full", virtual_pipeline_model_parallel_size=2, sequence_parallel=False)
    )
    assert (full.recompute, full.schedule, full.vpp) == ("full + no sequence parallel", "interleaved-1f1b", 2)
    old = read(
        megatron(recompute_granularity=..., checkpoint_activations=True, deepspeed=True, bf16=False, fp16=True)
    )
    assert (old.recompute, old.framework, old.precision) == (
        "full + sequence parallel",
        "Megatron-DeepSpeed",
        "fp16",
    )


def test_a_line_may_start_with_its_rank_and_an_iteration_counts_once(read) -> None:  # type: ignore[no-untyped-def]
    text = "\n".join(f"7: {line}" for line in megatron().splitlines())
    assert read(text).iter_s == read(megatron()).iter_s
    assert read(megatron() + megatron()).iter_s == read(megatron()).iter_s


def test_of_a_short_log_the_last_iteration_counts(read) -> None:  # type: ignore[no-untyped-def]
    assert read(megatron(times_ms=(900, 150, 120))).iter_s == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (megatron(times_ms=()), "there is no iteration line"),
        (megatron().partition("end of arguments ---------------------\n")[2], "no dump of its arguments"),
        (megatron(num_layers=...), "the arguments do not say num_layers"),
        (megatron(num_layers="four"), r"line 10: num_layers: 'four' is not a whole number"),
        (megatron(world_size=10**30), r"line 18: world_size: "),
        (megatron(ffn_hidden_size=5000), r"ffn_hidden_size: 5000, a GPT's is taken as"),
        (megatron().replace("(ms): 99.0", "(ms): 0.0"), r"line 24: '0.0' is not a time"),
    ],
)
def test_what_a_megatron_log_lacks_is_said_with_its_place(read, text: str, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PipebenchError, match=words) as error:
        read(text)
    assert "train.log: " in error.value.message


def test_a_log_needs_a_device(read) -> None:  # type: ignore[no-untyped-def]
    for text in (megatron(), torchtitan()):
        with pytest.raises(PipebenchError, match="does not say its device"):
            read(text, None)


def test_a_torchtitan_log_is_a_run(read) -> None:  # type: ignore[no-untyped-def]
    run = read(torchtitan())
    assert run.iter_s == pytest.approx(4 * 8192 / (1024 * 8))  # tokens of an iteration by tokens a second
    assert (run.model, run.seq, run.gpus) == ("llama3-8b", 8192, 8)
    assert (run.tp, run.pp, run.dp, run.mbs, run.gbs) == (4, 2, 1, 1, 4)
    assert (run.framework, run.schedule, run.recompute) == ("torchtitan, FSDP=0", "1f1b", "full")
    assert express(run).spec.framework == "torchtitan-eager"


@pytest.mark.parametrize(
    ("said", "compiles"),
    [
        ({"compile": {"enable": True, "components": ["model", "loss"]}}, True),
        ({"compile": {"enable": True}}, True),
        ({"compile": {"enable": True, "components": ["loss"]}}, False),
        ({"compile": {"enable": False, "components": ["model"]}}, False),
        ({"training": TITAN["training"] | {"compile": True}}, True),
        ({"training": TITAN["training"] | {"compile": False}}, False),
    ],
)
def test_a_torchtitan_log_says_whether_layers_were_compiled(read, said, compiles: bool) -> None:  # type: ignore[no-untyped-def]
    run = read(torchtitan(config=TITAN | said))
    assert run.precision == ("bf16+compile" if compiles else "bf16")
    assert express(run).spec.framework == ("torchtitan" if compiles else "torchtitan-eager")


def test_shards_come_from_the_mesh_where_the_configuration_leaves_them_open(read) -> None:  # type: ignore[no-untyped-def]
    config = TITAN | {"parallelism": {"data_parallel_shard_degree": -1, "tensor_parallel_degree": 2}}
    mesh = "[rank0]:[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]"
    run = read(torchtitan(config=config, mesh=mesh))
    assert (run.gpus, run.dp, run.gbs, run.framework) == (8, 4, 16, "torchtitan, FSDP=4")
    assert express(run).spec.optimizer_sharding == "zero3"


@pytest.mark.parametrize(("said", "recompute"), [({}, "selective"), ({"selective_ac_option": "2"}, "unknown")])
def test_selective_checkpointing_is_by_operator_or_by_layer(  # type: ignore[no-untyped-def]
    read, said: dict[str, str], recompute: str
) -> None:
    run = read(torchtitan(config=TITAN | {"activation_checkpoint": {"mode": "selective"} | said}))
    assert run.recompute == recompute


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (torchtitan(rates=()), "no line of a step"),
        (torchtitan().partition("}\n}")[2], "the log has no configuration"),
        (torchtitan()[:200] + "\n tps: 1 mfu: 2", "line 1: its configuration is not JSON"),
        (
            torchtitan(config=TITAN | {"training": {"seq_len": 8192}}),
            "line 1: training.local_batch_size: it is not",
        ),
        (torchtitan(config=TITAN | {"training": {"seq_len": "x"}}), "training.* is not a whole number|not said"),
    ],
)
def test_what_a_torchtitan_log_lacks_is_said_with_its_place(read, text: str, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PipebenchError, match=words):
        read(text)


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(megatron())
    with pytest.raises(PipebenchError, match="was read before"):
        measured_runs([str(path), str(path)], DEVICE)
