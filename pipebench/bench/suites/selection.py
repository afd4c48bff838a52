"""From what the user selects (models, profiles, suites, a cluster) to workloads."""

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import msgspec

from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bench.suites import ChosenSuite, load_suites
from pipebench.bench.suites.grid import GridPoint, grid_points
from pipebench.defaults import CLUSTER, LANGUAGE_MODEL, SUITE
from pipebench.domain.errors import InvalidValue, PipebenchError, unknown
from pipebench.domain.problem import Pins
from pipebench.domain.value import require_count
from pipebench.domain.workload import (
    DEFAULT_DEVICES,
    WorkloadKeywords,
    WorkloadSpec,
    keyword_fields,
    parts_of,
    without_none,
)
from pipebench.formats.clusters import load_cluster, size_of_document
from pipebench.formats.hf_config import read_config
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_references, split_list


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
    """What the user selects.

    overrides: fields of WorkloadSpec that hold for every workload; a keyword that is None counts as left out.
    """

    def __init__(
        self,
        *,
        models: Sequence[str] | str = (),
        profiles: Sequence[str] | str = (),
        suites: Sequence[str] | str = (),
        configs: Sequence[str] | str = (),
        sequence: int | None = None,
        **overrides: Unpack[WorkloadKeywords],
    ) -> None:
        """Raises PipebenchError for a keyword that there is not."""
        self.models, self.profiles, self.suites, self.configs = map(_texts, (models, profiles, suites, configs))
        self.sequence = sequence
        wrong = sorted(overrides.keys() - keyword_fields().keys())
        if wrong:
            valid = ", ".join(SelectionKeywords.__annotations__)
            raise PipebenchError(f"unknown arguments: {', '.join(wrong)}", f"valid: {valid}")
        self.overrides: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}


def select(host: Host, selection: Selection) -> list[Workload]:
    """The workloads, those of suites first, then profiles, then models. Nothing named: the default suite.

    What the user says besides replaces what a suite says, in all its workloads.

    Raises PipebenchError for whatever is wrong with any of them, so that nothing runs before all are right.
    """
    overrides = _checked_overrides(selection)
    builder = WorkloadBuilder(host)
    workloads = _of_suites(builder, chosen_suites(selection), overrides)
    specs = [_spec(overrides, profile=str(reference)) for reference in parse_references(selection.profiles)]
    specs += [_spec(overrides, model=str(reference)) for reference in parse_references(selection.models)]
    workloads += [builder.workload(spec) for spec in specs]
    return workloads + [_of_config(builder, path, selection.sequence, overrides) for path in selection.configs]


def _of_config(builder: WorkloadBuilder, path: str, sequence: int | None, overrides: dict[str, Any]) -> Workload:
    """The model of a config.json, trained as it mostly is: its own precision, fp32 gradients, Adam."""
    config = read_config(path, sequence, overrides.get("ep", 1))
    usual: dict[str, Any] = {"precision": config.precision or "bf16", "optimizer": "adam"}
    merged = usual | overrides
    if merged["precision"] != "fp32":
        merged.setdefault("gradient_precision", "fp32")
    gradients = merged.get("gradient_precision") or merged["precision"]
    notes = (
        *config.notes,
        f"{path}: {merged['precision']} weights, {gradients} gradients, optimizer {merged['optimizer']}, state "
        f"sharded: {merged.get('optimizer_sharding', 'none')}",
    )
    return builder.workload(_spec(merged, model=str(Reference(LANGUAGE_MODEL, config.options))), notes=notes)


def _spec(overrides: dict[str, Any], **source: str) -> WorkloadSpec:
    return WorkloadSpec(**({"devices": DEFAULT_DEVICES} | overrides | source))


def chosen_suites(selection: Selection) -> list[ChosenSuite]:
    """The suites that are selected, the default suite where nothing is; `settle` reads what else they say."""
    named = suites_named(selection.suites)
    if named or selection.models or selection.profiles or selection.configs:
        return named
    return load_suites([SUITE])


def suites_named(texts: Sequence[str]) -> list[ChosenSuite]:
    """The suites of texts NAME,…; raises PipebenchError as `load_suites`."""
    return load_suites(name for text in texts for name in split_list(text))


def _of_suites(builder: WorkloadBuilder, suites: list[ChosenSuite], overrides: dict[str, Any]) -> list[Workload]:
    """A problem that occurs again is an error inside a suite as it is written, else it is left out."""
    found: dict[Hashable, Workload] = {}
    for chosen in suites:
        places: dict[Hashable, str] = {}
        for point in grid_points(chosen, overrides):
            workload = _workload_at(builder, point, f"{chosen.source}: {point.place}")
            identity = builder.identity(workload)
            if identity in places and not overrides:
                raise PipebenchError(
                    f"{chosen.source}: {places[identity]} and {point.place} are the same problem",
                    "keep one of them",
                )
            places[identity] = point.place
            found.setdefault(identity, workload)
    return list(found.values())


def _workload_at(builder: WorkloadBuilder, point: GridPoint, place: str) -> Workload:
    try:
        return builder.workload(point.spec, point.name)
    except PipebenchError as error:
        raise PipebenchError(f"{place}: {error.message}", error.hint, error.exit_code) from None


def _checked_overrides(selection: Selection) -> dict[str, Any]:
    """The overrides, checked here so that no suite is blamed for them. Raises PipebenchError."""
    overrides = dict(selection.overrides)
    if selection.sequence is not None and not selection.configs:
        raise PipebenchError("a sequence length is for a config.json", "name one with --config")
    for name, field in keyword_fields().items():
        if name in overrides and field.choices and overrides[name] not in field.choices:
            raise unknown(name.replace("_", " "), overrides[name], field.choices)
    if "cluster" in overrides and (size := size_of_document(overrides["cluster"])) is not None:
        overrides.setdefault("devices", size)
    load_cluster(
        CLUSTER,
        devices=overrides.get("devices", DEFAULT_DEVICES),
        memory=overrides.get("memory"),
        bandwidth=overrides.get("bandwidth"),
    )
    for name in ("mini_batch", "mini_batch_per_device"):
        if name in overrides:
            require_count(name, overrides[name])
    Pins(**parts_of(overrides)["pins"])
    _spec(overrides, model="any")  # what no two fields may say together
    for name, value in overrides.items():
        try:
            msgspec.convert(value, without_none(keyword_fields()[name].type))
        except msgspec.ValidationError as error:
            raise InvalidValue(f"{name} is {value!r}: {error}") from None
    return overrides


def _texts(given: Sequence[str] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
