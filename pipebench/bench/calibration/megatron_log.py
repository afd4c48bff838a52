"""The log of a Megatron-LM training as one measured run.

Read are the dump of arguments (lines `  name ....... value` between `arguments` and `end of arguments`) and the
iteration lines (`megatron_iterations`), as megatron/training prints them. Lines may carry a prefix, such as a rank
or a time. An argument that changes the time is in the run, or the log is refused at its line. A job that was
started again prints its dump again: what follows each dump is a part of the log, and all parts must be of one run.
"""

import re
import statistics
from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec.structs import replace

from pipebench.bench.accuracy.framework import DISTRIBUTED_OPTIMIZER, OVERLAPPED_REDUCTION, SPLITS_SEQUENCES
from pipebench.bench.accuracy.run import COLUMNS, OPTIONAL, Run
from pipebench.bench.calibration.megatron_iterations import ELAPSED, has_iteration, iteration_times
from pipebench.defaults import INTERLEAVED, ONE_F_ONE_B
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.limits import MOST_COUNT, MOST_LAYERS, MOST_LETTERS
from pipebench.formats.frameworks.megatron import check_layout, parse_layout

_ARGUMENTS, _END = "- arguments -", "- end of arguments -"
_ARGUMENT = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_]{0,63}) \.+ (.*)")
MOST_VALUE_LETTERS = 10_000
_PADDED = re.compile(r"> padded vocab \(size: \d{1,10}\) with \d{1,10} dummy tokens \(new size: (\d{1,10})\)")
"""Printed by the tokenizer, which is built after the dump: there the padded vocabulary is None."""
_DEEPSPEED = "deepspeed"
_ZERO = re.compile(r"  zero_optimization_stage \.+ ([0-3])\b")
"""Printed by DeepSpeed's engine behind the dump."""
_ZERO_WORDS = {"0": f", no {DISTRIBUTED_OPTIMIZER}", "1": f", {DISTRIBUTED_OPTIMIZER}", "3": ", FSDP"}
_NEOX = "pipe_parallel_size"
_OFF = ("None", "False", "0", "[1]")
"""Megatron-DeepSpeed lists experts by layer: [1] is a dense model."""
_OTHER_MODELS = {
    "num_experts": "mixture-of-experts",
    "multi_latent_attention": "latent-attention",
    "mtp_num_layers": "multi-token-prediction",
    "hybrid_layer_pattern": "hybrid-layers",
    "hybrid_override_pattern": "hybrid-layers",
}
"""Arguments that make a model neither a GPT nor a Llama, and what it then is."""
_DENSE: tuple[RecomputeModule, ...] = ("core_attn", "mlp")
"""Modules that the layers of a GPT or a Llama have; others are named in vain."""
_OLDER_RECOMPUTE = {
    "activations_checkpoint": "activations_checkpoint_method",
    "checkpoint": "checkpoint_activations",
}
"""Before `recompute_granularity` (2022): how its arguments start, and which one says that layers run again."""
_OWN_FSDP, _WHOLE = ("use_custom_fsdp", "use_megatron_fsdp"), "optim_grads_params"
"""Flags of Megatron-LM's own fully sharded data parallelism, and its strategy that shares out everything."""


def is_megatron_log(data: bytes) -> bool:
    """Whether the text holds a dump of Megatron-LM's arguments or an iteration line."""
    return b"- end of arguments -" in data or ELAPSED.encode() in data


def megatron_run(text: str, source: str, device: str) -> Run:
    """The run of a log: the median of its iterations after the warm-up, of all parts together.

    Raises PipebenchError, with the line, for an argument that is missing or is not what it must be, for a log
    without iterations, and for one of several runs.
    """
    parts = list(_parts(text.splitlines()))
    runs: list[Run] = []
    seconds: list[float] = []
    dropped: list[str] = []
    for first, lines in parts:
        arguments = _Arguments(lines, first, source)
        run = _run(arguments, "\n".join(lines), source, device)
        batch, sequence = run.gbs or 0, run.seq or 0
        kept, left_out = iteration_times(lines, first, source, batch, sequence)
        if runs and run != runs[0]:
            other = next(name for name in (*COLUMNS, *OPTIONAL) if getattr(run, name) != getattr(runs[0], name))
            raise PipebenchError(
                f"{source}: line {first}: another run starts, with {other} {getattr(run, other)} and not "
                f"{getattr(runs[0], other)}",
                "give each run a log of its own",
            )
        runs.append(run)
        seconds += kept
        dropped += left_out
    why = ", ".join(f"{dropped.count(reason)} {reason}" for reason in dict.fromkeys(dropped))
    count = f"median of {len(seconds)} iteration lines, {why or '0 dropped'}"
    return replace(runs[0], iter_s=statistics.median(seconds), how_read=f"Megatron-LM log: {count}")


