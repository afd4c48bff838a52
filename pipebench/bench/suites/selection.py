"""From what the user asked for (models, profiles, suites, a cluster) to workloads."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, get_args

from pipebench.bench.problems.wanted import DEFAULT_DEVICES, Wanted
from pipebench.bench.problems.workload import Workload
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.bench.suites import ChosenSuite, load_suites
from pipebench.bench.suites.grid import cells
from pipebench.defaults import CLUSTER, LANGUAGE_MODEL, SUITE
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.domain.problem import Optimizer, OptimizerSharding, Pins, Recompute
from pipebench.domain.profile import Precision
from pipebench.domain.value import require_count
from pipebench.formats.cluster import load_cluster, size_of_document
from pipebench.formats.hf_config import read_config
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_references, split_list

CHOICES = {
    "link_mode": get_args(LinkMode),
    "optimizer": get_args(Optimizer),
    "optimizer_sharding": get_args(OptimizerSharding),
    "recompute": get_args(Recompute),
    "precision": get_args(Precision),
    "gradient_precision": get_args(Precision),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the user asked for; None and empty: not said. configs: config.json files; sequence: tokens a sample."""

    models: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    cluster: str | None = None
    devices: int | None = None
    memory: str | None = None
    bandwidth: str | None = None
    link_mode: str | None = None
    mini_batch: int | None = None
    micro_batch: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    vpp: int | None = None
    recompute: str | None = None
    reserve: float | None = None
    precision: str | None = None
    gradient_precision: str | None = None
    optimizer: str | None = None
    optimizer_sharding: str | None = None
    profiler: str | None = None
    configs: tuple[str, ...] = ()
    sequence: int | None = None


def select(host: Host, asked: Selection) -> list[Workload]:
    """The workloads, those of suites first, then profiles, then models. Nothing named: the default suite.

    What is asked for besides replaces what a suite says, in all its workloads.

    Raises PipebenchError for whatever is wrong with any of them, so that nothing runs before all are right.
    """
    said = _said(asked)
    builder = WorkloadBuilder(host)
    workloads = _of_suites(builder, chosen_suites(asked), said)
    wanted = [Wanted(profile=reference, **said) for reference in parse_references(asked.profiles)]
    wanted += [Wanted(model=reference, **said) for reference in parse_references(asked.models)]
    wanted += [_of_config(path, asked.sequence, said) for path in asked.configs]
    return workloads + [builder.workload(each) for each in wanted]


def _of_config(path: str, sequence: int | None, said: dict[str, Any]) -> Wanted:
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
    return Wanted(model=Reference(LANGUAGE_MODEL, config.options), notes=notes, **merged)


def chosen_suites(asked: Selection) -> list[ChosenSuite]:
    """The suites that are asked for, the default one where nothing is; `settle` reads what else they say."""
    names = [name for text in asked.suites for name in split_list(text)]
    if not names and not (asked.models or asked.profiles or asked.configs):
        names = [SUITE]
    return load_suites(names)


def _of_suites(builder: WorkloadBuilder, suites: list[ChosenSuite], said: dict[str, Any]) -> list[Workload]:
    """A problem that occurs again is an error inside a suite as it is written, else it is left out."""
    found: dict[Hashable, Workload] = {}
    for chosen in suites:
        places: dict[Hashable, str] = {}
        for cell in cells(chosen, said):
            workload = _placed(builder, cell.wanted, f"{chosen.source}: {cell.place}")
            identity = builder.identity(workload)
            if identity in places and not said:
                raise PipebenchError(
                    f"{chosen.source}: {places[identity]} and {cell.place} are the same problem",
                    "keep one of them",
                )
            places[identity] = cell.place
            found.setdefault(identity, workload)
    return list(found.values())


def _placed(builder: WorkloadBuilder, wanted: Wanted, place: str) -> Workload:
    try:
        return builder.workload(wanted)
    except PipebenchError as error:
        raise PipebenchError(f"{place}: {error.message}", error.hint, error.exit_code) from None


def _said(asked: Selection) -> dict[str, Any]:
    """The fields of every workload that the user said, checked here so that no suite is blamed for them."""
    said = {
        name: value
        for name in Selection.__slots__
        if name in Wanted.__slots__ and (value := getattr(asked, name)) is not None
    }
    if asked.cluster is not None and (size := size_of_document(asked.cluster)) is not None:
        said.setdefault("devices", size)
    if asked.sequence is not None and not asked.configs:
        raise PipebenchError("a sequence length is for a config.json", "name one with --config")
    for name, valid in CHOICES.items():
        if name in said and said[name] not in valid:
            raise unknown(name.replace("_", " "), said[name], valid)
    load_cluster(
        CLUSTER,
        devices=said.get("devices", DEFAULT_DEVICES),
        memory=asked.memory,
        bandwidth=asked.bandwidth,
    )
    if asked.mini_batch is not None:
        require_count("mini_batch", asked.mini_batch)
    Pins(
        tensor_parallel=asked.tp,
        data_parallel=asked.dp,
        pipeline=asked.pp,
        virtual_stages=asked.vpp,
        micro_batch=asked.micro_batch,
        reserve=said.get("reserve", 0.0),
    )
    return said
