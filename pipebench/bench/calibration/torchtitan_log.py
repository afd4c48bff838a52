"""The log of a torchtitan training as one measured run.

Read are the configuration (`printed_config`) and the lines of steps
(`step: 10  loss: … tps: 5,123  tflops: … mfu: …`), as torchtitan prints them. `tps` is tokens a second and device,
so an iteration takes mini-batch times sequence / (tps times devices). Each line may carry a prefix, as torchrun's
`[rank0]:`, and lines of several ranks may be mixed.
"""

import re
import statistics
from typing import Any

from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.sizes import plain_name, public_sizes
from pipebench.bench.calibration.torchtitan_config import PRINTED, printed_config
from pipebench.defaults import IN_A_V, INTERLEAVED, ONE_F_ONE_B
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_COUNT, MOST_LAYERS, MOST_LETTERS, MOST_SECONDS

WARM_UP = 1
"""Lines of steps that are dropped at the start; the first holds compilation."""
_STEP = re.compile(r"(?<!validate )step: +(\d{1,12}) .{0,400}?\b[tw]ps: ([0-9,]{1,20})(?=\s)")
"""Up to what follows the digits: a line that was cut inside them is none. Until November 2024 it says `wps`."""
_APPLIED = re.compile(r"Applied (\w{1,64}) activation checkpointing to the model")
_POLICIES = {"FullAC": "full", "SelectiveAC": "selective"}
_NARROW = re.compile(r"\bmfu: N/A")
"""In the place of a share of the peak where products are of 8 or 4 bits."""
_SINGLE = ("1f1b", "gpipe", "pipelineschedulesingle")
"""Schedules of one stage a device; of all others torchtitan has two, unless the configuration says more."""
_ACTIVE_MESH = re.compile(r"Building \d+-D device mesh with \[([^\]]{0,200})\], \[([0-9, ]{0,200})\]")
"""Names and degrees of the mesh until 2025: those above 1."""
_MESH = re.compile(r"Building device mesh with parallelism: ([a-z_]+=\d{1,6}(?:, [a-z_]+=\d{1,6}){0,20})")
"""All names and degrees, as they are printed since."""
_DEGREES = {
    "tp": "tensor_parallel_degree",
    "pp": "pipeline_parallel_degree",
    "cp": "context_parallel_degree",
    "ep": "expert_parallel_degree",
    "dp_replicate": "data_parallel_replicate_degree",
    "dp_shard": "data_parallel_shard_degree",
}
"""What the configuration calls the degrees of the mesh."""


def is_torchtitan_log(data: bytes) -> bool:
    """Whether the text holds torchtitan's configuration or its throughput."""
    rated = b"mfu: " in data and (b"tps: " in data or b"wps: " in data)
    return rated or any(start.encode() in data for start in PRINTED)


