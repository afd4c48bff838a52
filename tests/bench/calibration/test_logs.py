"""Logs of frameworks as runs: medians, degrees, and what is refused with its place."""

import re
from pathlib import Path

import pytest

from pipebench.bench.accuracy.assumptions import NotExpressed
from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.sources import measured_runs
from pipebench.domain.errors import PipebenchError
from tests.bench.calibration.logs import TITAN, TITAN_2026, megatron, spec, torchtitan

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


PADDED = " > padded vocab (size: 50257) with 175 dummy tokens (new size: 50432)"


@pytest.mark.parametrize(
    ("said", "line", "vocab"),
    [
        ({"padded_vocab_size": 50688}, PADDED, 50688),
        ({"padded_vocab_size": None}, PADDED, 50432),
        ({"padded_vocab_size": ...}, f"INFO:megatron.core.tokenizers:{PADDED}", 50432),
        ({"padded_vocab_size": None, "vocab_size": 50257}, "", 50432),
        ({"padded_vocab_size": None, "vocab_size": 50257, "make_vocab_size_divisible_by": 64}, "", 50304),
        ({"padded_vocab_size": None, "vocab_size": None}, "", None),
    ],
)
def test_the_vocabulary_is_printed_after_the_arguments(  # type: ignore[no-untyped-def]
    read, said: dict[str, object], line: str, vocab: int | None
) -> None:
    """Megatron-LM dumps arguments first and then builds the tokenizer, which pads; here for two ranks of tp."""
    end = "end of arguments ---------------------\n"
    run = read(megatron(**said).replace(end, f"{end}{line}\n"))
    assert run.vocab == vocab
    assert ("vocab" in {each.field for each in express(run).assumptions}) == (vocab is None)


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


LLAMA = {"swiglu": True, "ffn_hidden_size": 3584, "group_query_attention": True, "num_query_groups": 4}


def test_a_llama_of_any_size_is_a_run(read) -> None:  # type: ignore[no-untyped-def]
    run = read(megatron(**LLAMA))
    assert (run.model, run.ffn, run.kv_heads) == ("llama", 3584, 4)
    model = express(run).spec.model
    assert model is not None
    assert "architecture=llama,layers=4,hidden=1024,heads=16,kv_heads=4,ffn=3584," in model
    whole = read(megatron(**LLAMA | {"group_query_attention": False, "num_query_groups": 1}))
    assert whole.kv_heads == 16
    gpt = express(read(megatron(ffn_hidden_size=5120))).spec.model
    assert gpt is not None
    assert "architecture=gpt2" in gpt
    assert "ffn=5120" in gpt


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"num_experts": 8}, "mixture-of-experts"),
        ({"multi_latent_attention": True}, "latent-attention"),
        ({"mtp_num_layers": 1}, "multi-token-prediction"),
        ({"hybrid_layer_pattern": "M*M*"}, "hybrid-layers"),
        ({"kv_channels": 128}, "heads-of-another-width"),
        ({"num_experts": None, "multi_latent_attention": False, "mtp_num_layers": None, "kv_channels": 64}, "gpt"),
    ],
)
def test_a_model_that_is_priced_as_no_other_is_no_gpt(read, said: dict[str, object], model: str) -> None:  # type: ignore[no-untyped-def]
    run = read(megatron(**said))
    assert run.model == model
    if model != "gpt":
        with pytest.raises(NotExpressed, match="an architecture that the suite does not know"):
            express(run)


SAID = "Megatron-LM, distributed optimizer, overlapped reduction"


