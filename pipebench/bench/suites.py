"""Suites: the workloads that one name stands for, as TOML."""

from importlib.resources import files
from pathlib import Path

import msgspec

from pipebench.bench.workload import Workload, default_mini_batch
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.domain.problem import Optimizer, Pins
from pipebench.domain.value import Value
from pipebench.formats.cluster import load_cluster
from pipebench.formats.profiles import load_profile


class SuiteWorkload(Value, frozen=True, kw_only=True):
    """One workload: a shipped profile (or a file) on a cluster; quantities as on the command line."""

    profile: str
    cluster: str
    devices: int
    memory: str | None = None
    bandwidth: str | None = None
    mini_batch: int | None = None
    micro_batch: int | None = None
    optimizer: Optimizer = "none"


class Suite(Value, frozen=True, kw_only=True):
    """A named list of workloads."""

    name: str
    summary: str
    workloads: tuple[SuiteWorkload, ...]


def suite_names() -> list[str]:
    """The suites that ship."""
    return sorted(item.name.removesuffix(".toml") for item in _folder().iterdir() if item.name.endswith(".toml"))


def load_suite(name: str) -> Suite:
    """A shipped suite by name, or a TOML file by path. Raises PipebenchError that names file and key."""
    if name.endswith(".toml"):
        file = Path(name)
        if not file.is_file():
            raise PipebenchError(f"there is no suite file {name!r}")
        return _parse(file.read_bytes(), name)
    if name not in suite_names():
        raise unknown("suite", name, suite_names())
    return _parse((_folder() / f"{name}.toml").read_bytes(), name)


def suite_workloads(suite: Suite) -> list[Workload]:
    """The workloads of a suite, profiles and clusters loaded."""
    return [_workload(entry) for entry in suite.workloads]


def _workload(entry: SuiteWorkload) -> Workload:
    profile = load_profile(entry.profile)
    cluster = load_cluster(
        entry.cluster,
        devices=entry.devices,
        memory=entry.memory,
        bandwidth=entry.bandwidth,
        device_type=profile.device_types[0],
    )
    return Workload(
        model=profile.graph.name,
        profile=profile,
        cluster=cluster,
        mini_batch=entry.mini_batch or default_mini_batch(profile, cluster),
        optimizer=entry.optimizer,
        pins=Pins(micro_batch=entry.micro_batch),
    )


def _folder() -> Path:
    return Path(str(files("pipebench.bench"))) / "suites"


def _parse(data: bytes, source: str) -> Suite:
    try:
        return msgspec.toml.decode(data, type=Suite)
    except msgspec.ValidationError as error:
        raise PipebenchError(f"suite {source}: {error}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise PipebenchError(f"suite {source}: not valid TOML: {error}") from None
