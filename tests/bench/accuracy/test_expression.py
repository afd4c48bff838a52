"""Runs as problems: degrees, devices, links and stages by hand; and the reason for each that is none."""

import re
from itertools import accumulate

import pytest

from pipebench.bench.accuracy.assumptions import Assumption, NotExpressed
from pipebench.bench.accuracy.expression import ExpressedRun, express
from pipebench.bench.accuracy.measurement import Predictor, item_bounds
from pipebench.bench.accuracy.reader import parse_runs, read_runs
from pipebench.bench.accuracy.run import COLUMNS, OPTIONAL
from pipebench.bench.accuracy.sizes import plain_name, public_sizes
from pipebench.bench.services import HostServices
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import SMALL, run, table

SAID = " + sequence parallel"
SHIPPED = {each.id: each for each in read_runs("published")}


def assumed(made: ExpressedRun) -> dict[str, str]:
    return {each.field: each.value for each in made.assumptions}


def test_a_run_that_says_everything_needs_no_assumption() -> None:
    made = express(run())
    spec = made.spec
    assert made.assumptions == ()
    assert spec.model is not None
    assert "layers=8,hidden=1024,heads=16," in spec.model
    assert "ffn=4096,vocab=50432,sequence=512" in spec.model  # a multiple of 128 for each of two ranks
    assert (spec.tp, spec.pp, spec.dp, spec.vpp) == (2, 2, 2, 1)
    assert (spec.mini_batch, spec.micro_batch) == (32, 8)  # of both replicas
    assert (spec.precision, spec.recompute, spec.optimizer) == ("fp16", "full", "adam")
    assert (made.scheduler, made.layers_by_stage) == ("1f1b", (4, 4))
    assert made.cluster.size == 8
    assert made.cluster.types[0].name == "A100-SXM4-80GB"
    assert [level.bandwidth_bytes_s for level in made.cluster.levels] == [300e9]


def test_the_zero_bubble_runs_count_embedding_and_head_as_layers() -> None:
    made = express(SHIPPED["zb-t4-1.5B-1f1b-m24"])
    assert made.layers_by_stage == (2, 3, 3, 3, 3, 3, 3, 2)
    assert assumed(made)["partition"] == "first and last stage a layer less"
    assert assumed(made)["vocab"] == "50257"
    assert (made.spec.micro_batch, made.spec.mini_batch) == (6, 144)
    standing_in = express(SHIPPED["zb-t4-1.5B-zb-2p-m24"])
    assert standing_in.scheduler == "greedy[live=2]"
    assert assumed(standing_in)["scheduler"] == "greedy[live=2] in place of zb-2p"


def test_layers_that_go_nowhere_evenly_are_levelled() -> None:
    made = express(SHIPPED["zb-t4-1.5B-interleaved-1f1b-m24"])
    assert made.level
    assert len(made.layers_by_stage) == 16
    assert sum(made.layers_by_stage) == 22


def test_the_largest_run_has_its_links_and_its_stages() -> None:
    made = express(SHIPPED["megatron21-t1-529.6B"])
    assert (made.spec.vpp, made.scheduler, made.layers_by_stage) == (3, "interleaved-1f1b", (1,) * 105)
    node, network = made.cluster.levels
    assert (node.group, network.group) == (8, 2520)
    assert (network.bandwidth_bytes_s, network.shared_bandwidth_bytes_s) == (25e9, 200e9)
    assert assumed(made) == {
        "mbs": "1",
        "vpp": "3",
        "generation of Megatron-LM": "megatron-v2",
        "sequence parallelism": "off",
    }


@pytest.mark.parametrize(
    ("cell", "each", "shared"),
    [
        ("nx8, 800 Gb/s a node", 12.5e9, 100e9),
        ("nx8, 8x100 Gb/s", 12.5e9, 100e9),
        ("nx8, 400 Gb/s a GPU", 50e9, 400e9),
    ],
)
def test_links_between_nodes_are_those_of_the_row(cell: str, each: float, shared: float) -> None:
    network = express(run(gpus="16", dp="4", nodes_gpus=cell)).cluster.levels[-1]
    assert (network.bandwidth_bytes_s, network.shared_bandwidth_bytes_s) == (each, shared)


