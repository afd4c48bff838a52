"""profile(graph, context): the costs of operators as they run on this machine."""

import importlib.metadata
import platform
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, ProfileRequest
from pipebench_torch.plugin import LaunchOptions, ProfilerOptions
from pipebench_torch.processes.nodes import require_torch
from pipebench_torch.profiling.companions import Company, companions

if TYPE_CHECKING:
    from pipebench_torch.modules.models import StageableModel


class SizeTimes(Value, frozen=True, kw_only=True):
    """What was measured at one size.

    spread: relative.
    whole: seconds of the model's forward and backward.
    otherwise: the same on a card in the way that does not count; 0 on a cpu.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    spread: float
    saved: tuple[int, ...]
    workspace: tuple[int, ...]
    whole: tuple[float, float]
    otherwise: tuple[float, float] = (0.0, 0.0)


class ScratchFile(Value, frozen=True, kw_only=True):
    """The content of the file. key: of what was being measured."""

    key: str
    sizes: dict[int, SizeTimes] = {}


class Scratch:
    """The measurements by size, kept in a file where there is one."""

    def __init__(self, file: str, key: str) -> None:
        self._file, self._key = Path(file) if file else None, key
        self.sizes = dict(self._read())

    def add(self, size: int, kept: SizeTimes) -> None:
        """Keep what was measured at a size."""
        self.sizes[size] = kept
        if self._file is not None:
            draft = self._file.with_name(self._file.name + ".draft")
            draft.write_bytes(msgspec.msgpack.encode(ScratchFile(key=self._key, sizes=self.sizes)))
            draft.replace(self._file)

    def _read(self) -> dict[int, SizeTimes]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            held = msgspec.msgpack.decode(self._file.read_bytes(), type=ScratchFile)
        except (msgspec.DecodeError, OSError):
            return {}
        return held.sizes if held.key == self._key else {}


DRIVER = Path("/proc/driver/nvidia/version")
"""Of Linux's NVIDIA driver, with `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar …`."""
PACKAGES = ("torch", "torchvision", "transformers")


