"""The log of a Megatron-LM training as one measured run.

Read are the dump of arguments (lines `  name ....... value` between `arguments` and `end of arguments`) and the
iteration lines (`iteration  10/ 100 | … | elapsed time per iteration (ms): 5243.1 | …`), as megatron/training
prints them. Lines may carry a prefix, such as a rank or a time.
"""

import re
import statistics

from pipebench.bench.accuracy.framework import SPLITS_SEQUENCES
from pipebench.bench.accuracy.run import Run
from pipebench.defaults import INTERLEAVED, ONE_F_ONE_B
from pipebench.documents.printable import one_line
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_COUNT, MOST_LETTERS, MOST_SECONDS

WARM_UP = 2
"""Iteration lines that are dropped at the start, where at least as many are left."""
_ARGUMENTS, _END = "- arguments -", "- end of arguments -"
_ARGUMENT = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_]{0,63}) \.+ (.{0,1000})$")
_ITERATION = re.compile(
    r"\biteration +(\d{1,12})/ *\d{1,12} \|.{0,400}?elapsed time per iteration \(ms\): ([0-9.]{1,20})"
)
_DEEPSPEED = "deepspeed"


def is_megatron_log(data: bytes) -> bool:
    """Whether the text holds a dump of Megatron-LM's arguments or an iteration line."""
    return b"- end of arguments -" in data or b"elapsed time per iteration (ms):" in data


def megatron_run(text: str, source: str, device: str) -> Run:
    """The run of a log: the median of its iterations after the warm-up.

    Raises PipebenchError, with the line, for an argument that is missing or is not what it must be, and for a log
    without iterations.
    """
    arguments = _Arguments(text, source)
    times_ms = _iteration_times_ms(text, source)
    kept = times_ms[WARM_UP:] if len(times_ms) >= 2 * WARM_UP else times_ms[-1:]
    said = arguments.text("framework", "")
    deepspeed = arguments.flag("deepspeed") or _DEEPSPEED in said
    llama = arguments.flag("swiglu")
    heads, groups = arguments.count("num_attention_heads"), arguments.count("num_query_groups", 1)
    if arguments.flag("group_query_attention") and groups != heads and not llama:
        raise arguments.error("num_query_groups", "grouped queries of a model that the suite does not know")
    hidden = arguments.count("hidden_size")
    ffn = arguments.count("ffn_hidden_size", 4 * hidden)
    if not llama and ffn != 4 * hidden:
        raise arguments.error("ffn_hidden_size", f"{ffn}, a GPT's is taken as four times its width")
    virtual = arguments.count("virtual_pipeline_model_parallel_size", 1)
    stages = arguments.count("pipeline_model_parallel_size", 1)
    return Run(
        id=source[-MOST_LETTERS:],
        model="llama" if llama else "gpt",
        layers=arguments.count("num_layers"),
        hidden=hidden,
        heads=heads,
        seq=arguments.count("seq_length"),
        vocab=arguments.count("padded_vocab_size"),
        gpus=arguments.count("world_size"),
        device=device,
        tp=arguments.count("tensor_model_parallel_size", 1),
        pp=stages,
        dp=arguments.count("data_parallel_size", 0) or None,
        cp=arguments.count("context_parallel_size", 1),
        ep=arguments.count("expert_model_parallel_size", 1),
        vpp=virtual if virtual > 1 else None,
        mbs=arguments.count("micro_batch_size"),
        gbs=arguments.count("global_batch_size"),
        schedule=INTERLEAVED if virtual > 1 else ONE_F_ONE_B,
        recompute=_recompute(arguments),
        precision="bf16" if arguments.flag("bf16") else "fp16" if arguments.flag("fp16") else "fp32",
        framework="Megatron-DeepSpeed" if deepspeed else "Megatron-LM",
        iter_s=statistics.median(kept) / 1e3,
        source=one_line(source),
        how_read=f"Megatron-LM log: median of {len(kept)} iteration lines, {len(times_ms) - len(kept)} dropped",
    )


def _recompute(arguments: "_Arguments") -> str:
    kind = arguments.text("recompute_granularity", "None")
    if kind == "None":
        kind = "full" if arguments.flag("checkpoint_activations") else "none"
    split = SPLITS_SEQUENCES if arguments.flag("sequence_parallel") else f"no {SPLITS_SEQUENCES}"
    return f"{kind} + {split}"


def _iteration_times_ms(text: str, source: str) -> list[float]:
    """Milliseconds of each iteration line. Several lines of one iteration are several ranks': the last counts."""
    found: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _ITERATION.search(line)
        if match is None:
            continue
        try:
            milliseconds = float(match[2])
        except ValueError:
            milliseconds = 0.0
        if not 0 < milliseconds <= MOST_SECONDS * 1e3:
            raise PipebenchError(f"{source}: line {number}: {match[2]!r} is not a time in milliseconds")
        found[int(match[1])] = milliseconds
    if not found:
        raise PipebenchError(
            f"{source}: there is no iteration line", "it says `elapsed time per iteration (ms): …`"
        )
    return [found[number] for number in sorted(found)]


class _Arguments:
    """The arguments that a log dumps, by name, each with its line."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._found: dict[str, tuple[int, str]] = {}
        inside = False
        for number, line in enumerate(text.splitlines(), 1):
            if _END in line:
                break
            if inside and (match := _ARGUMENT.search(line)):
                self._found.setdefault(match[1], (number, match[2].strip()))
            inside = inside or _ARGUMENTS in line
        if not self._found:
            raise PipebenchError(
                f"{source}: the log has no dump of its arguments", "Megatron-LM prints it at the start: keep it"
            )

    def text(self, name: str, usual: str) -> str:
        """The value as it is printed."""
        return self._found.get(name, (0, usual))[1]

    def flag(self, name: str) -> bool:
        """Whether the argument is there and True."""
        return self.text(name, "False") == "True"

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

    def error(self, name: str, why: str) -> PipebenchError:
        """What is wrong with an argument, with its line."""
        line = self._found[name][0] if name in self._found else 0
        return PipebenchError(f"{self._source}: line {line}: {name}: {why}")
