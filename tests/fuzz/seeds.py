"""Sound files of every kind that a command reads: written by the suite itself, shipped, or by hand."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pipebench.bench.row_bounds import bound_fields
from pipebench.bench.score import judge, plan_fields, time_fields, verdict_fields
from pipebench.bench.services import HostServices
from pipebench.bench.store.folder import TRIALS, Store
from pipebench.bench.store.journal import MANIFEST, StoreInfo, encode_manifest
from pipebench.bench.store.pack import pack
from pipebench.certificates.write import certificate
from pipebench.documents.document import PlannedProblem, Rows, encode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.row import Row
from pipebench.formats.profiles.files import WRITERS, write_profile
from pipebench.formats.profiles.parts import with_setting
from pipebench.hooks.manager import Host
from pipebench.track.nights.history import NIGHTS
from tests.bench.accuracy.tables import SMALL, table
from tests.bench.attachment.card_trace import ADAM, ALL_REDUCE, PRODUCT, SEND_RECEIVE, card_trace
from tests.bench.calibration.logs import megatron, torchtitan
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
from tests.builders import chain_problem, cluster, stages_plan
from tests.fuzz.mutate_archives import write_zip

Shape = Literal["bytes", "json", "toml", "table", "words", "zip", "jsonl", "gzip"]
"""Which mutators know what the file looks like, beside those of bytes."""
MADE = StoreInfo(made_at="2025-01-01T00:00:00.000+00:00")
ROOT = Path(__file__).resolve().parents[2]
LARGEST_SEED_BYTES = 30_000
SEEDS = "seeds.msgpack"
PLANNERS = ("uniform", "data-parallel", "pipedream")
"""Of the rows: what a row shows is what runs again, and out of a file that is installed components only."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A sound input. kind: what reads it. place: its path, where it stands in a folder of others.

    options: written behind its path in commands.
    """

    kind: str
    name: str
    shape: Shape
    data: bytes
    place: str = ""
    options: str = ""


def read_seeds(fixed: Path) -> list[Seed]:
    """The seeds that a workshop made in the folder."""
    return msgspec.msgpack.decode((fixed / SEEDS).read_bytes(), type=list[Seed])


class Workshop:
    """Makes the seeds. fixed: the folder of files that commands read beside the one that is made wrong."""

    def __init__(self, fixed: Path) -> None:
        self.fixed = fixed
        self.services = HostServices(Host())

    def seeds(self) -> list[Seed]:
        """All of them, the same bytes each time; the files beside them are in the folder then."""
        self.fixed.mkdir(parents=True, exist_ok=True)
        made = [
            *self._profiles(),
            *self._documents(),
            *self._stores(),
            *_traces(),
            *_logs(),
            *_tables(),
            *_configurations(),
            *_history(),
            *_words(),
            *_shared(),
        ]
        for seed in made:
            file = self.fixed / seed.name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(seed.data)
        (self.fixed / SEEDS).write_bytes(msgspec.msgpack.encode(made))
        return made

    def _profiles(self) -> Iterator[Seed]:
        problem = chain_problem([3, 5, 7], [4, 6, 8], cluster(2), activations=[8, 8, 8, 8], weights=[4, 4, 4])
        profile = with_setting(problem.profile, devices=2, memory_bytes=10**9, bandwidth_bytes_s=1e9, mini_batch=8)
        for name in WRITERS:
            suffix = WRITERS[name][0]
            shape: Shape = "json" if suffix.endswith(".json") else "table"
            options = "[batch=2]" if suffix == ".txt" else ""
            data = write_profile(profile, f"x{suffix}", name).data
            yield Seed("profile", f"chain{suffix}", shape, data, options=options)
        shipped = (ROOT / "profiles" / "tiny-mmt-cpu.json").read_bytes()
        yield Seed("profile", "tiny-mmt-cpu.json", "json", shipped)

    def _documents(self) -> Iterator[Seed]:
        schedule, trace = SCHEDULE, self.services.simulate(PROBLEM, PLAN, SCHEDULE)
        planned = PlannedProblem(
            problem=PROBLEM, plan=PLAN, schedule=schedule, scheduler="1f1b", planner="uniform"
        )
        yield Seed("plan", "plan.json", "json", encode("plan", planned))
        yield Seed("plan", "flowing.json", "json", encode("plan", self._planned("async", "1f1b*")))
        yield Seed("plan", "bare.json", "json", encode("plan", replace(planned, schedule=None)))
        yield Seed("plan", "split.json", "json", encode("plan", self._planned("sync", "1f1b")))
        yield Seed("plan", "language.json", "json", encode("plan", self._language()))
        yield Seed("trace", "trace.json", "json", encode("trace", replace(trace, origin="measured")))
        verdict = judge(PROBLEM, PLAN, schedule)
        values = {
            "graph": PROBLEM.profile.graph,
            "profile": PROBLEM.profile,
            "cluster": PROBLEM.cluster,
            "problem": PROBLEM,
            "schedule": schedule,
            "verdict": verdict,
        }
        for kind, value in values.items():
            yield Seed("document", f"a-{kind}.json", "json", encode(kind, value))
        for made in (planned, self._planned("async", "1f1b*"), self._planned("sync", "1f1b")):
            proof = certificate(made.problem, made.plan, made.schedule, {}).data
            yield Seed("certificate", f"proof-{made.problem.regime.mode}-{len(proof)}.json", "json", proof)
        yield Seed("bare", "bare-plan.json", "json", encode("bare-plan", PLAN))
        yield Seed("bare", "result.json", "json", encode("result", PlanResult(plan=PLAN, schedule=schedule)))
        yield Seed("rows", "rows.json", "json", encode("rows", Rows(rows=tuple(self._rows()))))
        yield Seed("rows", "bare-rows.json", "json", msgspec.json.encode(Rows(rows=tuple(self._rows()))))

    def _planned(self, mode: Any, scheduler: str) -> PlannedProblem:
        """A plan of three stages; in sync with two replicas of the first."""
        problem = chain_problem(
            [3, 5, 7], [4, 6, 8], cluster(4), activations=[8, 8, 8, 8], weights=[4, 4, 4], mode=mode, mini_batch=4
        )
        replicas = [2, 1, 1] if mode == "sync" else [1, 1, 1]
        plan = stages_plan([[0], [1], [2]], replicas=replicas, micro_batch=2)
        schedule = self.services.schedule(scheduler, problem, plan)
        return PlannedProblem(problem=problem, plan=plan, schedule=schedule, scheduler=scheduler, planner="mine")

    def _language(self) -> PlannedProblem:
        """A plan of a language model, which every framework has words for."""
        from pipebench.bench.problems.workload_builder import WorkloadBuilder
        from pipebench.domain.workload import WorkloadSpec

        model = "llm[layers=2,hidden=64,heads=4,ffn=128,vocab=100,sequence=16]"
        spec = WorkloadSpec(model=model, devices=2, mini_batch=4, micro_batch=1)
        problem = WorkloadBuilder(self.services.host).workload(spec, "").problem("sync")
        (self.fixed / "language-profile.json").write_bytes(encode("profile", problem.profile))
        plan = self.services.plan("uniform", problem).plan
        schedule = self.services.schedule("1f1b", problem, plan)
        return PlannedProblem(problem=problem, plan=plan, schedule=schedule, scheduler="1f1b", planner="uniform")

    def _rows(self) -> Iterator[Row]:
        scored = _scored(self.services, PROBLEM, PLAN)
        for number, planner in enumerate(PLANNERS):
            fields: dict[str, Any] = {"counters": {"states": 7}, "scheduler": "1f1b", "planner": planner}
            yield replace(stored(number).row, **scored, **fields)
        failed: dict[str, Any] = {"status": "infeasible", "reason": "no plan fits", "claimed_s": 1.5}
        yield replace(stored(4).row, planner=PLANNERS[0], **failed)

    def _stores(self) -> Iterator[Seed]:
        folder = self.fixed / "store"
        self._fill(folder, list(self._rows()))
        self._fill(self.fixed / "one", list(self._rows())[:1])
        yield from self._files("store")
        yield from self._files("one")
        pack(folder, self.fixed / "packed.zip")
        yield Seed("packed", "packed.zip", "zip", (self.fixed / "packed.zip").read_bytes())
        yield Seed("packed", "empty.zip", "zip", write_zip([("store.json", (folder / MANIFEST).read_bytes())]))

    def _files(self, name: str) -> Iterator[Seed]:
        folder = self.fixed / name
        for path in sorted(folder.rglob("*.json*")):
            shape: Shape = "jsonl" if path.suffix == ".jsonl" else "json"
            place = path.relative_to(folder).as_posix()
            yield Seed(name, f"{name}/{place}", shape, path.read_bytes(), place)

    def _fill(self, folder: Path, rows: list[Row]) -> None:
        store = Store.open(folder)
        for number, row in enumerate(rows):
            found = stored(number)
            full = replace(row, key=found.key, repetition=number)
            plan = (PLAN, SCHEDULE) if row.status == "ok" else ()
            store.append(replace(found, planner=row.planner, row=full), PROBLEM, *plan)
        (folder / MANIFEST).write_bytes(encode_manifest(MADE, TRIALS))


def _scored(services: HostServices, problem: Problem, plan: Plan) -> dict[str, Any]:
    """The columns of a row that the suite computes, and a search that took always the same time."""
    bounds = bound_fields(problem)
    times, _, _ = time_fields(services, problem, plan, SCHEDULE, ("simulate",), bounds)
    searched = {
        "search_cpu_s": 0.25,
        "search_wall_s": 0.5,
        "search_cold_s": 1.0,
        "search_samples": ((0.25, 0.5),),
        "search_ratio": {"integer": 2.0},
    }
    verdict = verdict_fields(judge(problem, plan, SCHEDULE))
    return bounds | times | searched | verdict | plan_fields(problem, plan, SCHEDULE)


def chrome_trace(rank: int, peer: int, card: bool = False) -> dict[str, Any]:
    """What torch's profiler writes of one rank: iterations, work, marked tasks, messages by gloo or NCCL."""
    way, other = ("send", "recv") if rank == 0 else ("recv", "send")
    events: list[dict[str, Any]] = []
    for step in range(3):
        start = 1000.0 * step + 10.0 * rank
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": 900.0},
            {"ph": "X", "cat": "kernel" if card else "cpu_op", "name": "aten::mm", "ts": start + 20, "dur": 300.0},
            {"ph": "X", "cat": "user_annotation", "name": f"PP:{rank}F{step}", "ts": start + 10, "dur": 400.0},
            {"ph": "X", "cat": "user_annotation", "name": f"Backward {step}", "ts": start + 450, "dur": 300.0},
        ]
        if card:
            arrow = "->" if way == "send" else "<-"
            events.append({"ph": "X", "name": f"nccl:{way} {rank}{arrow}{peer}", "ts": start + 420, "dur": 20.0})
            continue
        for verb, later in ((way, 420), (other, 800)):
            call = "c10d::send" if verb == "send" else "c10d::recv_"
            inputs = {"Concrete Inputs": ["", "", str(peer), str(step)]}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": call, "ts": start + later, "dur": 5.0, "args": inputs},
                {"ph": "X", "cat": "cpu_op", "name": f"gloo:{verb}", "ts": start + later, "dur": 20.0},
            ]
    return {
        "distributedInfo": {"rank": rank},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "traceEvents": [{"ph": "M", "name": "process_name"}, *events],
    }