def test_links_that_are_not_said_are_assumed() -> None:
    made = express(run(gpus="16", dp="4", nodes_gpus=""))
    assert assumed(made) == {"GPUs of a node": "8", "network": "dgx-a100: 25 GB/s a device"}


def test_a_device_of_which_several_ship_is_assumed_with_the_others() -> None:
    made = express(run(device="A100"))
    assert made.assumptions == (
        Assumption(field="device", value="A100-SXM4-80GB", alternatives=("A100-SXM4-40GB",)),
    )
    other = express(run(device="A100"), {"device": "A100-SXM4-40GB"})
    assert other.cluster.types[0].memory_bytes == 40 * 10**9


def test_embedding_and_head_may_be_stages_of_their_own() -> None:
    """As Megatron-LM has them where it counts them as layers, and stages are two more than layers."""
    said = {"schedule": "interleaved-1f1b", "vpp": "8", "partition": ""}
    made = express(run(layers="14", **said))
    assert made.layers_by_stage == (0, *(1,) * 14, 0)
    assert assumed(made)["partition"] == "first and last stage a layer less"
    with pytest.raises(NotExpressed, match="more stages than layers"):
        express(run(layers="15", **said))


@pytest.mark.parametrize(
    ("said", "device"),
    [
        ("H100", "H100-SXM5-80GB"),
        ("DGX-H100", "H100-SXM5-80GB"),
        ("H100-96GB", "H100-SXM5-80GB"),
        ("H100-96GB-HBM2e-500W", "H100-SXM5-96GB"),
        ("H100 PCIe", "H100-PCIe-80GB"),
        ("DGX-GB200", "GB200-186GB"),
    ],
)
def test_another_build_of_a_device_is_meant_only_where_it_is_said(said: str, device: str) -> None:
    assert express(run(device=said)).cluster.types[0].name == device


@pytest.mark.parametrize(
    ("gpus", "groups"),
    [(64, [64]), (72, [72]), (144, [72, 144]), (256, [64, 256]), (2 * 71, [71, 142])],
)
def test_a_job_takes_equal_parts_of_its_racks(gpus: int, groups: list[int]) -> None:
    """Of 72 devices that NVLink joins; a job that needs several racks takes as many of each."""
    degrees = {"tp": "1", "pp": "1", "dp": "", "gbs": str(gpus), "mbs": "1"}
    made = express(run(device="DGX-GB200", gpus=str(gpus), nodes_gpus="", **degrees))
    assert [level.group for level in made.cluster.levels] == groups
    assert made.cluster.levels[0].bandwidth_bytes_s == 900e9
    assert len(groups) == 1 or made.cluster.levels[1].shared_bandwidth_bytes_s == groups[0] * 50e9
    part = next((each for each in made.assumptions if each.field == "GPUs of a rack"), None)
    assert (part.value if part else None) == (str(groups[0]) if len(groups) > 1 else None)


def test_a_well_known_model_has_its_public_sizes() -> None:
    made = express(
        run(model="LLAMA3_8B (Pre-Training)", layers="", hidden="", heads="", vocab="", device="DGX-H100")
    )
    assert made.spec.model is not None
    assert "architecture=llama,layers=32,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=128256" in made.spec.model
    assert plain_name("llama3.1-405B") == "llama3-405b"
    assert public_sizes("llama4-8B") is None


def test_a_llama_of_any_size_has_the_sizes_of_its_row() -> None:
    columns = (*COLUMNS, *OPTIONAL)
    row = SMALL | {"model": "llama7", "ffn": "2816", "kv_heads": "4"}
    (said,) = parse_runs(table(row, columns=columns), "runs.csv")
    assert "kv_heads=4,ffn=2816," in (express(said).spec.model or "")
    (half,) = parse_runs(table(row | {"ffn": ""}, columns=columns), "runs.csv")
    with pytest.raises(NotExpressed, match=r"add the column ffn$"):
        express(half)