def torchtitan_run(text: str, source: str, device: str) -> Run:
    """The run of a log: the median throughput of its steps after the warm-up.

    Raises PipebenchError, with the place, for a value that is missing or is not what it must be, and for a log
    without steps.
    """
    config = _Config(text, source)
    tp, pp, cp, replicas, shards = map(config.degree, ("tp", "pp", "cp", "dp_replicate", "dp_shard"))
    gpus = tp * pp * cp * replicas * shards
    sequence, each, samples = config.batches(pp, replicas * shards)
    rate = statistics.median(_rates(text, source))
    seconds = samples * sequence / (rate * gpus)
    if not 0 < seconds <= MOST_SECONDS:
        raise PipebenchError(f"{source}: its throughput of {rate:g} tokens a second gives no time of an iteration")
    schedule = config.text("parallelism", "pipeline_parallel_schedule", ONE_F_ONE_B).lower()
    sizes, public = config.sizes(), public_sizes(config.model())
    by_stage = _layers_by_stage(config, pp, schedule, sizes.get("layers", public.layers if public else 0))
    virtual = len(by_stage) // pp
    known = {"interleaved1f1b": INTERLEAVED, "zbvzerobubble": IN_A_V}.get(schedule, schedule)
    if config.text("parallelism", "pipeline_parallel_schedule_csv", "") and known != IN_A_V:
        known = ""  # the order is in that file, not in the log
    notes = ["median throughput of the steps of a torchtitan log"]
    if pp == 1 and config.flag("training", "disable_cuda_graphs") is False:
        notes.append("with CUDA graphs, which hide the host's launches that are priced")
    if chunks := _size(config.section("loss"), "num_chunks"):
        notes.append(f"the loss in {chunks} chunks, priced in one")
    return Run(
        id=source[-MOST_LETTERS:],
        model=config.model(),
        layers=sizes.get("layers"),
        hidden=sizes.get("hidden"),
        heads=sizes.get("heads"),
        kv_heads=sizes.get("kv_heads"),
        ffn=sizes.get("ffn"),
        vocab=sizes.get("vocab") or None,
        seq=sequence,
        gpus=gpus,
        device=device,
        tp=tp,
        pp=pp,
        dp=replicas * shards,
        cp=cp,
        ep=config.degree("ep"),
        mbs=each,
        gbs=samples,
        vpp=virtual if virtual > 1 else None,
        partition="-".join(map(str, by_stage)),
        schedule=known,
        recompute=_recompute(config, text),
        precision=_precision(config, text),
        framework=f"torchtitan, FSDP={shards if shards > 1 else 0}",
        iter_s=seconds,
        source=one_line(source),
        how_read="; ".join(notes),
    )


def _recompute(config: "_Config", text: str) -> str:
    """Selective: of each operator by itself; of every n-th layer no problem of the suite says.

    Until 2026 the configuration has a mode. Since then it has the fields of a policy; its name is in a line.
    """
    section = "activation_checkpoint"
    said = config.section(section)
    mode = config.text(section, "mode", "")
    if mode or not said:
        by_operator = config.text(section, "selective_ac_option", "op") == "op"
        known = mode in ("", "none", "full") or (mode == "selective" and by_operator)
        return (mode or "none") if known else "unknown"
    shapes = said.get("force_recompute_mm_shapes_by_fqns")
    applied = _APPLIED.search(text)
    if applied:
        policy = _POLICIES.get(applied[1], "unknown")
    else:
        policy = "unknown" if "memory_budget" in said else "full" if shapes is None else "selective"
    usual = not isinstance(shapes, list) or all("router" in str(name) for name in shapes)
    return policy if policy != "selective" or usual else "unknown"


def _precision(config: "_Config", text: str) -> str:
    """Of the layers' products, and whether they were compiled. Which narrow one it was is not said."""
    wide = "fp32" if config.text("training", "mixed_precision_param", "") == "float32" else "bf16"
    wide = "bf16" if config.text("training", "dtype", "") == "bfloat16" else wide
    found = "narrower-than-bf16" if _NARROW.search(text) or config.narrows() else wide
    return f"{found}+compile" if config.compiles_layers() else found