def _traces() -> Iterator[Seed]:
    for rank in (0, 1):
        data = json.dumps(chrome_trace(rank, 1 - rank)).encode()
        yield Seed(f"rank{rank}", f"rank{rank}.json", "json", data)
        yield Seed(f"rank{rank}", f"rank{rank}.json.gz", "gzip", gzip.compress(data, mtime=0))
    yield Seed("rank0", "card.json", "json", json.dumps(chrome_trace(0, 1, card=True)).encode())
    kernels = [
        (PRODUCT, 0.0, 300.0),
        (ALL_REDUCE, 250.0, 100.0),
        (SEND_RECEIVE, 340.0, 200.0),
        (ADAM, 700.0, 50.0),
    ]
    yield Seed("rank0", "nccl.json", "json", json.dumps(card_trace(kernels, 1000.0)).encode())


def _logs() -> Iterator[Seed]:
    """Logs of frameworks, as they print them; one is of the row in the store."""
    yield Seed("log", "megatron.log", "table", megatron().encode())
    sizes = {"tensor_model_parallel_size": 1, "data_parallel_size": 1, "micro_batch_size": 1}
    own = megatron(world_size=2, global_batch_size=2, num_layers=2, bf16=False, **sizes)
    yield Seed("log", "own.log", "table", own.encode())
    yield Seed("log", "titan.log", "table", torchtitan().encode())