def test_a_degree_that_is_left_out_follows() -> None:
    assert express(run(dp="")).spec.dp == 2
    assert express(run(tp="")).spec.tp == 2


def test_other_values_replace_what_is_assumed() -> None:
    open_run = run(mbs="", recompute="")
    assert assumed(express(open_run)) == {"mbs": "1", "recompute": "none"}
    full = express(open_run, {"recompute": "full", "mbs": "4"})
    assert (full.spec.recompute, full.spec.micro_batch) == ("full", 8)
    (first, _) = full.assumptions
    assert {"1", "2", "8"} <= {value for each in full.assumptions for value in each.alternatives} | {first.value}


@pytest.mark.parametrize(("gbs", "each"), [("32", "8"), ("64", "16"), ("128", "1"), ("12", "1")])
def test_without_a_pipeline_what_a_replica_computes_is_one_pass(gbs: str, each: str) -> None:
    """At most 16 samples, and a power of two: a source that cuts more than that says how."""
    made = express(run(mbs="", pp="1", dp="4", gbs=gbs))
    assert assumed(made) == {"mbs": each}
    assert made.spec.micro_batch == 4 * int(each)


QWEN = {
    "model": "Qwen3_30B_a3B (Pre-Training Performance)",
    "layers": "", "hidden": "", "heads": "", "seq": "4096", "device": "DGX-H100", "gpus": "16", "nodes_gpus": "",
    "vocab": "", "tp": "1", "pp": "2", "dp": "", "ep": "8", "vpp": "", "mbs": "1", "gbs": "1024",
    "precision": "BF16", "framework": "Megatron-Bridge", "recompute": "",
}  # fmt: skip


def test_experts_of_a_model_that_is_known_are_shared_out() -> None:
    spec = express(run(**QWEN)).spec
    assert (spec.ep, spec.tp, spec.pp, spec.dp) == (8, 1, 2, 8)
    assert spec.model is not None
    assert "layers=48,hidden=2048,heads=32,kv_heads=4,ffn=768,vocab=151936,sequence=4096" in spec.model
    assert spec.model.endswith("experts=128,active=8,head=128,head_norm=true]")
    made = express(run(**QWEN | {"tp": "2"}))
    assert not {"generation of Megatron-LM", "sequence parallelism"} & set(assumed(made))
    whole = express(run(**QWEN | {"ep": "1"})).spec
    assert (whole.ep, whole.model) == (1, spec.model)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "GPT OSS 120B (Pre-Training Performance)",
            "layers=36,hidden=2880,heads=64,kv_heads=8,ffn=2880,vocab=201088,sequence=4096,tied=false,dropout=false,"
            "experts=128,active=4,head=64,head_norm=false,window=128,windowed=wf,sinks=true,qkv_bias=true,"
            "out_bias=true,ffn_bias=true,router_bias=true]",
        ),
        (
            "DeepSeekV3 (w/o MTP) (Pre-Training Performance)",
            "layers=61,hidden=7168,heads=128,kv_heads=0,ffn=2048,vocab=129280,sequence=4096,tied=false,dropout=false,"
            "experts=256,active=8,head=192,head_norm=false,routed=d3e58,dense_ffn=18432,shared_ffn=2048,"
            "query_rank=1536,key_rank=512,rotated=64,value_head=128]",
        ),
    ],
)
def test_models_with_experts_are_known_by_name(name: str, options: str) -> None:
    made = express(run(**QWEN | {"model": name})).spec
    assert made.model is not None
    assert made.model.endswith(options)


@pytest.mark.parametrize(
    ("name", "further", "stated"),
    [("DeepSeekV3 (w/ MTP)", True, True), ("DeepSeekV3 (w/o MTP)", False, True), ("DeepSeekV3", True, False)],
)
def test_further_tokens_are_predicted_unless_the_row_says_it(name: str, further: bool, stated: bool) -> None:
    row = run(**QWEN | {"model": name})
    made = express(row)
    assert made.spec.model is not None
    assert made.spec.model.endswith("mtp=1]") == further
    assert ("further tokens predicted" not in assumed(made)) == stated
    if not stated:
        without = express(row, {"further tokens predicted": "0"}).spec.model
        assert without is not None
        assert "mtp" not in without