def _layers_by_stage(config: "_Config", pipeline: int, schedule: str, layers: int) -> list[int]:
    """Layers of each stage, in the order of execution: as the configuration lists modules, else as torchtitan
    deals them out since 2025 (`_generate_llm_fqn_per_model_part`): embedding and head count as so many layers,
    what is left over goes to the first stages. Empty where the log does not tell.
    """
    section = "parallelism"
    listed = config.section(section).get("module_fqns_per_model_part")
    if pipeline > 1 and isinstance(listed, list) and listed and len(listed) % pipeline == 0:
        parts = [part if isinstance(part, list) else [] for part in listed]
        return [sum(str(name).startswith("layers.") for name in part) for part in parts]
    ends = ("pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers")
    if pipeline == 1 or not layers or not all(name in config.section(section) for name in ends):
        return []
    first, last = (_size(config.section(section), name) for name in ends)
    total = layers + first + last
    most = config.number(section, "pipeline_parallel_layers_per_stage", 0)
    stages = -(-total // most) if most > 0 else pipeline * (1 if schedule in _SINGLE else 2)
    if stages > total:
        return []
    each, left = divmod(total, stages)
    found = [each + (stage < left) for stage in range(stages)]
    found[0] -= first
    found[-1] -= last
    return found if stages % pipeline == 0 and min(found) >= 0 else []


def _rates(text: str, source: str) -> list[float]:
    """Tokens a second and device of each step after the warm-up."""
    found: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _STEP.search(line)
        if match is None:
            continue
        digits = match[2].replace(",", "")
        if not digits.isdecimal() or int(digits) == 0:
            raise PipebenchError(f"{source}: line {number}: {match[2]!r} is no throughput")
        found[int(match[1])] = float(digits)
    if not found:
        raise PipebenchError(f"{source}: there is no line of a step with its throughput", "it says `tps: …`")
    listed = [found[number] for number in sorted(found)]
    return listed[WARM_UP:] or listed


def _mesh(text: str) -> dict[str, int] | None:
    """Degrees by their names; None where no line says them."""
    listed, active = _MESH.search(text), _ACTIVE_MESH.search(text)
    if listed is not None:
        return {name: int(size) for name, size in re.findall(r"(\w+)=(\d+)", listed[1])}
    if active is None:
        return None
    sizes = map(int, re.findall(r"\d{1,6}", active[2]))
    return dict(zip(re.findall(r"\w+", active[1]), sizes, strict=False))


def _layer_sizes(layer: Any) -> dict[str, int]:
    """Heads, key and value heads and feed-forward width of a dense gated layer; empty for any other."""
    attention, gated = _part(layer, "attention"), _part(layer, "feed_forward")
    ffn, other = (_size(_part(gated, name), "out_features") for name in ("w1", "w3"))
    heads, width = _size(attention, "n_heads"), _size(attention, "head_dim")
    own = bool(width) and width * heads != _size(attention, "dim")
    if not heads or not ffn or ffn != other or own or _part(layer, "moe"):
        return {}
    return {"heads": heads, "kv_heads": _size(attention, "n_kv_heads") or heads, "ffn": ffn}


def _part(value: Any, name: str) -> dict[str, Any]:
    """A dict inside another; empty where it is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _size(part: dict[str, Any], name: str) -> int:
    """A whole number from 1; 0 for anything else."""
    found = part.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found <= MOST_COUNT else 0


class _Config:
    """The configuration that a log prints."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._mesh = _mesh(text)
        self._line, self._values = printed_config(text, source)
        if self._older():
            raise PipebenchError(
                f"{source}: line {self._line}: a configuration of torchtitan before April 2025, which is not read",
                "write the run into a table (columns: docs/reference/runs.md)",
            )

    def _older(self) -> bool:
        """Whether it is from before micro-batches of pipelines were said by their size, among degrees."""
        names = {*self.section("training"), *self.section("parallelism")}
        known = ("local_batch_size", "num_tokens_per_microbatch_per_dp_rank", "pipeline_parallel_microbatch_size")
        return "batch_size" in names and not names.intersection(known)

    def section(self, name: str) -> dict[str, Any]:
        """A part of the configuration; empty where it has none."""
        return _part(self._values, name)

    def _of(self, section: str, name: str) -> Any:
        return self.section(section).get(name)

    def flag(self, section: str, name: str) -> bool | None:
        """True or False, None where it is not said."""
        found = self._of(section, name)
        return found if isinstance(found, bool) else None

    def text(self, section: str, name: str, usual: str) -> str:
        """A text."""
        found = self._of(section, name)
        return one_line(found[:MOST_LETTERS]) if isinstance(found, str) else usual

    def number(self, section: str, name: str, usual: int) -> int:
        """A whole number, below 0 where torchtitan is to find it. Raises PipebenchError for anything else."""
        found = self._of(section, name)
        if found is None:
            return usual
        if not isinstance(found, int) or isinstance(found, bool) or not -1 <= found <= MOST_COUNT or found == 0:
            raise self._error(section, name, f"{one_line(repr(found))[:40]} is not a whole number")
        return found

    def count(self, section: str, name: str) -> int:
        """A whole number from 1."""
        found = self.number(section, name, -1)
        if found < 1:
            raise self._error(section, name, "it is not said")
        return found

    def degree(self, axis: str) -> int:
        """A degree of parallelism; where the configuration leaves it open, as the mesh says, else 1.

        Raises PipebenchError where neither says the shards: the number of devices follows from them.
        """
        name = _DEGREES[axis]
        found = self.number("parallelism", name, -1)
        if found > 0:
            return found
        if self._mesh is None and axis == "dp_shard":
            raise self._error(
                "parallelism",
                name,
                "it is left open, and no line of the log says the device mesh",
                "keep the line `Building device mesh with parallelism: …`, or say the degree in the configuration",
            )
        return max(1, (self._mesh or {}).get(axis, 1))

    def model(self) -> str:
        """The name of the model; its part of the configuration is called `model_spec` since 2026."""
        part = "model" if self._of("model", "name") is not None else "model_spec"
        return plain_name(f"{self.text(part, 'name', '')}-{self.text(part, 'flavor', '')}")

    def sizes(self) -> dict[str, int]:
        """Sizes of the model by the fields of a run, where its own part of the configuration (`model_spec.model`,
        since 2026) has dense gated layers that are all alike; else none.
        """
        model = _part(self.section("model_spec"), "model")
        layers = model.get("layers")
        if not isinstance(layers, list) or not 0 < len(layers) <= MOST_LAYERS:
            return {}
        shapes = {tuple(_layer_sizes(layer).items()) for layer in layers}
        sizes = dict(shapes.pop()) if len(shapes) == 1 else {}
        hidden, vocab = _size(model, "dim"), _size(model, "vocab_size")
        return {"layers": len(layers), "hidden": hidden, "vocab": vocab} | sizes if sizes and hidden else {}

    def batches(self, pipeline: int, replicas: int) -> tuple[int, int, int]:
        """Tokens of a sample, samples of a replica's micro-batch, and of the mini-batch: said in samples, or in
        tokens since 2026.
        """
        tokens, whole = "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step"
        if self._of("training", tokens) is None:
            older = "batch_size" in self.section("training")  # until June 2025
            local = self.count("training", "batch_size" if older else "local_batch_size")
            sequence = self.count("training", "seq_len")
            inner = self.number("parallelism", "pipeline_parallel_microbatch_size", 1)
            said = self.number("training", "global_batch_size", -1)
            return sequence, inner if pipeline > 1 else local, said if said > 0 else local * replicas
        sequence = self.count("training", "max_context_length")
        each = self._samples(tokens, sequence)
        if self.number("training", whole, -1) > 0:
            return sequence, each, self._samples(whole, sequence)
        rounds = self.number("parallelism", "num_pp_microbatches", 1) if pipeline > 1 else 1
        return sequence, each, each * rounds * replicas

    def _samples(self, name: str, sequence: int) -> int:
        tokens = self.count("training", name)
        if tokens % sequence:
            raise self._error("training", name, f"{tokens} tokens are no whole samples of {sequence}")
        return tokens // sequence

    def narrows(self) -> bool:
        """Whether a converter of the model makes products of 8 or 4 bits (`float8`, `quantize.linear.mx`, …)."""
        names = self._of("model", "converters")
        return any(re.match(r"(float8|mx|quantize)\b", str(name)) for name in names or ())

    def compiles_layers(self) -> bool:
        """Whether torch.compile makes the layers' kernels (`compile.enable`, once `training.compile`)."""
        if self._of("training", "compile") is True:
            return True
        parts = self._of("compile", "components")
        return self._of("compile", "enable") is True and (not isinstance(parts, list) or "model" in parts)

    def _error(self, section: str, name: str, why: str, remedy: str = "") -> PipebenchError:
        return PipebenchError(f"{self._source}: line {self._line}: {section}.{name}: {why}", remedy)
