"""The log of a torchtitan training as one measured run.

Read are the dump of the configuration (`Running with configs: {…}` as JSON, printed where the job asks for it) and
the lines of steps (`step: 10  loss: … tps: 5,123  tflops: … mfu: …`), as torchtitan prints them; colours are taken
off. `tps` is tokens a second and device, so an iteration takes mini-batch times sequence / (tps times devices).
"""

import json
import re
import statistics
from typing import Any

from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.sizes import plain_name
from pipebench.defaults import IN_A_V, INTERLEAVED, ONE_F_ONE_B
from pipebench.documents.decoding import bounded_json
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LARGEST_CONFIG_BYTES, MOST_COUNT, MOST_LETTERS, MOST_SECONDS

WARM_UP = 1
"""Lines of steps that are dropped at the start; the first holds compilation."""
_CONFIG = "Running with configs: "
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}m")
_STEP = re.compile(r"(?<!validate )step: +(\d{1,12}) .{0,400}?\btps: ([0-9,]{1,20})")
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
    return _CONFIG.encode() in data or (b"tps: " in data and b"mfu: " in data)


def torchtitan_run(text: str, source: str, device: str) -> Run:
    """The run of a log: the median throughput of its steps after the warm-up.

    Raises PipebenchError, with the place, for a value that is missing or is not what it must be, and for a log
    without steps.
    """
    text = _COLOUR.sub("", text)
    config = _Config(text, source)
    tp, pp, cp, replicas, shards = map(config.degree, ("tp", "pp", "cp", "dp_replicate", "dp_shard"))
    gpus = tp * pp * cp * replicas * shards
    sequence, each, samples = config.batches(pp, replicas * shards)
    rate = statistics.median(_rates(text, source))
    seconds = samples * sequence / (rate * gpus)
    if not 0 < seconds <= MOST_SECONDS:
        raise PipebenchError(f"{source}: its throughput of {rate:g} tokens a second gives no time of an iteration")
    schedule = config.text("parallelism", "pipeline_parallel_schedule", ONE_F_ONE_B).lower()
    return Run(
        id=source[-MOST_LETTERS:],
        model=config.model(),
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
        schedule={"interleaved1f1b": INTERLEAVED, "zbvzerobubble": IN_A_V}.get(schedule, schedule),
        recompute=_recompute(config),
        precision="bf16+compile" if config.compiles_layers() else "bf16",
        framework=f"torchtitan, FSDP={shards if shards > 1 else 0}",
        iter_s=seconds,
        source=one_line(source),
        how_read="median throughput of the steps of a torchtitan log",
    )


def _recompute(config: "_Config") -> str:
    """Selective: of each operator by itself; of every n-th layer no problem of the suite says."""
    mode = config.text("activation_checkpoint", "mode", "none")
    by_operator = config.text("activation_checkpoint", "selective_ac_option", "op") == "op"
    return mode if mode in ("none", "full") or (mode == "selective" and by_operator) else "unknown"


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


class _Config:
    """The configuration that a log prints."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._mesh = _mesh(text)
        start = text.find(_CONFIG)
        if start < 0:
            raise PipebenchError(
                f"{source}: the log has no configuration",
                "torchtitan prints it as `Running with configs:` where the job asks for it (print_config)",
            )
        body = text[start + len(_CONFIG) : start + len(_CONFIG) + LARGEST_CONFIG_BYTES]
        self._line = text.count("\n", 0, start) + 1
        try:
            bounded_json(body.encode(), source)
            value, _ = json.JSONDecoder().raw_decode(body)
        except (json.JSONDecodeError, RecursionError, ValueError) as error:
            raise PipebenchError(f"{source}: line {self._line}: its configuration is not JSON: {error}") from None
        self._values: dict[str, Any] = value if isinstance(value, dict) else {}

    def _of(self, section: str, name: str) -> Any:
        part = self._values.get(section)
        return part.get(name) if isinstance(part, dict) else None

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

    def batches(self, pipeline: int, replicas: int) -> tuple[int, int, int]:
        """Tokens of a sample, samples of a replica's micro-batch, and of the mini-batch: said in samples, or in
        tokens since 2026.
        """
        tokens, whole = "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step"
        if self._of("training", tokens) is None:
            sequence, local = self.count("training", "seq_len"), self.count("training", "local_batch_size")
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

    def compiles_layers(self) -> bool:
        """Whether torch.compile makes the layers' kernels (`compile.enable`, once `training.compile`)."""
        if self._of("training", "compile") is True:
            return True
        parts = self._of("compile", "components")
        return self._of("compile", "enable") is True and (not isinstance(parts, list) or "model" in parts)

    def _error(self, section: str, name: str, why: str, remedy: str = "") -> PipebenchError:
        return PipebenchError(f"{self._source}: line {self._line}: {section}.{name}: {why}", remedy)
