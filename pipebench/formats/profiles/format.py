"""What every profile format shares: its record, names of operators, and what a foreign file can carry."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Tensor
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Setting
from pipebench.domain.value import Value


@dataclass(frozen=True, slots=True)
class ProfileText:
    """A file, and one line for each thing that it cannot carry and that was left out."""

    data: bytes
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFormat:
    """One kind of profile file.

    recognises(data): whether the bytes look like it. suffix: of a file whose bytes tell nothing. options: a
    Value with defaults. read(data, source, options): the profile; source names the file in errors.
    """

    name: str
    summary: str
    suffix: str
    options: type[Value]
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str, Any], Profile]


FORMATS = (".piper", ".tarnawski", ".layers")


def model_name(source: str) -> str:
    """The name of the file without its ends: bert of a/bert.piper.json."""
    stem = Path(source).stem
    return next((stem.removesuffix(end) for end in FORMATS if stem.endswith(end) and stem != end), stem)


def unique_names(labelled: Sequence[tuple[int, str]]) -> dict[int, str]:
    """A name for each id: its label where it is the only one, else `label#id`; `node<id>` where there is none."""
    labels = [label or f"node{identifier}" for identifier, label in labelled]
    times = Counter(labels)
    taken = {label for label, count in times.items() if count == 1}
    names: dict[int, str] = {}
    for (identifier, _), label in zip(labelled, labels, strict=True):
        name = label
        if times[label] > 1:
            name = f"{label}#{identifier}"
            while name in taken:
                name += "'"
            taken.add(name)
        names[identifier] = name
    return names


def single(profile: Profile, what: str) -> tuple[DeviceCosts, int]:
    """Costs on the only device type, and the only micro-batch. Raises PipebenchError where there are several."""
    if len(profile.costs) > 1:
        names = ", ".join(profile.device_types)
        raise PipebenchError(
            f"{what} carries costs on one device type, {profile.name} has {names}", "say --device"
        )
    costs = profile.costs[0]
    if len(costs.micro_batches) > 1:
        sizes = ", ".join(map(str, costs.micro_batches))
        raise PipebenchError(
            f"{what} carries one micro-batch size, {profile.name} has {sizes}", "say --micro-batch"
        )
    return costs, costs.micro_batches[0]


def outputs(profile: Profile, what: str) -> list[Tensor | None]:
    """The one tensor that each operator makes. Raises PipebenchError for an operator with several."""
    graph = profile.graph
    for operator, made in zip(graph.operators, graph.outputs, strict=True):
        if len(made) > 1:
            raise PipebenchError(
                f"{what} carries one output of a node, {operator.name!r} makes {len(made)} tensors"
            )
    return [graph.tensors[made[0]] if made else None for made in graph.outputs]


def own_parameter_bytes(profile: Profile, what: str) -> list[int]:
    """Weights of each operator. Raises PipebenchError for a parameter that several operators use, and for experts
    or sequences that ranks share out.
    """
    graph = profile.graph
    if any(graph.expert_weight_bytes):
        raise PipebenchError(f"{what} has no word for experts that ranks share out", "profile with --ep 1")
    if graph.context_ranks > 1:
        raise PipebenchError(f"{what} has no word for sequences that ranks share out", "profile with --cp 1")
    used: dict[str, str] = {}
    for operator in graph.operators:
        for name in operator.parameters:
            if name in used:
                raise PipebenchError(
                    f"{what} carries no parameter of two nodes: {used[name]!r}, {operator.name!r}"
                )
            used[name] = operator.name
    return [sum(graph.parameter_bytes[name] for name in operator.parameters) for operator in graph.operators]


def setting(profile: Profile, what: str) -> tuple[int, int, float]:
    """Devices, memory and bandwidth that the file must name. Raises PipebenchError where the profile has none."""
    found = profile.provenance.setting or Setting()
    if found.devices is None or found.memory_bytes is None or found.bandwidth_bytes_s is None:
        raise PipebenchError(
            f"{what} names devices, memory and bandwidth, {profile.name} does not",
            "say --devices, --memory and --bandwidth",
        )
    return found.devices, found.memory_bytes, found.bandwidth_bytes_s


def losses(profile: Profile, costs: DeviceCosts, *, alternatives: bool = True) -> list[str]:
    """One line for each kind of figure that no foreign format carries, where the profile has it."""
    graph = profile.graph

    def count(what: str, has: list[bool]) -> list[str]:
        return [f"{what} of {sum(has)} operators"] if any(has) else []

    operators: tuple[OperatorCosts, ...] = costs.operators
    found = count("workspace", [c.workspace_bytes > 0 for c in operators])
    found += count("weight-gradient times", [bool(c.weight_gradient_s) for c in operators])
    found += count("dims", [bool(op.dims) for op in graph.operators])
    found += count("shares of a message that do not grow with samples", [t.fixed_bytes > 0 for t in graph.tensors])
    if alternatives:
        found += count("alternatives", [bool(c.alternatives) for c in operators])
    return found


def number(value: float) -> str:
    """The shortest text that reads back as the same number, no exponent below 10^16."""
    return str(int(value)) if value == int(value) and value < 1e16 else repr(value)