def _parts(lines: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """What follows each dump that iterations follow, with the number of its first line; all where none has them.

    Lines before the first dump are of its part: the last rank prints iterations, and its log may come first.
    """
    starts = [number for number, line in enumerate(lines) if _ARGUMENTS in line]
    starts = [0, *starts[1:]]
    bounds = zip(starts, [*starts[1:], len(lines)], strict=True)
    found = [(start, lines[start:end]) for start, end in bounds]
    timed = [(start + 1, part) for start, part in found if any(map(has_iteration, part))]
    yield from timed or [(1, lines)]


def _run(arguments: "_Arguments", text: str, source: str, device: str) -> Run:
    """The run as the arguments say it, without its time. text: of the part that they are of."""
    layers, hidden, heads = map(arguments.count, ("num_layers", "hidden_size", "num_attention_heads"))
    pipeline = arguments.count("pipeline_model_parallel_size", 1)
    virtual = arguments.count("virtual_pipeline_model_parallel_size", 1)
    by_stage = _layers_by_stage(arguments, layers, pipeline, virtual)
    virtual = len(by_stage) // pipeline if by_stage else virtual
    return Run(
        id=source[-MOST_LETTERS:],
        model=_model(arguments, hidden, heads),
        layers=layers,
        hidden=hidden,
        heads=heads,
        seq=arguments.count("seq_length"),
        vocab=_vocabulary(arguments, text),
        gpus=arguments.count("world_size"),
        device=device,
        tp=arguments.count("tensor_model_parallel_size", 1),
        pp=pipeline,
        dp=arguments.count("data_parallel_size", 0) or None,
        cp=arguments.count("context_parallel_size", 1),
        ep=arguments.count("expert_model_parallel_size", 1),
        vpp=virtual if virtual > 1 else None,
        mbs=arguments.count("micro_batch_size"),
        gbs=arguments.count("global_batch_size"),
        partition="-".join(map(str, by_stage)),
        schedule=INTERLEAVED if virtual > 1 else ONE_F_ONE_B,
        recompute=_recompute(arguments, max(by_stage, default=layers // (pipeline * virtual))),
        precision=_precision(arguments),
        framework=_framework(arguments, text),
        iter_s=1,
        source=one_line(source),
        ffn=arguments.count("ffn_hidden_size", 4 * hidden),
        kv_heads=_kv_heads(arguments, heads),
    )


def _kv_heads(arguments: "_Arguments", heads: int) -> int:
    """As Megatron-LM calls them, or as Megatron-DeepSpeed does."""
    if arguments.flag("group_query_attention"):
        return arguments.count("num_query_groups")
    return arguments.count("num_key_value_heads", heads)


def _vocabulary(arguments: "_Arguments", text: str) -> int | None:
    """Entries of the table, padded: by the dump, by the line of the tokenizer, else by the entries before padding.

    None where the log says none of them: which one a file of a tokenizer has is not in it.
    """
    name, divisor = "padded_vocab_size", "make_vocab_size_divisible_by"
    if arguments.text(name, "None") != "None":
        return arguments.count(name)
    line = _PADDED.search(text)
    if line is not None and 0 < int(line[1]) <= MOST_COUNT:
        return int(line[1])
    if arguments.text("vocab_size", "None") == "None":
        return None
    unit = arguments.count(divisor, 128) * arguments.count("tensor_model_parallel_size", 1)
    return -(-arguments.count("vocab_size") // unit) * unit


def _model(arguments: "_Arguments", hidden: int, heads: int) -> str:
    """A name that says the architecture; one that no architecture has for a model that is priced as none."""
    for name, model in _OTHER_MODELS.items():
        if arguments.text(name, "None") not in _OFF:
            return model
    if heads * arguments.count("kv_channels", hidden // heads) != hidden:
        return "heads-of-another-width"
    return "llama" if arguments.flag("swiglu") else "gpt"


def _layers_by_stage(arguments: "_Arguments", layers: int, pipeline: int, virtual: int) -> list[int]:
    """Layers of each stage, in the order of execution, by the layout or by the ends that are said; empty where
    layers go evenly into stages.
    """
    name = "pipeline_model_parallel_layout"
    layout = arguments.text(name, "None")
    if layout != "None":
        try:
            stages = parse_layout(layout)
            check_layout(stages, pipeline, layers)
        except PipebenchError as error:
            raise arguments.error(name, error.message) from None
        return [stage.count("t") for stage in stages]
    if pipeline * virtual > MOST_LAYERS:
        raise arguments.error("pipeline_model_parallel_size", f"more than {MOST_LAYERS} stages")
    first, last = (arguments.count(f"decoder_{end}_pipeline_num_layers", 0) for end in ("first", "last"))
    if first or last:
        between = pipeline - bool(first) - bool(last)
        each = (layers - first - last) // max(1, between)
        ranks = [first or each, *[each] * (pipeline - 2), last or each][:pipeline]
        if sum(ranks) != layers or any(count % virtual or count < 1 for count in ranks):
            raise arguments.error(
                f"decoder_{'first' if first else 'last'}_pipeline_num_layers",
                f"{layers} layers do not go evenly into the other stages",
            )
        return [count // virtual for count in ranks] * virtual
    embedding, loss = (arguments.flag(f"account_for_{end}_in_pipeline_split") for end in ("embedding", "loss"))
    if not embedding and not loss:
        return []
    found = [(layers + embedding + loss) // (pipeline * virtual)] * (pipeline * virtual)
    found[0] -= embedding
    found[-1] -= loss
    return found


def _recompute(arguments: "_Arguments", layers: int) -> str:
    """layers: of the largest stage."""
    kind, prefix = arguments.text("recompute_granularity", "None"), "recompute"
    if kind == "None":
        said = (older for older, name in _OLDER_RECOMPUTE.items() if arguments.text(name, "None") not in _OFF)
        prefix = next(said, "")
        kind = "full" if prefix else "none"
    if kind == "full":
        kind = _full_recompute(arguments, layers, prefix)
    parts = re.findall(r"\w+", arguments.text("recompute_modules", "core_attn"))
    if kind == "selective" and parts not in (["core_attn"], ["None"]):
        strange = [name for name in parts if name not in get_args(RecomputeModule)]
        if strange:
            raise arguments.unpriced("recompute_modules", f"{strange[0]} runs again, which is not priced")
        parts = [name for name in parts if name in _DENSE]
        kind = f"selective={'+'.join(parts)}" if parts else "none"
    split = SPLITS_SEQUENCES if arguments.flag("sequence_parallel") else f"no {SPLITS_SEQUENCES}"
    return f"{kind} + {split}"


def _full_recompute(arguments: "_Arguments", layers: int, prefix: str) -> str:
    """Each layer by itself, or all of a stage together. Raises PipebenchError where some layers do not run again,
    and for groups of another size.
    """
    name = f"{prefix}_num_layers"
    count = arguments.count(name, 1)
    if arguments.text(f"{prefix}_method", "None") == "block":
        if count < layers:
            raise arguments.unpriced(
                name, f"{count} of the {layers} layers of a stage run again, and only all or none are priced"
            )
        return "full"
    if 1 < count < layers:
        raise arguments.unpriced(name, f"groups of {count} layers run again together, which is not priced")
    return "full" if count == 1 else "stage"


def _precision(arguments: "_Arguments") -> str:
    """Of the layers' products, and whether they run beside the collectives of tensor parallelism."""
    narrow = [name for name in ("fp4", "fp8") if arguments.text(name, "None") not in _OFF]
    narrow += ["fp8"] if arguments.flag("fp8_hybrid") or arguments.flag("fp8_e4m3") else []
    wide = "bf16" if arguments.flag("bf16") else "fp16" if arguments.flag("fp16") else "fp32"
    return "+".join([narrow[0] if narrow else wide, *arguments.said("tp_comm_overlap", "asyncTP")])


def _framework(arguments: "_Arguments", text: str) -> str:
    """Its name, and how replicas share out and reduce, where the log says it.

    Of Megatron-DeepSpeed the stage that DeepSpeed prints counts: the argument `zero_stage` may be another one's.
    """
    if arguments.flag("deepspeed") or _DEEPSPEED in arguments.text("framework", ""):
        stage = _ZERO.search(text)
        if stage is not None and stage[1] == "2":
            raise arguments.unpriced(
                "zero_stage", "gradients are shared out and weights are not, which no run says"
            )
        return f"Megatron-DeepSpeed{_ZERO_WORDS[stage[1]] if stage is not None else ''}"
    own = next(filter(arguments.flag, _OWN_FSDP), "")
    strategy = arguments.text("data_parallel_sharding_strategy", "no_shard")
    if own and strategy != _WHOLE:
        raise arguments.unpriced(own, f"its strategy {one_line(strategy[:40])} is not priced, {_WHOLE} is")
    shares = own or arguments.flag("use_torch_fsdp2") or arguments.flag("use_distributed_optimizer")
    group = _group(arguments) if shares else ""
    return ", ".join(
        [
            "Megatron-LM",
            *([f"FSDP{group}"] if own or arguments.flag("use_torch_fsdp2") else []),
            *arguments.said("use_distributed_optimizer", f"{DISTRIBUTED_OPTIMIZER}{group}"),
            *arguments.said("overlap_grad_reduce", OVERLAPPED_REDUCTION),
        ]
    )


def _group(arguments: "_Arguments") -> str:
    """How many replicas share out a copy, behind what they share out; '' where all do."""
    name = "num_distributed_optimizer_instances"
    copies = arguments.count(name, 1)
    if copies == 1:
        return ""
    replicas = arguments.count("data_parallel_size")
    if replicas % copies:
        raise arguments.unpriced(name, f"{copies} copies of {replicas} replicas are no whole groups of them")
    return f"={replicas // copies}"


class _Arguments:
    """The arguments that a log dumps, by name, each with its line."""

    def __init__(self, lines: Sequence[str], first: int, source: str) -> None:
        """first: the number of the first line. Raises PipebenchError without a dump, and for one of GPT-NeoX."""
        self._source = source
        self._found: dict[str, tuple[int, str]] = {}
        inside = False
        for number, line in enumerate(lines, first):
            if _END in line:
                break
            if inside and (match := _ARGUMENT.search(line)) and len(match[2]) <= MOST_VALUE_LETTERS:
                self._found.setdefault(match[1], (number, match[2].strip()))
            inside = inside or _ARGUMENTS in line
        if not self._found:
            raise PipebenchError(
                f"{source}: the log has no dump of its arguments",
                "Megatron-LM prints it at the start: keep it. Of a framework that prints none (Megatron-Bridge) "
                "write the runs into a table (columns: docs/reference/runs.md)",
            )
        if _NEOX in self._found:
            raise PipebenchError(
                f"{source}: line {self._found[_NEOX][0]}: a log of GPT-NeoX, whose arguments are not read",
                "write its runs into a table (columns: docs/reference/runs.md)",
            )

    def text(self, name: str, usual: str) -> str:
        """The value as it is printed."""
        return self._found.get(name, (0, usual))[1]

    def flag(self, name: str) -> bool:
        """Whether the argument is there and True."""
        return self.text(name, "False") == "True"

    def said(self, name: str, words: str) -> list[str]:
        """The words of a setting, with `no` before them where its argument is not True; none without it."""
        return [words if self.flag(name) else f"no {words}"] if name in self._found else []

    def count(self, name: str, usual: int | None = None) -> int:
        """A whole number. usual: where it is not there, or None. Raises PipebenchError with the line."""
        said = self.text(name, "None")
        if said == "None":
            if usual is None:
                raise PipebenchError(f"{self._source}: the arguments do not say {name}")
            return usual
        if not said.isdecimal() or len(said) > 10 or not 1 <= int(said) <= MOST_COUNT:
            raise self.error(name, f"{one_line(repr(said[:40]))} is not a whole number from 1 to {MOST_COUNT}")
        return int(said)

    def unpriced(self, name: str, why: str) -> PipebenchError:
        """An argument that changes the time in a way that no problem of the suite says."""
        return self.error(name, why, "leave this log out: no prediction is of its run")

    def error(self, name: str, why: str, remedy: str = "") -> PipebenchError:
        """What is wrong with an argument, with its line."""
        line = self._found[name][0] if name in self._found else 0
        return PipebenchError(f"{self._source}: line {line}: {name}: {why}", remedy)