@pytest.mark.parametrize(("pp", "vpp", "last"), [("4", "", 13), ("8", "", 5), ("4", "4", 1), ("2", "8", 1)])
def test_the_last_stage_has_what_others_leave_it_where_it_predicts_further_tokens(
    pp: str, vpp: str, last: int
) -> None:
    """The layouts of 4, 8 and 16 stages that the recipes of Megatron-Bridge have for DeepSeek-V3."""
    changes = {"model": "DeepSeekV3", "pp": pp, "vpp": vpp, "gpus": "64", "ep": "8", "schedule": ""}
    by_stage = express(run(**QWEN | changes)).layers_by_stage
    assert by_stage[-1] == last
    assert len(set(by_stage[:-1])) == 1
    assert sum(by_stage) == 61


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-oss-20b", "gpt-oss-20b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("DeepSeekV3", "deepseek-v3"),
        ("DeepSeekV4 Flash", "deepseekv4 flash"),
        ("DeepSeek-V3.1", "deepseek-v3.1"),
    ],
)
def test_a_plain_name(name: str, known: str) -> None:
    assert plain_name(name) == known


def test_a_partition_is_taken_as_it_is() -> None:
    assert express(run(partition="5-3")).layers_by_stage == (5, 3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ep": "8"}, "experts that the suite does not know"),
        (QWEN | {"ep": "16"}, "ranks of a stage that cannot share out the experts"),
        (QWEN | {"model": "Qwen3_30B_a3B (tokendrop)"}, "tokens that experts drop"),
        (QWEN | {"model": "Nemotron_3_Ultra"}, "experts that the suite does not know"),
        (QWEN | {"model": "DeepSeekV4 Flash"}, "experts that the suite does not know"),
        (
            QWEN | {"tp": "2", "recompute": "none + no sequence parallel"},
            "experts under tensor parallelism without sequence parallelism",
        ),
        (QWEN | {"framework": "torchtitan"}, "expert parallelism of a framework that the table says nothing of"),
        ({"cp": "2"}, "the product of the degrees is not the number of GPUs"),
        (
            {"cp": "2", "dp": "1", "framework": "torchtitan", "seq": "1022"},
            "a sequence that ranks cannot share out",
        ),
        (
            {"cp": "2", "dp": "1", "framework": "Megatron-DeepSpeed"},
            "context parallelism of a framework that the table says nothing of",
        ),
        ({"framework": "Megatron-Bridge (FSDP)"}, "fully sharded data parallelism in a pipeline"),
        ({"framework": "Megatron-Bridge; FSDP=64"}, "fully sharded data parallelism in a pipeline"),
        ({"framework": "torchtitan, FSDP=64"}, "replicas that make no whole groups of FSDP"),
        ({"model": "LLAMA3_70B (LoRA Performance)"}, "fine-tuning"),
        ({"model": "mamba"}, "an architecture that the suite does not know"),
        ({"layers": ""}, "column layers is empty"),
        ({"model": "llama7"}, "the sizes of a Llama are not said: add the columns ffn and kv_heads"),
        ({"seq": ""}, "column seq is empty"),
        ({"layers": "", "hidden": "", "seq": ""}, "columns layers, hidden and seq are empty"),
        ({"model": "llama3-8B", "layers": "", "seq": ""}, "column seq is empty"),
        ({"heads": "7"}, "heads do not divide the width of the model"),
        ({"tp": "2 (4)"}, "the row states two configurations"),
        ({"tp": "4"}, "the product of the degrees is not the number of GPUs"),
        ({"tp": "", "dp": ""}, "columns tp and dp are empty"),
        ({"device": "Z9-1TB"}, "no figures for the device Z9"),
        ({"precision": "NVFP4"}, "no rate in fp4 for A100-SXM4-80GB"),
        ({"precision": "NVFP4", "device": "H100-80GB"}, "no rate in fp4 for H100-SXM5-80GB"),
        ({"precision": "FP8-CS"}, "no rate in fp8 for A100-SXM4-80GB"),
        ({"precision": "int3"}, "an unknown precision"),
        ({"gbs": ""}, "column gbs is empty"),
        ({"heads": "", "hidden": "1000"}, "column heads is empty"),
        ({"gbs": "33"}, "micro-batches of all replicas do not divide the mini-batch"),
        ({"mbs": "3"}, "micro-batches of all replicas do not divide the mini-batch"),
        ({"schedule": "dualpipe"}, "no scheduler for the schedule dualpipe"),
        ({"vpp": "2"}, "several stages a device under 1f1b"),
        ({"schedule": "interleaved-1f1b", "vpp": "8"}, "more stages than layers"),
        ({"layers": "2001"}, "more than 2000 layers"),
        ({"gbs": "819200", "mbs": "1"}, "more than 100000 passes of micro-batches"),
        ({"recompute": "some"}, "a kind of recomputation that the suite does not know"),
        ({"recompute": "selective=mlps"}, "a module that runs again and that the suite does not know"),
        ({"recompute": "selective=moe+moe_act"}, "a module that runs again by itself and with all of the experts"),
        ({"recompute": "full=mlp"}, "modules that run again by name, which Megatron-LM alone knows"),
        (
            {"recompute": "selective=mlp", "framework": "torchtitan"},
            "modules that run again by name, which Megatron-LM alone knows",
        ),
        ({"partition": "5-5"}, "the partition does not go with layers and stages"),
        ({"partition": "8-0"}, "the partition does not go with layers and stages"),
    ],
)
def test_what_cannot_be_expressed_says_why(changes: dict[str, str], reason: str) -> None:
    with pytest.raises(NotExpressed) as refused:
        express(run(**changes))
    assert refused.value.reason == reason