@pytest.mark.parametrize(
    ("said", "precision", "framework"),
    [
        ({"fp8": "hybrid"}, "fp8", "Megatron-LM"),
        ({"fp8": None, "fp4": None, "fp8_hybrid": False}, "bf16", "Megatron-LM"),
        ({"fp8_e4m3": True}, "fp8", "Megatron-LM"),
        ({"fp4": "e2m1"}, "fp4", "Megatron-LM"),
        ({"tp_comm_overlap": True}, "bf16+asyncTP", "Megatron-LM"),
        ({"tp_comm_overlap": False}, "bf16+no asyncTP", "Megatron-LM"),
        ({"use_distributed_optimizer": True, "overlap_grad_reduce": True}, "bf16", SAID),
        ({"use_distributed_optimizer": False}, "bf16", "Megatron-LM, no distributed optimizer"),
        ({"overlap_grad_reduce": False}, "bf16", "Megatron-LM, no overlapped reduction"),
        ({"use_torch_fsdp2": True}, "bf16", "Megatron-LM, FSDP"),
        (
            {"use_distributed_optimizer": True, "data_parallel_size": 4, "num_distributed_optimizer_instances": 2},
            "bf16",
            "Megatron-LM, distributed optimizer=2",
        ),
        (
            {"use_megatron_fsdp": True, "data_parallel_sharding_strategy": "optim_grads_params"},
            "bf16",
            "Megatron-LM, FSDP",
        ),
        ({"deepspeed": True, "use_distributed_optimizer": False}, "bf16", "Megatron-DeepSpeed"),
    ],
)
def test_what_changes_the_time_is_in_the_run(  # type: ignore[no-untyped-def]
    read, said: dict[str, object], precision: str, framework: str
) -> None:
    run = read(megatron(**said))
    assert (run.precision, run.framework) == (precision, framework)


def test_what_a_megatron_log_says_is_not_assumed(read) -> None:  # type: ignore[no-untyped-def]
    said = dict.fromkeys(("tp_comm_overlap", "use_distributed_optimizer", "overlap_grad_reduce"), False)
    plain = express(read(megatron(**said), "H100-SXM5-80GB"))
    assert plain.assumptions == ()
    assert (plain.spec.framework, plain.spec.optimizer_sharding, plain.reduces_last) == ("megatron", "none", True)
    assert "tensor_overlap" not in plain.spec.profiler
    other = express(read(megatron(**dict.fromkeys(said, True), fp8="hybrid"), "H100-SXM5-80GB"))
    assert other.assumptions == ()
    assert (other.spec.optimizer_sharding, other.reduces_last) == ("zero1", False)
    assert "products=fp8" in other.spec.profiler
    assert "tensor_overlap=on" in other.spec.profiler
    open_log = express(read(megatron(), "H100-SXM5-80GB"))
    assert {each.field for each in open_log.assumptions} == {
        "generation of Megatron-LM",
        "optimizer sharding",
        "tensor-parallel overlap",
    }


@pytest.mark.parametrize(
    ("said", "recompute"),
    [
        ({"recompute_method": "uniform", "recompute_num_layers": 1}, "full"),
        ({"recompute_method": "block", "recompute_num_layers": 2}, "full"),
        ({"recompute_method": "uniform", "recompute_num_layers": 2}, "stage"),
        ({"recompute_granularity": "selective", "recompute_modules": ["core_attn"]}, "selective"),
        ({"recompute_granularity": "selective", "recompute_modules": None}, "selective"),
        (
            {"recompute_granularity": "selective", "recompute_modules": ["core_attn", "mlp"]},
            "selective=core_attn+mlp",
        ),
        ({"recompute_granularity": "selective", "recompute_modules": ["mlp", "layernorm"]}, "selective=mlp"),
        ({"recompute_granularity": "selective", "recompute_modules": ["layernorm", "moe_act"]}, "none"),
        ({"recompute_granularity": "selective", "recompute_modules": []}, "none"),
    ],
)
def test_all_of_a_stage_or_each_layer_runs_again(read, said: dict[str, object], recompute: str) -> None:  # type: ignore[no-untyped-def]
    run = read(megatron(**{"recompute_granularity": "full"} | said))
    assert run.recompute == f"{recompute} + sequence parallel"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 1},
            r"line 15: recompute_num_layers: 1 of the 2 layers of a stage run again.*leave this log out",
        ),
        (
            {"num_layers": 8, "recompute_granularity": "full", "recompute_num_layers": 2},
            r"line 14: recompute_num_layers: groups of 2 layers run again together",
        ),
        (
            {"recompute_granularity": "selective", "recompute_modules": ["core_attn", "mhc"]},
            "line 14: recompute_modules: mhc runs again, which is not priced",
        ),
        (
            {"use_custom_fsdp": True, "data_parallel_sharding_strategy": "optim"},
            "line 18: use_custom_fsdp: its strategy optim is not priced, optim_grads_params is",
        ),
        ({"decoder_first_pipeline_num_layers": 5}, "decoder_first_pipeline_num_layers: 4 layers do not go evenly"),
        ({"pipeline_model_parallel_layout": "Ett|tL"}, "the layout has 3 decoder layers, the model 4"),
        ({"pipeline_model_parallel_layout": "[['decoder']]"}, "pipeline_model_parallel_layout: layout"),
        ({"pipeline_model_parallel_size": 10**9}, "pipeline_model_parallel_size: more than 2000 stages"),
    ],
)
def test_what_no_problem_says_is_refused_at_its_line(read, said: dict[str, object], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PipebenchError) as error:
        read(megatron(**said))
    assert re.search(words, str(error.value)), error.value


