"""What the framework of a run means for the problem: the one place where profiler options and fields of the
workload follow from it.
"""

import re
from difflib import get_close_matches
from typing import Any, Literal, cast

from pipebench.bench.accuracy.assumptions import Choices, NotExpressed
from pipebench.bench.accuracy.run import Run
from pipebench.defaults import PROFILER
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.problem import OptimizerSharding
from pipebench.domain.profile import NarrowPrecision, Precision
from pipebench.domain.value import Value
from pipebench.formats.frameworks.facts import TORCHTITAN, framework_family

FrameworkName = Literal["megatron", "megatron-v2", "megatron-deepspeed", "torchtitan", "torchtitan-eager", "other"]
"""other: one that the table does not have, of the time before fused attention."""
RecomputeKind = Literal["none", "selective", "full"]
SequenceParallel = Literal["", "on", "off"]
_WORDS: tuple[tuple[str, FrameworkName], ...] = (
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("megatron", "megatron"),
    ("nemo", "megatron"),
    ("torchtitan", "torchtitan"),
)
"""What a framework's name starts with, the longer first. NeMo trains with Megatron-LM's layers."""


class Setting(Value, frozen=True, kw_only=True):
    """What a run is run with, as far as its framework decides more than the run says.

    modules: of a layer, that run again in place of attention's core.
    products: the precision of the layers' products, where it is another than that of the weights. tp: the degree.
    sequence_parallel: `on` or `off` where it is not left to the framework. tensor_overlap: whether products run
    beside the collectives of tensor parallelism.
    """

    framework: FrameworkName
    architecture: str
    recompute: RecomputeKind
    modules: tuple[RecomputeModule, ...] = ()
    precision: Precision
    products: NarrowPrecision | None = None
    sequence_parallel: SequenceParallel = ""
    tensor_overlap: bool = False
    tp: int


BEFORE_FUSED: FrameworkName = "megatron-v2"
"""As what `other` is priced, without what only Megatron-LM does."""
NAMES, ALIKE = (*dict(_WORDS), "megatron-lm"), 0.8
"""What frameworks are called, and how alike a name is that was meant to be one."""
FUSED_SINCE = ("H100", "H200", "B200", "GB200", "B300", "GB300", "GH200")
"""Devices on which nobody trained without fused attention."""


COMPILED, ASYNCHRONOUS = "compile", "asynctp"
"""Words behind a run's precision: its layers are compiled; products run beside the collectives of tensor
parallelism. torchtitan does neither by itself, and the latter in compiled layers only.
"""
DISTRIBUTED_OPTIMIZER, OVERLAPPED_REDUCTION = "distributed optimizer", "overlapped reduction"
"""Words behind a run's framework: replicas share out the optimizer; gradients are reduced beside the backward."""


def says(text: str, words: str) -> bool | None:
    """Whether a run's text has words of its setting, or has them with `no` before them; None for neither."""
    text = text.lower()
    return f"no {words}" not in text if words in text else None


def _ways(run: Run) -> set[str]:
    """The words behind the precision."""
    return set(run.precision.lower().split("+")[1:])


def is_torchtitan(framework: FrameworkName) -> bool:
    """Whether it is torchtitan, compiled or not."""
    return framework_family(framework) == TORCHTITAN