def test_the_later_megatron_shares_out_the_optimizer() -> None:
    """What it publishes gathers parameters beside the work, which takes its distributed optimizer."""
    later = run(framework="Megatron-LM", device="H100-80GB")
    assert express(later).spec.optimizer_sharding == "zero1"
    assert express(later, {"optimizer sharding": "none"}).spec.optimizer_sharding == "none"
    assert express(run(framework="Megatron-LM")).spec.optimizer_sharding == "none"


@pytest.mark.parametrize(("words", "sharding"), [("distributed", "zero1"), ("no distributed", "none")])
def test_a_run_may_say_whether_replicas_share_out_the_optimizer(words: str, sharding: str) -> None:
    for device in ("A100-80GB", "H100-80GB"):
        made = express(run(framework=f"Megatron-LM, {words} optimizer", device=device))
        assert made.spec.optimizer_sharding == sharding
        assert "optimizer sharding" not in assumed(made)


def test_gradients_that_are_reduced_after_the_last_backward_take_longer() -> None:
    said = {"framework": "Megatron-LM, no overlapped reduction", "precision": "bf16"}
    alone = express(run(**said))
    beside = express(run(**said | {"framework": "Megatron-LM, overlapped reduction"}))
    # Megatron-LM has the argument since 2023: the generation follows, on any device.
    assert (alone.spec.framework, beside.spec.framework) == ("megatron", "megatron")
    assert "generation of Megatron-LM" not in assumed(alone)
    predictor = Predictor(HostServices(Host()))
    assert predictor.seconds(alone) > predictor.seconds(beside)
    reduced = predictor.problem(alone).regime.step, predictor.problem(beside).regime.step
    assert [step and step.reduce_overlap for step in reduced] == [0.0, 0.8]