@pytest.mark.parametrize(
    ("said", "partition", "virtual"),
    [
        ({}, "", None),
        ({"pipeline_model_parallel_layout": "Ettt|tL"}, "3-1", None),
        ({"pipeline_model_parallel_layout": "Et|t|t|tL"}, "1-1-1-1", 2),
        ({"decoder_first_pipeline_num_layers": 1}, "1-3", None),
        ({"decoder_last_pipeline_num_layers": 1}, "3-1", None),
        (
            {"num_layers": 8, "pipeline_model_parallel_size": 4, "tensor_model_parallel_size": 1}
            | {"decoder_first_pipeline_num_layers": 1, "decoder_last_pipeline_num_layers": 1},
            "1-3-3-1",
            None,
        ),
        (
            {"num_layers": 6, "decoder_first_pipeline_num_layers": 2, "virtual_pipeline_model_parallel_size": 2},
            "1-2-1-2",
            2,
        ),
        (
            {"num_layers": 6, "account_for_embedding_in_pipeline_split": True}
            | {"account_for_loss_in_pipeline_split": True, "virtual_pipeline_model_parallel_size": 2},
            "1-2-2-1",
            2,
        ),
    ],
)
def test_layers_are_cut_as_the_log_says(  # type: ignore[no-untyped-def]
    read, said: dict[str, object], partition: str, virtual: int | None
) -> None:
    run = read(megatron(**said))
    assert (run.partition, run.vpp) == (partition, virtual)
    assert express(run).layers_by_stage == tuple(map(int, (partition or "2-2").split("-")))


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


OPEN = TITAN | {"parallelism": {"data_parallel_shard_degree": -1, "tensor_parallel_degree": 2}}


def test_the_mesh_that_torchtitan_prints_now(read) -> None:  # type: ignore[no-untyped-def]
    mesh = "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=1, etp=1"
    run = read(torchtitan(config=OPEN, mesh=mesh))
    assert (run.gpus, run.tp, run.dp, run.gbs, run.framework) == (8, 2, 4, 16, "torchtitan, FSDP=4")
    assert run.iter_s == pytest.approx(16 * 8192 / (1024 * 8))
    alone = read(torchtitan(config=OPEN, mesh="Building 1-D device mesh with ['tp'], [2]"))
    assert (alone.gpus, alone.dp) == (2, 1)
    unsaid = TITAN | {"parallelism": {"data_parallel_shard_degree": -1}}
    assert read(torchtitan(config=unsaid, mesh=mesh.replace("ep=1", "ep=4"))).tp == 2
    assert read(torchtitan(config=unsaid, mesh=mesh.replace("ep=1", "ep=4"))).ep == 4


def test_a_torchtitan_log_without_its_mesh_has_no_number_of_devices(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PipebenchError) as error:
        read(torchtitan(config=OPEN))
    assert "line 1: parallelism.data_parallel_shard_degree: it is left open, and no line" in error.value.message
    assert error.value.hint is not None
    assert "keep the line `Building device mesh with parallelism" in error.value.hint


