"""profile(graph, context): the costs of operators as they run on this machine."""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec
from msgspec import UNSET

from pipebench.costs.precision import in_precision
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_torch.executor import require_torch
from pipebench_torch.plugin import ProfilerOptions

SAVED = "storages that autograd keeps for the backward, weights apart, each charged to the first that keeps it"


class Kept(Value, frozen=True, kw_only=True):
    """What was measured at one size. spread: relative. whole: seconds of the model's forward and backward."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    spread: float
    saved: tuple[int, ...]
    workspace: tuple[int, ...]
    whole: tuple[float, float]


class Scratch(Value, frozen=True, kw_only=True):
    """What a run that was stopped leaves. key: of what it was measuring."""

    key: str
    sizes: dict[int, Kept] = {}


def device_types(options: ProfilerOptions) -> tuple[str, ...]:
    """What this machine may have."""
    del options
    return ("cpu", "cuda")


def profile(graph: OperatorGraph | None, context: Context) -> Profile:
    """Forward and backward seconds of every operator at every size, medians of repeats.

    graph None: the model that context.request names is captured. Raises PipebenchError: torch is not installed,
    a device that is not there, a model that cannot be captured or run.
    """
    require_torch()
    import torch

    from pipebench_torch.captured import CapturedModel
    from pipebench_torch.catalog import source_of
    from pipebench_torch.models import DTYPES, Model, SyntheticModel

    request = cast(ProfileRequest, context.request)
    options = cast(ProfilerOptions, context.options)
    device = _device(request)
    torch.set_num_threads(options.threads)
    model: Model
    if graph is None:
        dtype = DTYPES[request.precision]
        captured = CapturedModel(source_of(request.model), options.group, options.depth, dtype, context.seed)
        captured.device = torch.device(device)
        model = captured
    else:
        model = SyntheticModel(in_precision(graph, request.precision), context.seed, request.precision)
    kept = _measured(model, request, options, device, context)
    name = _device_name(device)
    sizes = tuple(sorted(kept))
    costs = DeviceCosts(
        device_type=device if device == "cpu" else name,
        micro_batches=sizes,
        operators=_costs(model.graph, [kept[size] for size in sizes], sizes),
    )
    return Profile(
        name=model.graph.name,
        graph=model.graph,
        precision=request.precision,
        costs=(costs,),
        provenance=_provenance(request, options, name, kept, captured=graph is None),
    )


def _device(request: ProfileRequest) -> str:
    import torch

    if len(request.devices) != 1 or request.devices[0].name not in ("cpu", "cuda"):
        raise PipebenchError("the profiler torch measures this machine", "say --device cpu or --device cuda")
    name = request.devices[0].name
    if name == "cuda" and not torch.cuda.is_available():
        raise PipebenchError("torch finds no CUDA device", "say --device cpu")
    return name


def _device_name(device: str) -> str:
    from pipebench_torch.machine import machine_of

    return machine_of(device, "gloo", 0).name()


def _measured(
    model: object, request: ProfileRequest, options: ProfilerOptions, device: str, context: Context
) -> dict[int, Kept]:
    """By size; what the scratch file of the same run holds is not measured again."""
    import torch

    from pipebench_torch.measure import measure
    from pipebench_torch.models import Model

    known = cast(Model, model)
    key = f"{options}|{request.precision}|{device}|{request.model}|{_versions()}|{known.graph.__hash__()}"
    scratch = Path(request.scratch) if request.scratch else None
    found = _read(scratch, key)
    for number, size in enumerate(request.micro_batches):
        context.report(number / len(request.micro_batches), f"micro-batch {size}")
        context.check_deadline()
        if size in found:
            continue
        try:
            taken = measure(known, size, options.repeats, options.warmup, torch.device(device), options.least_s)
        except RuntimeError as error:
            first = str(error).strip().splitlines()[0][:200]
            raise PipebenchError(f"{known.graph.name} at micro-batch {size}: {first}") from error
        found[size] = Kept(
            forward=tuple(taken.forward),
            backward=tuple(taken.backward),
            spread=taken.spread,
            saved=tuple(taken.saved),
            workspace=tuple(taken.workspace),
            whole=taken.whole,
        )
        if scratch is not None:
            draft = scratch.with_name(scratch.name + ".draft")
            draft.write_bytes(msgspec.msgpack.encode(Scratch(key=key, sizes=found)))
            draft.replace(scratch)
    return {size: found[size] for size in request.micro_batches}


def _read(scratch: Path | None, key: str) -> dict[int, Kept]:
    if scratch is None or not scratch.exists():
        return {}
    try:
        held = msgspec.msgpack.decode(scratch.read_bytes(), type=Scratch)
    except (msgspec.DecodeError, OSError):
        return {}
    return dict(held.sizes) if held.key == key else {}


def _costs(graph: OperatorGraph, kept: Sequence[Kept], sizes: Sequence[int]) -> tuple[OperatorCosts, ...]:
    first, last = kept[0], kept[-1]
    found = []
    for position, operator in enumerate(graph.operators):
        if len(sizes) > 1:
            saved = max(0.0, (last.saved[position] - first.saved[position]) / (sizes[-1] - sizes[0]))
        else:
            saved = last.saved[position] / sizes[-1]
        found.append(
            OperatorCosts(
                operator=operator.name,
                forward_s=tuple(round(each.forward[position], 9) for each in kept),
                backward_s=tuple(round(each.backward[position], 9) for each in kept),
                saved_bytes_per_sample=round(saved, 3),
                workspace_bytes=max(each.workspace[position] for each in kept),
            )
        )
    return tuple(found)


def _provenance(
    request: ProfileRequest, options: ProfilerOptions, name: str, kept: dict[int, Kept], *, captured: bool
) -> Provenance:
    settings = ",".join(f"{each}={getattr(options, each)}" for each in options.__struct_fields__)
    return Provenance(
        profiler=f"torch[{settings}]",
        made_by="pipebench_torch",
        device=name,
        date=datetime.now(UTC).date().isoformat(),
        versions=_versions(),
        relative_spread=round(max(each.spread for each in kept.values()), 4),
        saved=SAVED,
        notes=(
            *(_against_whole(size, each) for size, each in kept.items()),
            "time of the thread that computes (cpu) or between events (cuda), operators inside whole passes, mean "
            "over the middle half of the passes; the backward adds gradients of weights to those that are there",
            *(() if request.devices[0].name == "cuda" else ("workspace is not measured on a cpu",)),
        ),
        model=request.model if captured else UNSET,
    )


def _against_whole(size: int, kept: Kept) -> str:
    forward, backward = kept.whole
    apart = [
        f"{100 * (sum(times) / whole - 1):+.1f} %"
        for times, whole in ((kept.forward, forward), (kept.backward, backward))
        if whole
    ]
    return (
        f"micro-batch {size}: the whole model took {forward:.4g} s forward and {backward:.4g} s backward; "
        f"the sum of its operators is {' and '.join(apart)} apart"
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("torch", "torchvision", "transformers"):
        if package == "torch" or package in sys.modules:
            found[package] = importlib.metadata.version(package)
    return found