@pytest.mark.parametrize(
    ("changes", "sharding"),
    [
        ({"framework": "Megatron-Bridge 26.04; FSDP=0", "device": "H100-80GB"}, "zero1"),
        ({"framework": "Megatron-Bridge 26.04; FSDP=0", "device": "A100-80GB"}, "none"),
        ({"framework": "torchtitan, FSDP=0"}, "none"),
        ({"framework": "torchtitan"}, "zero1"),
        ({"framework": "torchtitan", "pp": "1", "dp": "4"}, "zero3"),
        ({"framework": "torchtitan (FSDP)", "pp": "1", "dp": "4"}, "zero3"),
        ({"framework": "torchtitan, FSDP=4", "pp": "1", "dp": "4"}, "zero3"),
        ({"framework": "Megatron-Bridge; FSDP=4", "pp": "1", "dp": "4"}, "zero3"),
        ({"framework": "torchtitan (FSDP)", "dp": "1", "gpus": "4"}, "none"),
        ({"framework": "torchtitan (FSDP)"}, "zero1"),
    ],
)
def test_fully_sharded_runs_share_out_what_their_framework_shares_out(
    changes: dict[str, str], sharding: str
) -> None:
    """In a pipeline torchtitan keeps what it gathers until the last micro-batch."""
    assert express(run(**changes)).spec.optimizer_sharding == sharding


def test_groups_of_replicas_share_out_a_copy_each() -> None:
    """Two of four, each of as many ranks as share out a sequence."""
    spec = express(run(framework="torchtitan, FSDP=2", pp="1", dp="4")).spec
    assert (spec.optimizer_sharding, spec.sharding_ranks) == ("zero3", 2)
    longer = express(run(framework="Megatron-Bridge; FSDP=1", pp="1", tp="1", dp="2", cp="4", device="H100-80GB"))
    assert (longer.spec.optimizer_sharding, longer.spec.sharding_ranks) == ("zero3", 4)
    assert Predictor(HostServices(Host())).problem(longer).regime.sharding_ranks == 4
    with pytest.raises(NotExpressed, match="in groups, and experts"):
        express(run(**(QWEN | {"framework": "Megatron-Bridge; FSDP=1", "pp": "1", "dp": "16"})))


@pytest.mark.parametrize(
    ("device", "others"), [("A100", ("fp16",)), ("H100-80GB", ("fp16", "fp8")), ("GB200", ("fp16", "fp8"))]
)
def test_a_run_that_says_no_precision_may_have_multiplied_in_eight_bits(
    device: str, others: tuple[str, ...]
) -> None:
    made = express(run(device=device, precision=""))
    (open_field,) = [each for each in made.assumptions if each.field == "precision"]
    assert (open_field.value, open_field.alternatives) == ("bf16", others)
    if "fp8" in others:
        assert express(run(device=device, precision=""), {"precision": "fp8"}).spec.profiler == (
            express(run(device=device, precision="FP8")).spec.profiler
        )


def test_how_it_ran_may_follow_the_precision() -> None:
    assert express(run(precision="bf16+compile")).spec.precision == "bf16"


def test_a_framework_that_is_not_known_is_priced_aloud_and_a_wrong_name_is_not() -> None:
    made = express(run(framework="OneFlow 0.9"))
    assert (made.spec.framework, assumed(made)["framework"]) == ("megatron-v2", "megatron-v2")
    assert "framework" not in assumed(express(run(framework="Megatron-LM")))
    for name in ("torchtitn", "Torch-titan (FSDP)", "Megatro-LM"):
        with pytest.raises(NotExpressed) as refused:
            express(run(framework=name))
        assert refused.value.reason.startswith("a framework whose name is nearly ")


@pytest.mark.parametrize("framework", ["", "DeepSpeed", "nanotron", "Fairseq"])
def test_a_framework_that_is_not_known_is_of_the_generation_of_its_device(framework: str) -> None:
    """On an H100 it has fused attention and all that Megatron-LM has there; on an A100 neither."""
    new, old = run(framework=framework, device="H100-80GB"), run(framework=framework)
    known = express(run(framework="Megatron-LM", device="H100-80GB"))
    assert express(new).spec == known.spec
    assert express(new, {"framework": "megatron-v2"}).spec == express(old).spec
    for row, value, other in ((new, "megatron", "megatron-v2"), (old, "megatron-v2", "megatron")):
        (said,) = [each for each in express(row).assumptions if each.field == "framework"]
        assert (said.value, said.alternatives) == (value, (other,))