@pytest.mark.parametrize(
    ("whole", "stages", "sizes"),
    [(-1, 1, (8192, 2, 8)), (16 * 8192, 1, (8192, 2, 16)), (-1, 2, (8192, 2, 24)), (32 * 8192, 2, (8192, 2, 32))],
)
def test_batches_may_be_said_in_tokens(read, whole: int, stages: int, sizes: tuple[int, int, int]) -> None:  # type: ignore[no-untyped-def]
    tokens = {"num_tokens_per_microbatch_per_dp_rank": 2 * 8192, "num_tokens_per_train_step": whole}
    config = {
        "model_spec": {"name": "llama3", "flavor": "8B"},
        "training": tokens | {"max_context_length": 8192},
        "parallelism": {"data_parallel_shard_degree": 4, "pipeline_parallel_degree": stages}
        | {"num_pp_microbatches": 3},
    }
    run = read(torchtitan(config=config))
    assert (run.seq, run.mbs, run.gbs, run.model) == (*sizes, "llama3-8b")
    config["training"] |= {"max_context_length": 5000}
    with pytest.raises(PipebenchError, match="16384 tokens are no whole samples of 5000"):
        read(torchtitan(config=config))


@pytest.mark.parametrize(("said", "recompute"), [({}, "selective"), ({"selective_ac_option": "2"}, "unknown")])
def test_selective_checkpointing_is_by_operator_or_by_layer(  # type: ignore[no-untyped-def]
    read, said: dict[str, str], recompute: str
) -> None:
    run = read(torchtitan(config=TITAN | {"activation_checkpoint": {"mode": "selective"} | said}))
    assert run.recompute == recompute


PLAIN_AC = {"preserve_rng_state": True, "determinism_check": "default", "debug": False}
SELECTIVE_AC = PLAIN_AC | {"force_recompute_mm_shapes_by_fqns": ["moe.router.gate"]}


@pytest.mark.parametrize(
    ("said", "applied", "recompute"),
    [
        (None, "", "none"),
        (PLAIN_AC, "FullAC", "full"),
        (PLAIN_AC, "", "full"),
        (SELECTIVE_AC, "SelectiveAC", "selective"),
        (SELECTIVE_AC, "", "selective"),
        (SELECTIVE_AC | {"force_recompute_mm_shapes_by_fqns": ["feed_forward.w2"]}, "SelectiveAC", "unknown"),
        (PLAIN_AC, "OwnAC", "unknown"),
        (PLAIN_AC | {"memory_budget": 0.5}, "", "unknown"),
    ],
)
def test_checkpointing_is_a_policy_without_a_mode_since_2026(  # type: ignore[no-untyped-def]
    read, said: dict[str, object] | None, applied: str, recompute: str
) -> None:
    line = f"[titan] - root - INFO - Applied {applied} activation checkpointing to the model" if applied else ""
    run = read(torchtitan(config=TITAN_2026 | {"activation_checkpoint": said}, mesh=line))
    assert run.recompute == recompute


def tagged(text: str, *tags: str) -> str:
    """Each line once for each tag, as torchrun and srun print lines of several ranks. `%` is a time that runs."""
    lines = text.replace("[rank0]:", "").splitlines()
    return "".join(
        f"{tag.replace('%', f'{number:02d}.{number:06d}Z')}{line}\n"
        for number, line in enumerate(lines)
        for tag in tags
    )