def framework_of(run: Run, device: str, choices: Choices) -> FrameworkName:
    """The framework by the start of its name, Megatron-LM's generation by the device that it ran on, and whether
    torchtitan compiled by what the run says of it. One that the table does not have is taken as Megatron-LM. Its
    older generation knew no ranks that share out experts or sequences, and no modules that run again by name.
    """
    known = (name for start, name in _WORDS if run.framework.lower().startswith(start))
    found = next(known, None)
    if found == "torchtitan" and not _ways(run) & {COMPILED, ASYNCHRONOUS}:
        return "torchtitan-eager"
    if found is None:
        like = get_close_matches(re.split(r"[^a-z-]", run.framework.lower())[0], NAMES, 1, ALIKE)
        if like:
            raise NotExpressed(f"a framework whose name is nearly {like[0]}", f"framework is {run.framework}")
    elif found != "megatron":
        return found
    shared = (run.ep or 1) > 1 or (run.cp or 1) > 1 or bool(recomputation_of(run.recompute)[1])
    later = says(run.framework, OVERLAPPED_REDUCTION) is not None or shared  # 2023 and later
    if found and later:
        return "megatron"
    usual, other = ("megatron", "megatron-v2") if device.startswith(FUSED_SINCE) else ("megatron-v2", "megatron")
    field = "framework" if found is None else "generation of Megatron-LM"
    taken = cast(FrameworkName, choices.take(field, usual, (other,)))
    return "other" if found is None and taken == BEFORE_FUSED else taken


def recomputation_of(text: str) -> tuple[str, tuple[str, ...]]:
    """The kind that a run says, and the modules that run again behind its `=` (`selective=moe_act+mla_up_proj`).

    Attention's core alone is what `selective` means by itself.
    """
    kind, _, named = (text.lower().split() or [""])[0].partition("=")
    modules = tuple(dict.fromkeys(filter(None, named.split("+"))))
    return kind, () if modules == ("core_attn",) else modules


SPLITS_SEQUENCES = "sequence parallel"
"""What a run says behind its recomputation, or with `no` before it."""
MAY_SPLIT_SEQUENCES = ("megatron", "megatron-v2", "other")
"""Frameworks that ran with sequence parallelism and without it: Megatron-LM has it since May 2022 (Korthikanti et
al. 2022). Megatron-DeepSpeed of 2021 and 2022 did not have it, torchtitan splits tensors in no other way."""


def sequence_parallel_of(run: Run, framework: FrameworkName, tp: int, choices: Choices) -> SequenceParallel:
    """Whether norms and residuals are split over the sequence, which a run says behind its recomputation.

    Megatron-LM trains experts under tensor parallelism in no other way (transformer/moe/moe_layer.py).
    Where it says nothing, the framework's generation is assumed to run as it usually did.
    """
    if tp == 1:
        return ""
    splits = says(run.recompute, SPLITS_SEQUENCES)
    shared = (run.ep or 1) > 1
    if shared and splits is False:
        raise NotExpressed("experts under tensor parallelism without sequence parallelism", run.recompute)
    if splits is not None or shared:
        return "off" if splits is False else "on"
    if framework not in MAY_SPLIT_SEQUENCES:
        return ""
    usual, other = ("on", "off") if framework == "megatron" else ("off", "on")
    return cast(SequenceParallel, choices.take("sequence parallelism", usual, (other,)))


def tensor_overlap_of(
    run: Run, framework: FrameworkName, sequence_parallel: SequenceParallel, tp: int, choices: Choices
) -> bool:
    """Whether products run beside the collectives of tensor parallelism. It needs sequence parallelism.

    Megatron-LM says of the runs that it publishes since it has fused attention that they do (README, Training
    speed and scalability), and recipes of Megatron-Bridge switch it on.
    """
    split = sequence_parallel == "on" or (is_torchtitan(framework) and sequence_parallel == "")
    if tp == 1 or not split:
        return False
    overlaps = says(run.precision, ASYNCHRONOUS)
    if overlaps is not None:
        return overlaps
    if framework != "megatron":
        return False
    return choices.take("tensor-parallel overlap", "on", ("off",)) == "on"


def profiler_of(setting: Setting) -> str:
    """The profiler, options included. Selective recomputation is of unfused attention; fused keeps no scores."""
    again = setting.recompute == "selective" and setting.framework in ("megatron-v2", "megatron-deepspeed")
    said = [f"max_tensor_parallel={setting.tp}"]
    said += ["attention=selective"] if again else []
    said += [f"recompute_modules={'+'.join(setting.modules)}"] if setting.modules else []
    said += [f"products={setting.products}"] if setting.products else []
    said += [f"sequence_parallel={setting.sequence_parallel}"] if setting.sequence_parallel else []
    said += ["tensor_overlap=on"] if setting.tensor_overlap else []
    return f"{PROFILER}[{','.join(said)}]"