def test_nemo_is_megatron_lm() -> None:
    for device in ("H100-80GB", "A100-80GB"):
        nemo, megatron = (express(run(framework=name, device=device)) for name in ("NeMo 2.0", "Megatron-LM"))
        assert nemo == megatron


@pytest.mark.parametrize(
    ("precision", "framework"),
    [
        ("bf16", "torchtitan-eager"),
        ("bf16+compile", "torchtitan"),
        ("bf16+asyncTP", "torchtitan"),
        ("bf16+nocompile", "torchtitan-eager"),
        ("", "torchtitan-eager"),
    ],
)
def test_torchtitan_runs_eager_code_where_nobody_says_that_it_is_compiled(precision: str, framework: str) -> None:
    said = express(run(framework="torchtitan (FSDP)", precision=precision)).spec
    assert (said.framework, said.optimizer_sharding) == (framework, "zero1")
    other = express(run(framework="Megatron-LM", precision=precision)).spec
    assert other.framework == "megatron-v2"


@pytest.mark.parametrize(
    ("changes", "overlaps", "said"),
    [
        ({"framework": "torchtitan", "precision": "bf16+asyncTP"}, True, False),
        ({"framework": "torchtitan"}, False, False),
        ({"framework": "Megatron-Bridge 25.11", "device": "H100-80GB"}, True, True),
        ({"framework": "Megatron-Bridge 25.11", "device": "H100-80GB", "tp": "1", "dp": "4"}, False, False),
        ({"framework": "Megatron-LM", "device": "H100-80GB"}, True, True),
        ({"framework": "Megatron-LM"}, False, False),
        ({"framework": "Megatron-LM", "device": "H100-80GB", "precision": "bf16+no asyncTP"}, False, False),
        ({"framework": "Megatron-LM", "device": "H100-80GB", "precision": "bf16+asyncTP"}, True, False),
        ({"framework": "torchtitan", "precision": "bf16+compile+no asyncTP"}, False, False),
        ({"framework": "Megatron-Bridge", "recompute": "full + no sequence parallel"}, False, False),
    ],
)
def test_the_later_megatron_overlaps_tensor_parallelism(
    changes: dict[str, str], overlaps: bool, said: bool
) -> None:
    made = express(run(**changes))
    assert ("tensor_overlap=on" in (made.spec.profiler or "")) == overlaps
    assert ("tensor-parallel overlap" in assumed(made)) == said
    if said:
        other = express(run(**changes), {"tensor-parallel overlap": "off"})
        assert "tensor_overlap" not in (other.spec.profiler or "")


def test_selective_checkpoints_are_those_of_the_framework() -> None:
    titan, megatron = (
        express(run(framework=name, recompute="selective")).spec for name in ("torchtitan", "Megatron-LM")
    )
    assert (titan.recompute, megatron.recompute) == ("selective", "none")
    assert "attention=selective" in (megatron.profiler or "")
    assert "attention" not in (titan.profiler or "")


def test_modules_run_again_by_name_in_the_later_megatron() -> None:
    """Megatron-LM of 2021 and 2022, which an A100 means, knew none."""
    made = express(run(framework="Megatron-LM", recompute="selective=mlp+core_attn + no sequence parallel"))
    assert (made.spec.framework, made.spec.recompute) == ("megatron", "selective")
    assert "recompute_modules=mlp+core_attn" in (made.spec.profiler or "")
    assert "sequence_parallel=off" in (made.spec.profiler or "")
    alone = express(run(framework="Megatron-LM", recompute="selective=core_attn"))
    assert alone.spec == express(run(framework="Megatron-LM", recompute="selective")).spec