LAYERS = """name,forward_ms,backward_us,activation_MB,weight_GiB
embed,1.5,3,8,0.5
block,2.5,5,8,1
head,1,2,1,0
"""
SPLIT_SCHEDULE = b"0F0,0F1,0I0,0W0,0B1,0REDUCE_GRAD\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n"


def _tables() -> Iterator[Seed]:
    yield Seed("schedule", "two.csv", "table", b"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    yield Seed("schedule", "split.csv", "table", SPLIT_SCHEDULE)
    yield Seed("layout", "megatron.txt", "words", b"Et|tL\n")
    parts = [["tok_embeddings", "layers.0"], ["layers.1", "norm", "output"]]
    yield Seed("layout", "titan.json", "json", json.dumps(parts).encode())
    graph = (
        "node1 -- A -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, "
        "parameter_size=4.0 -- stage_id=0\n"
        "node2 -- B -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[8.0; 2.0], "
        "parameter_size=4.0 -- stage_id=1\n\tnode1 -- node2\n"
    )
    yield Seed("layout", "stages.txt", "table", graph.encode())
    yield Seed("profile", "layers.csv", "table", LAYERS.encode())
    yield Seed("runs", "runs.csv", "table", table(SMALL, SMALL | {"id": "open", "recompute": "", "mbs": "?"}))
    header, *rows = (line.split(",") for line in LAYERS.splitlines())
    listed = [dict(zip(header, [name, *map(float, figures)], strict=True)) for name, *figures in rows]
    yield Seed("profile", "units.layers.json", "json", json.dumps({"layers": listed, "micro_batch": 2}).encode())
    yield Seed("profile", "graph.txt", "table", graph.encode(), options="[batch=2]")


CLUSTER = """name = "mine"
summary = "two nodes"
device = "gpu"
link_mode = "half"
sources = ["by hand"]
[[levels]]
name = "nvlink"
group = 2
bandwidth_gb_s = 100.0
[[levels]]
name = "ethernet"
latency_us = 5.0
bandwidth_gb_s = 12.0
shared_bandwidth_gb_s = 24.0
[devices.gpu]
memory_gb = 16
"""
SUITE = """name = "mine"
summary = "a small one"
planners = ["uniform", "pipedream[order=level]"]
regimes = ["sync"]
schedulers = ["1f1b"]
seed = 3
[limits]
timeout_s = 20.0
memory = "2GB"
repeat = 2
[[workloads]]
name = "first"
profile = "tiny-mmt-cpu"
devices = [2, 4]
memory = "16GB"
mini_batch = 8
[[workloads]]
model = "tiny-mmt[layers=1]"
cluster = "madpipe"
devices = 2
bandwidth = "12GB/s"
mini_batch_per_device = 2
"""
ACKNOWLEDGED = """# Changes that are meant to be.
[[acknowledged]]
event = "slower:madpipe"
reason = "it searches more"
about = "madpipe"
at = "2025-01-01"
"""


def _configurations() -> Iterator[Seed]:
    yield Seed("cluster", "cluster.toml", "toml", CLUSTER.encode())
    yield Seed("cluster", "cluster.json", "json", encode("cluster", PROBLEM.cluster))
    yield Seed("suite", "suite.toml", "toml", SUITE.encode())
    for suite in ("quick", "intra"):
        path = ROOT / "pipebench" / "bench" / "suites" / f"{suite}.toml"
        yield Seed("suite", f"{suite}.toml", "toml", path.read_bytes())
    yield Seed("acknowledged", "baselines/acknowledged.toml", "toml", ACKNOWLEDGED.encode(), "acknowledged.toml")
    llama = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 16,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
    }
    gpt2 = {
        "model_type": "gpt2",
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 16,
        "vocab_size": 100,
        "torch_dtype": "float32",
    }
    mixtral = llama | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    falcon = llama | {
        "model_type": "falcon",
        "multi_query": False,
        "new_decoder_architecture": True,
        "num_kv_heads": 2,
        "num_ln_in_parallel_attn": 1,
        "bias": True,
        "partial_rotary_factor": 0.5,
        "activation": "gelu",
    }
    opt = llama | {"model_type": "opt", "ffn_dim": 128, "word_embed_proj_dim": 64, "do_layer_norm_before": True}
    gpt_oss = mixtral | {
        "model_type": "gpt_oss",
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
    }
    deepseek = llama | {
        "model_type": "deepseek_v3",
        "moe_intermediate_size": 32,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "first_k_dense_replace": 1,
        "q_lora_rank": 32,
        "kv_lora_rank": 16,
    }
    scout = mixtral | {
        "model_type": "llama4_text",
        "attention_chunk_size": 4,
        "no_rope_layers": [1, 0],
        "interleave_moe_layer_step": 2,
    }
    nemotron_h = llama | {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "ME",
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "moe_intermediate_size": 32,
        "moe_shared_expert_intermediate_size": 64,
        "n_routed_experts": 4,
    }
    configs = {
        "llama": llama,
        "nemotron_h": nemotron_h,
        "gpt2": gpt2,
        "mixtral": mixtral,
        "falcon": falcon,
        "opt": opt,
    }
    configs |= {"gpt_oss": gpt_oss, "deepseek_v3": deepseek, "llama4_text": scout, "nemotron_h": nemotron_h}
    for name, said in configs.items():
        yield Seed("config", f"{name}.config.json", "json", json.dumps(said).encode())


