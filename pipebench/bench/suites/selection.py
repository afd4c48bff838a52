"""From what the user asked for (models, profiles, suites, a cluster) to workloads."""

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import msgspec

from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bench.suites import ChosenSuite, load_suites
from pipebench.bench.suites.grid import GridPoint, grid_points
from pipebench.domain.errors import InvalidValue, PipebenchError, unknown
from pipebench.domain.problem import Pins
from pipebench.domain.value import require_count
from pipebench.domain.workload import (
    DEFAULT_CLUSTER,
    DEFAULT_DEVICES,
    WorkloadKeywords,
    WorkloadSpec,
    keyword_fields,
    parts_of,
    without_none,
)
from pipebench.formats.cluster import load_cluster, size_of_document
from pipebench.formats.hf_config import read_config
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_references, split_list

DEFAULT_SUITE = "quick"


class SelectionKeywords(WorkloadKeywords, total=False):
    """What the API takes to select workloads: where they come from, and what holds for all of them.

    models: texts name[option=value,…]. profiles: names of those that ship, or files. suites: names or TOML files.
    configs: Hugging Face config.json files. sequence: tokens a sample, for configs. Each may be one text.
    """

    models: Sequence[str] | str
    profiles: Sequence[str] | str
    suites: Sequence[str] | str
    configs: Sequence[str] | str
    sequence: int | None


class Selection:
    """What the user selects. `said`: fields of WorkloadSpec that hold for every workload; None: not said."""

    def __init__(
        self,
        *,
        models: Sequence[str] | str = (),
        profiles: Sequence[str] | str = (),
        suites: Sequence[str] | str = (),
        configs: Sequence[str] | str = (),
        sequence: int | None = None,
        **said: Unpack[WorkloadKeywords],
    ) -> None:
        """Raises PipebenchError for a keyword that there is not."""
        self.models, self.profiles, self.suites, self.configs = map(_texts, (models, profiles, suites, configs))
        self.sequence = sequence
        wrong = sorted(said.keys() - keyword_fields().keys())
        if wrong:
            valid = ", ".join(SelectionKeywords.__annotations__)
            raise PipebenchError(f"unknown arguments: {', '.join(wrong)}", f"valid: {valid}")
        self.said: dict[str, Any] = {name: value for name, value in said.items() if value is not None}


def select(host: Host, asked: Selection) -> list[Workload]:
    """The workloads, those of suites first, then profiles, then models. Nothing named: the quick suite.

    What is asked for besides replaces what a suite says, in all its workloads.

    Raises PipebenchError for whatever is wrong with any of them, so that nothing runs before all are right.
    """
    said = _checked(asked)
    builder = WorkloadBuilder(host)
    workloads = _of_suites(builder, chosen_suites(asked), said)
    specs = [_spec(said, profile=str(reference)) for reference in parse_references(asked.profiles)]
    specs += [_spec(said, model=str(reference)) for reference in parse_references(asked.models)]
    workloads += [builder.workload(spec) for spec in specs]
    return workloads + [_of_config(builder, path, asked.sequence, said) for path in asked.configs]


def _of_config(builder: WorkloadBuilder, path: str, sequence: int | None, said: dict[str, Any]) -> Workload:
    """The model of a config.json, trained as it mostly is: its own precision, fp32 gradients, Adam."""
    config = read_config(path, sequence)
    usual: dict[str, Any] = {"precision": config.precision or "bf16", "optimizer": "adam"}
    merged = usual | said
    if merged["precision"] != "fp32":
        merged.setdefault("gradient_precision", "fp32")
    gradients = merged.get("gradient_precision") or merged["precision"]
    notes = (
        *config.notes,
        f"{path}: {merged['precision']} weights, {gradients} gradients, optimizer {merged['optimizer']}, state "
        f"sharded: {merged.get('optimizer_sharding', 'none')}",
    )
    return builder.workload(_spec(merged, model=str(Reference("llm", config.options))), notes=notes)


def _spec(said: dict[str, Any], **source: str) -> WorkloadSpec:
    return WorkloadSpec(**({"devices": DEFAULT_DEVICES} | said | source))


def chosen_suites(asked: Selection) -> list[ChosenSuite]:
    """The suites that are asked for, the quick suite where nothing is; `settle` reads what else they say."""
    names = [name for text in asked.suites for name in split_list(text)]
    if not names and not (asked.models or asked.profiles or asked.configs):
        names = [DEFAULT_SUITE]
    return load_suites(names)


def _of_suites(builder: WorkloadBuilder, suites: list[ChosenSuite], said: dict[str, Any]) -> list[Workload]:
    """A problem that occurs again is an error inside a suite as it is written, else it is left out."""
    found: dict[Hashable, Workload] = {}
    for chosen in suites:
        places: dict[Hashable, str] = {}
        for point in grid_points(chosen, said):
            workload = _placed(builder, point, f"{chosen.source}: {point.place}")
            identity = builder.identity(workload)
            if identity in places and not said:
                raise PipebenchError(
                    f"{chosen.source}: {places[identity]} and {point.place} are the same problem",
                    "keep one of them",
                )
            places[identity] = point.place
            found.setdefault(identity, workload)
    return list(found.values())


def _placed(builder: WorkloadBuilder, point: GridPoint, place: str) -> Workload:
    try:
        return builder.workload(point.spec, point.name)
    except PipebenchError as error:
        raise PipebenchError(f"{place}: {error.message}", error.hint, error.exit_code) from None


def _checked(asked: Selection) -> dict[str, Any]:
    """What is said of every workload, checked here so that no suite is blamed for it."""
    said = dict(asked.said)
    if asked.sequence is not None and not asked.configs:
        raise PipebenchError("a sequence length is for a config.json", "name one with --config")
    for name, field in keyword_fields().items():
        if name in said and field.choices and said[name] not in field.choices:
            raise unknown(name.replace("_", " "), said[name], field.choices)
    if "cluster" in said and (size := size_of_document(said["cluster"])) is not None:
        said.setdefault("devices", size)
    load_cluster(
        DEFAULT_CLUSTER,
        devices=said.get("devices", DEFAULT_DEVICES),
        memory=said.get("memory"),
        bandwidth=said.get("bandwidth"),
    )
    for name in ("mini_batch", "mini_batch_per_device"):
        if name in said:
            require_count(name, said[name])
    Pins(**parts_of(said)["pins"])
    _spec(said, model="any")
    for name, value in said.items():
        try:
            msgspec.convert(value, without_none(keyword_fields()[name].type))
        except msgspec.ValidationError as error:
            raise InvalidValue(f"{name} is {value!r}: {error}") from None
    return said


def _texts(given: Sequence[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