def sharding_ranks_of(text: str, dp: int, cp: int, ep: int) -> int | None:
    """Ranks that share out a copy of what `sharding_of` says, where they are fewer than all: `FSDP=N` is of N
    replicas, and so is `=N` behind DISTRIBUTED_OPTIMIZER. Raises NotExpressed where replicas make no whole groups
    of these, and with expert parallelism.
    """
    found = re.search(rf"(?:FSDP|{DISTRIBUTED_OPTIMIZER})=(\d+)", text)
    shards = int(found[1]) if found is not None and dp * cp > 1 else 0
    if shards in (0, dp):
        return None
    if dp % shards:
        raise NotExpressed("replicas that make no whole groups of FSDP", f"FSDP={shards}, {dp} replicas")
    if ep > 1:
        raise NotExpressed("replicas that share out weights in groups, and experts", f"FSDP={shards}, ep is {ep}")
    return shards * cp


def sharding_of(
    text: str, framework: FrameworkName, pp: int, dp: int, cp: int, choices: Choices
) -> OptimizerSharding:
    """What replicas share out. text: the run's framework, with `FSDP` where it has fully sharded data parallelism,
    `FSDP=N` where N of them share a copy (0: none do), and DISTRIBUTED_OPTIMIZER. torchtitan shares out by itself.

    Without a pipeline weights and gradients are shared out too. In a pipeline torchtitan keeps what it gathers
    until the last micro-batch, so that the optimizer alone is. Megatron-LM says of its later runs that they gather
    parameters beside the work, which takes its distributed optimizer.

    Raises NotExpressed.
    """
    found = re.search(r"FSDP(?:=(\d+))?", text)
    if dp * cp == 1:
        return "none"
    if found is None and is_torchtitan(framework):
        usual: OptimizerSharding = "zero3" if pp == 1 else "zero1"
        return cast(OptimizerSharding, choices.take("weight sharding", usual, ("none",)))
    if found is None or found[1] == "0":
        shares = says(text, DISTRIBUTED_OPTIMIZER)
        if shares is not None:
            return "zero1" if shares else "none"
        if framework != "megatron":
            return "none"
        return cast(OptimizerSharding, choices.take("optimizer sharding", "zero1", ("none",)))
    if pp == 1:
        return "zero3"
    if not is_torchtitan(framework):
        raise NotExpressed("fully sharded data parallelism in a pipeline", f"pp is {pp}")
    return "zero1"


def padded_vocabulary(entries: int, setting: Setting) -> int:
    """Entries of the table as frameworks hold it."""
    return megatron_vocabulary(entries, setting.tp) if setting.framework.startswith("megatron") else entries


def megatron_vocabulary(entries: int, tp: int) -> int:
    """Entries of the table as Megatron-LM holds it: a multiple of 128 a rank."""
    unit = 128 * tp
    return -(-entries // unit) * unit


def model_options(setting: Setting) -> dict[str, Any]:
    """Options of the model `llm` that follow from the framework: GPTs are trained with dropout, and their head
    shares the embedding's table.
    """
    gpt = setting.architecture == "gpt2"
    return {"tied": gpt, "dropout": gpt}


def workload_fields(setting: Setting) -> dict[str, Any]:
    """Fields of the workload that follow from the framework and from recomputation.

    Selective recomputation is a pin in torchtitan and of modules, elsewhere the profiler's (`profiler_of`).
    """
    known = setting.framework if setting.framework != "other" else BEFORE_FUSED
    own = is_torchtitan(setting.framework) or setting.modules
    return {
        "recompute": setting.recompute if own or setting.recompute == "full" else "none",
        "optimizer": "adam",
        "framework": known,
    }