def test_a_row_is_read_alike_under_any_id() -> None:
    for row in SHIPPED.values():
        outcomes = []
        for name in (row.id, "another"):
            from msgspec.structs import replace

            try:
                outcomes.append(replace(express(replace(row, id=name)), id=""))
            except NotExpressed as error:
                outcomes.append(error.reason)  # type: ignore[arg-type]
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("counts", [(4, 4), (1, 2, 3), (2, 3, 3, 2)])
def test_cuts_put_the_embedding_first_and_the_head_last(counts: tuple[int, ...]) -> None:
    bounds = item_bounds(counts)
    assert (bounds[0], bounds[-1]) == (0, sum(counts) + 2)
    assert list(bounds[1:-1]) == [1 + end for end in accumulate(counts[:-1])]


def test_a_framework_has_its_generation_and_what_it_prices() -> None:
    old, new = (express(run(framework="Megatron-LM", device=device)).spec for device in ("A100-80GB", "H100-80GB"))
    assert (old.framework, new.framework) == ("megatron-v2", "megatron")
    assert express(run(framework="OneFlow")).spec.framework == "megatron-v2"
    selective = express(run(framework="Megatron-LM", recompute="selective")).spec
    assert "attention=selective" in selective.profiler
    assert selective.recompute == "none"


def test_tensor_parallelism_may_span_nodes() -> None:
    made = express(run(tp="16", pp="1", dp="1", gpus="16", nodes_gpus="2x8"))
    assert made.spec.tp == 16


@pytest.mark.parametrize(
    ("device", "word", "products"),
    [("H100-80GB", "FP8-CS", "fp8"), ("GB300", "MXFP8", "fp8"), ("B200", "NVFP4", "fp4")],
)
def test_few_bits_are_those_of_the_products_of_layers(device: str, word: str, products: str) -> None:
    spec = express(run(device=device, precision=word)).spec
    assert spec.precision == "bf16"
    assert f"products={products}" in spec.profiler


@pytest.mark.parametrize(
    ("framework", "device", "recompute", "tp", "said", "taken"),
    [
        ("Megatron-LM", "A100-80GB", "selective + sequence parallel", "2", "on", None),
        ("Megatron-DeepSpeed", "A100-80GB", "full + sequence parallel", "2", "on", None),
        ("Megatron-LM", "A100-80GB", "full", "2", "off", "off"),
        ("Megatron-LM", "DGX-H100", "none + no sequence parallel", "2", "off", None),
        ("Megatron-LM", "DGX-H100", "none", "2", "on", "on"),
        ("OneFlow", "A100-80GB", "full", "2", "off", "off"),
        ("Megatron-DeepSpeed", "A100-80GB", "full", "2", "", None),
        ("torchtitan", "DGX-H100", "full", "2", "", None),
        ("Megatron-LM", "A100-80GB", "full", "1", "", None),
    ],
)
def test_sequence_parallelism_is_read_or_assumed_aloud(
    framework: str, device: str, recompute: str, tp: str, said: str, taken: str | None
) -> None:
    dp = "2" if tp == "2" else "4"
    row = run(framework=framework, device=device, recompute=recompute, tp=tp, dp=dp, precision="bf16")
    made = express(row)
    assert re.findall(r"sequence_parallel=(\w+)", made.spec.profiler or "") == ([said] if said else [])
    assert assumed(made).get("sequence parallelism") == taken
    if taken is not None:
        other = "off" if taken == "on" else "on"
        (assumption,) = (each for each in made.assumptions if each.field == "sequence parallelism")
        assert assumption.alternatives == (other,)
        again = express(row, {"sequence parallelism": other})
        assert f"sequence_parallel={other}" in (again.spec.profiler or "")


def test_sequence_parallelism_saves_time_and_memory_between_the_products() -> None:
    """Korthikanti et al. 2022, table 4: what lies between the products runs split, and is kept split."""
    predictor = Predictor(HostServices(Host()))
    split, whole = (
        predictor.predict(express(run(framework="Megatron-LM", recompute=f"none{words}"))) for words in (SAID, "")
    )
    assert 0.8 * whole.simulated_s < split.simulated_s < whole.simulated_s
    assert split.memory_bytes < whole.memory_bytes