def _history() -> Iterator[Seed]:
    """The history that ships, its first night alone, and nights that an earlier pipebench wrote."""
    nights = (ROOT / "baselines" / NIGHTS.file).read_bytes().splitlines(keepends=True)
    yield Seed("history", f"baselines/{NIGHTS.file}", "jsonl", nights[0], NIGHTS.file)
    manifest = encode_manifest(MADE, NIGHTS)
    yield Seed("history", f"baselines/{MANIFEST}", "json", manifest, MANIFEST)
    for path in sorted((ROOT / "tests/track/earlier").glob("*.jsonl")):
        yield Seed("earlier", f"earlier/{path.name}", "jsonl", path.read_bytes(), path.name)
    benchmark = {
        "machine_info": {"system": "", "machine": "", "cpu": {"brand_raw": "", "count": 0}},
        "datetime": "2025-01-01T00:00:00+00:00",
        "benchmarks": [
            {
                "fullname": "tests/x.py::test_x",
                "stats": {"min": 1.0, "median": 2.0, "iqr": 0.1, "max": 3.0, "rounds": 5},
                "extra_info": {"counters": {"states": 5}},
            }
        ],
    }
    yield Seed("benchmark", "benchmark.json", "json", json.dumps(benchmark).encode())


REFERENCES = (
    "pipedream[order=level,memory=p]",
    "madpipe,graphpipe,uniform",
    "cmd:./planner --opt 'a,b',uniform",
    "./mine.py",
    "llm[layers=2,hidden=64]",
)
QUANTITIES = ("16GB", "1.5GiB", "12GB/s", "500us", "100Gbit/s", "1e3 MB")
SCHEDULERS = ("gpipe,1f1b", "1f1b*", "interleaved-1f1b,zb-v", "chimera")


def _words() -> Iterator[Seed]:
    for kind, texts in (("reference", REFERENCES), ("quantity", QUANTITIES), ("schedulers", SCHEDULERS)):
        for number, text in enumerate(texts):
            yield Seed(kind, f"{kind}-{number}.txt", "words", text.encode())


def _shared() -> Iterator[Seed]:
    """Other people's files where this checkout has them."""
    folder = ROOT.parent / "shared" / "data"
    kinds: tuple[tuple[str, str, Shape, str], ...] = (
        ("pipedream", "*.txt", "table", "profile"),
        ("piper", "*.json", "json", "profile"),
        ("tarnawski", "**/*.json", "json", "profile"),
        ("torch_schedules", "*.csv", "table", "schedule"),
    )
    for below, pattern, shape, kind in kinds:
        small = [path for path in (folder / below).glob(pattern) if path.stat().st_size <= LARGEST_SEED_BYTES]
        for path in sorted(small)[:2]:
            if not path.name.startswith("LICENSE"):
                yield Seed(kind, f"shared-{path.name}", shape, path.read_bytes())