def versions(device: str) -> dict[str, str]:
    """Versions by name; torchvision and transformers where they are in use. device: `cpu` or `cuda`."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        if package == "torch" or package in sys.modules:
            found[package] = importlib.metadata.version(package)
    if device == "cuda":
        found |= {name: version for name, version in _of_cards() if version}
    return found


def _of_cards() -> list[tuple[str, str]]:
    import torch

    cudnn = torch.backends.cudnn.version()
    return [
        ("cuda", str(torch.version.cuda or "")),
        ("cudnn", str(cudnn or "")),
        ("driver", driver_version()),
    ]


def driver_version() -> str:
    """The version of the NVIDIA driver; empty where there is none."""
    try:
        text = DRIVER.read_text()
    except OSError:
        return ""
    said = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
    return said.group(1) if said else ""


SAVED = (
    "storages that autograd keeps for the backward and the model's outputs, weights apart, each charged to the "
    "first that keeps it"
)


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

    from pipebench_torch.modules.profile_models import subject

    request = cast(ProfileRequest, context.request)
    options = cast(ProfilerOptions, context.options)
    _refuse_machines(options)
    device = _device(request)
    torch.set_num_threads(options.threads)
    model = subject(graph, request.model, request.precision, options, context.seed, torch.device(device))
    company = [
        Company(
            graph=graph,
            model=request.model,
            precision=request.precision,
            device=device,
            options=options,
            seed=context.seed,
            place=place,
        )
        for place in range(1, options.beside + 1)
    ]
    kept = _measure_sizes(model, company, device, context)
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


def _refuse_machines(options: ProfilerOptions) -> None:
    """Raises PipebenchError for options that only links have."""
    standard = LaunchOptions()
    for name in LaunchOptions.__struct_fields__:
        if getattr(options, name) != getattr(standard, name):
            raise PipebenchError(f"a model is measured by one process, {name} is for --links", "leave it out")


def _settings(options: ProfilerOptions) -> str:
    own = [each for each in options.__struct_fields__ if each not in LaunchOptions.__struct_fields__]
    return ",".join(f"{each}={getattr(options, each)}" for each in own)


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


def _measure_sizes(
    model: "StageableModel", company: list[Company], device: str, context: Context
) -> dict[int, SizeTimes]:
    """Measure every size that the scratch file of the same run does not hold yet."""
    import torch

    from pipebench_torch.profiling.passes import measure

    request, options = cast(ProfileRequest, context.request), cast(ProfilerOptions, context.options)
    asked = (
        _settings(options),
        request.precision,
        device,
        request.model,
        versions(device),
        model.graph.__hash__(),
    )
    scratch = Scratch(request.scratch, "|".join(map(str, asked)))
    left = [size for size in request.micro_batches if size not in scratch.sizes]
    with companions(company if left else []) as others:
        for number, size in enumerate(left):
            context.report(number / len(left), f"micro-batch {size}")
            context.check_deadline()
            others.turn_to(size)
            try:
                taken = measure(model, size, options, torch.device(device))
            except RuntimeError as error:
                first = str(error).strip().splitlines()[0][:200]
                raise PipebenchError(f"{model.graph.name} at micro-batch {size}: {first}") from error
            kept = SizeTimes(
                forward=tuple(taken.forward),
                backward=tuple(taken.backward),
                spread=taken.spread,
                saved=tuple(taken.saved),
                workspace=tuple(taken.workspace),
                whole=taken.whole,
                otherwise=taken.otherwise,
            )
            scratch.add(size, kept)
    return {size: scratch.sizes[size] for size in request.micro_batches}


def _costs(graph: OperatorGraph, kept: Sequence[SizeTimes], sizes: Sequence[int]) -> tuple[OperatorCosts, ...]:
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
    request: ProfileRequest, options: ProfilerOptions, name: str, kept: dict[int, SizeTimes], *, captured: bool
) -> Provenance:
    return Provenance(
        profiler=f"torch[{_settings(options)}]",
        made_by="pipebench_torch",
        device=name,
        date=datetime.now(UTC).date().isoformat(),
        versions=versions(request.devices[0].name),
        relative_spread=round(max(each.spread for each in kept.values()), 4),
        saved=SAVED,
        notes=(
            *(_against_whole(size, each) for size, each in kept.items()),
            *(_of_card(size, each, options.queued) for size, each in kept.items() if any(each.otherwise)),
            "time of the thread that computes (cpu) or between events (cuda), operators inside whole passes, mean "
            "over the middle half of the passes; the backward adds gradients of weights to those that are there",
            *(_companions_note(options.beside) if options.beside else ()),
            *_notes_of_device(request),
        ),
        model=request.model if captured else UNSET,
    )


def _of_card(size: int, kept: SizeTimes, queued: bool) -> str:
    """How long a card takes by itself, and how long where it waits for the processor to launch its kernels."""
    alone, launched = (kept.whole, kept.otherwise) if queued else (kept.otherwise, kept.whole)
    return (
        f"micro-batch {size}: launched kernel by kernel the whole model took {launched[0]:.4g} s forward and "
        f"{launched[1]:.4g} s backward; queued before the card begins, {alone[0]:.4g} s and {alone[1]:.4g} s"
    )


def _notes_of_device(request: ProfileRequest) -> tuple[str, ...]:
    if request.devices[0].name != "cuda":
        return ("workspace is not measured on a cpu, it holds gradients of the model's outputs alone",)
    if request.precision != "fp32":
        return ()
    return ("convolutions may use TensorFloat-32, products of matrices do not, as PyTorch has it by default",)


def _companions_note(others: int) -> tuple[str, ...]:
    noun = "process" if others == 1 else "processes"
    return (f"measured while {others} other {noun} ran the model",)


def _against_whole(size: int, kept: SizeTimes) -> str:
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