@pytest.mark.parametrize(
    "tags",
    [
        (),
        ("[rank0]:",),
        ("[rank0]:", "[rank1]:"),
        ("12: ",),
        (" 0: [default0]:", "12: [default4]:"),
        ("2026-08-22T10:00:% [rank0]:", "2026-08-22T10:00:% [rank1]:"),
    ],
)
def test_each_line_of_the_configuration_may_have_a_rank_before_it(read, tags: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    text = torchtitan(config=TITAN_2026)
    assert read(tagged(text, *tags) if tags else text) == read(text)


STAGES = [["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "layers.3"], ["layers.4"]]
STAGES = [*STAGES, ["layers.5", "layers.6", "layers.7", "norm", "lm_head"]]


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ({}, ("4-4", "1f1b", None)),
        ({"pipeline_parallel_last_stage_less_layers": 3}, ("5-3", "1f1b", None)),
        ({"pipeline_parallel_schedule": "Interleaved1F1B"}, ("2-3-2-1", "interleaved-1f1b", 2)),
        ({"pipeline_parallel_schedule": "ZBVZeroBubble"}, ("2-3-2-1", "zb-v", 2)),
        (
            {"pipeline_parallel_schedule": "Interleaved1F1B", "pipeline_parallel_layers_per_stage": 2}
            | {"pipeline_parallel_last_stage_less_layers": 3},
            ("", "interleaved-1f1b", None),
        ),
        ({"pipeline_parallel_degree": 10**9}, ("", "1f1b", None)),
        (
            {"pipeline_parallel_schedule": "Interleaved1F1B", "module_fqns_per_model_part": STAGES},
            ("1-3-1-3", "interleaved-1f1b", 2),
        ),
        (
            {"pipeline_parallel_schedule": "PipelineScheduleMulti", "pipeline_parallel_schedule_csv": "a.csv"}
            | {"module_fqns_per_model_part": STAGES},
            ("1-3-1-3", "", 2),
        ),
    ],
)
def test_torchtitan_deals_out_layers_as_its_configuration_says(read, said, order) -> None:  # type: ignore[no-untyped-def]
    """Embedding and head count as layers; torchtitan stops where a stage would have less than none. The order of a
    file beside the log is not in it.
    """
    run = read(torchtitan(config=TITAN_2026 | {"parallelism": TITAN_2026["parallelism"] | said}))
    assert (run.partition, run.schedule, run.vpp) == order


def test_the_sizes_of_a_torchtitan_model_are_in_its_configuration(read) -> None:  # type: ignore[no-untyped-def]
    run = read(torchtitan(config=TITAN_2026))
    assert (run.layers, run.hidden, run.heads, run.kv_heads, run.ffn, run.vocab) == (8, 1024, 16, 4, 3584, 50304)
    assert (run.mbs, run.gbs, run.pp) == (1, 8, 2)
    assert "layers=8,hidden=1024,heads=16,kv_heads=4,ffn=3584" in str(express(run).spec.model)
    others = [
        spec(moe={"num_experts": 8}),
        spec(feed_forward=None),
        spec(feed_forward={"w1": {"out_features": [1]}, "w3": {"out_features": [1]}}),
        spec(attention={"n_heads": {}, "head_dim": "a"}),
        {"name": "llama3", "flavor": "8B", "model": {"layers": [[], 0]}},
        {"name": "llama3", "flavor": "8B"},
    ]
    for other in others:
        odd = read(torchtitan(config=TITAN_2026 | {"model_spec": other}))
        assert (odd.layers, odd.hidden, odd.ffn) == (None, None, None)


def test_what_torchtitan_ran_in(read) -> None:  # type: ignore[no-untyped-def]
    """Narrow products have no share of the peak, and which they are is not said: no prediction is of them."""
    training = TITAN_2026["training"]
    for said, precision in (
        ({}, "bf16"),
        ({"mixed_precision_param": "float32"}, "fp32"),
        ({"mixed_precision_param": "float32", "dtype": "bfloat16"}, "bf16"),
    ):
        assert read(torchtitan(config=TITAN_2026 | {"training": training | said})).precision == precision
    narrow = read(torchtitan(config=TITAN_2026).replace("mfu: 41.20%", "mfu: N/A"))
    with pytest.raises(NotExpressed, match="an unknown precision"):
        express(narrow)


def test_a_run_says_what_is_priced_otherwise(read) -> None:  # type: ignore[no-untyped-def]
    alone = {"parallelism": TITAN_2026["parallelism"] | {"pipeline_parallel_degree": 1}}
    training = {"training": TITAN_2026["training"] | {"disable_cuda_graphs": False}}
    assert "CUDA graphs" not in read(torchtitan(config=TITAN_2026 | alone)).how_read
    chunks = {"loss": {"num_chunks": 8, "loss_fn": {"global_vocab_size": 50304}}}
    whole = {"loss": {"global_vocab_size": 50304}}
    assert "the loss in 8 chunks" in read(torchtitan(config=TITAN_2026 | chunks)).how_read
    assert "chunk" not in read(torchtitan(config=TITAN_2026 | whole)).how_read
    assert "with CUDA graphs" in read(torchtitan(config=TITAN_2026 | alone | training)).how_read


def test_a_deepspeed_log_is_refused_as_one(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("steps: 10 loss: 6.5012 iter time (s): 1.234 samples/sec: 51.864\n")
    with pytest.raises(PipebenchError) as error:
        measured_runs([str(path)], DEVICE)
    assert "a log of DeepSpeed" in error.value.message
    assert error.value.hint is not None
    assert "table" in error.value.hint


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
