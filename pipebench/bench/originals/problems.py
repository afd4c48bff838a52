"""The cases of an original on what is in a checkout: the arguments of one side, the problem of the other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipebench.bench.originals.checkout import Checkout
from pipebench.bench.problems.workload import default_mini_batch
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.documents.decoding import bounded_json
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_BYTES, MOST_COUNT, MOST_DEVICES, MOST_UNTYPED_ELEMENTS
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Profile, Setting
from pipebench.domain.workload import WorkloadSpec
from pipebench.formats.profiles.files import read_profile
from pipebench.hooks.manager import Host
from pipebench.hooks.originals import Original, OriginalCase
from pipebench.system.files import read_file

NO_LIMIT_BYTES = 2**61
HOST_BYTES = int(MOST_BYTES)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The figures of a case, its keys looked up."""

    devices: int
    hosts: int
    memory_bytes: int | None
    bandwidth_bytes_s: float | None
    mini_batch: int | None


@dataclass(frozen=True, slots=True)
class Search:
    """A problem for both. input: the file, in the checkout; empty where the original has a model built in."""

    case: OriginalCase
    input: str
    path: Path | None

    @property
    def name(self) -> str:
        """What a table calls it."""
        return self.input or self.case.model

    @property
    def said(self) -> str:
        """All that `--only` may look for."""
        return " ".join(filter(None, (self.name, self.case.label)))


def searches(original: Original, checkout: Checkout, only: str = "") -> list[Search]:
    """What there is to search, input by input. only: text that must be in the input or the label.

    Raises PipebenchError where nothing is left.
    """
    found: list[Search] = []
    for case in original.cases:
        for name in checkout.inputs(case.inputs) if case.inputs else ("",):
            found.append(Search(case, name, checkout.file(name) if name else None))
    order = {name: at for at, name in enumerate(dict.fromkeys(each.name for each in found))}
    found.sort(key=lambda each: order[each.name])
    if not found:
        patterns = ", ".join(sorted({case.inputs for case in original.cases}))
        raise PipebenchError(
            f"{str(checkout.folder)!r} has no inputs: {patterns}", "give a whole checkout of the repository"
        )
    chosen = [each for each in found if only in each.said]
    if not chosen:
        names = ", ".join(dict.fromkeys(each.name for each in found))
        raise PipebenchError(f"no input or label has {only!r} in it", f"there are {names}")
    return chosen


def numbers(search: Search) -> Numbers:
    """The figures of a search. Raises PipebenchError for a key that the input does not have, and a wrong value."""
    case, where = search.case, search.input
    said = _document(search.path, where) if any(map(_is_key, _figures(case))) else {}
    devices = _number(case.devices, said, where, MOST_DEVICES)
    hosts = _number(case.hosts, said, where, MOST_DEVICES)
    memory = _number(case.memory_bytes, said, where, NO_LIMIT_BYTES)
    mini_batch = _number(case.mini_batch, said, where, MOST_COUNT)
    assert devices is not None
    if devices < 1:
        raise PipebenchError(f"{where}: it has no devices")
    return Numbers(
        devices=int(devices),
        hosts=int(hosts or 0),
        memory_bytes=None if memory is None else int(memory),
        bandwidth_bytes_s=_number(case.bandwidth_bytes_s, said, where, MOST_BYTES),
        mini_batch=None if mini_batch is None else int(mini_batch),
    )


def arguments(search: Search, figures: Numbers) -> tuple[str, ...]:
    """The words of the original's command line, figures and the path of the input in their places."""
    places = {
        "{input}": str(search.path or ""),
        "{devices}": str(figures.devices),
        "{memory}": str(figures.memory_bytes),
        "{bandwidth}": repr(figures.bandwidth_bytes_s),
        "{mini_batch}": str(figures.mini_batch),
    }
    return tuple(places.get(word, word) for word in search.case.arguments)


def problem(host: Host, search: Search, figures: Numbers) -> Problem:
    """The same problem for the suite's planner. Raises PipebenchError for an input that cannot be read."""
    if search.path is None:
        spec = WorkloadSpec(model=search.case.model, devices=figures.devices, mini_batch=figures.mini_batch)
        return WorkloadBuilder(host).workload(spec).problem(search.case.mode)
    profile = read_profile(str(search.path))
    cluster = _cluster(profile, figures, search.input)
    return Problem(
        profile=profile,
        cluster=cluster,
        mini_batch=figures.mini_batch or default_mini_batch(profile, cluster),
        regime=Regime(mode=search.case.mode, precision=profile.precision),
    )


def _cluster(profile: Profile, figures: Numbers, where: str) -> Cluster:
    """Devices of the profile's first type on one link, and hosts of the type `cpu` behind them."""
    setting = profile.provenance.setting or Setting()
    memory = figures.memory_bytes or setting.memory_bytes or NO_LIMIT_BYTES
    bandwidth = figures.bandwidth_bytes_s or setting.bandwidth_bytes_s
    if bandwidth is None:
        raise PipebenchError(f"{where}: it says no bandwidth")
    name = profile.device_types[0]
    hosts = (DeviceType(name="cpu", memory_bytes=HOST_BYTES),) if figures.hosts else ()
    return Cluster(
        name="original",
        types=(DeviceType(name=name, memory_bytes=memory), *hosts),
        devices=(name,) * figures.devices + ("cpu",) * figures.hosts,
        levels=(LinkLevel(name="link", group=figures.devices + figures.hosts, bandwidth_bytes_s=bandwidth),),
    )


def _figures(case: OriginalCase) -> tuple[object, ...]:
    return case.devices, case.hosts, case.memory_bytes, case.bandwidth_bytes_s, case.mini_batch


def _is_key(figure: object) -> bool:
    return isinstance(figure, str)


def _document(path: Path | None, where: str) -> Mapping[str, Any]:
    if path is None:
        return {}
    data = bounded_json(read_file(path), where, MOST_UNTYPED_ELEMENTS)
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise PipebenchError(f"{where}: {error}") from None


def _number(figure: float | str | None, said: Mapping[str, Any], where: str, most: float) -> float | None:
    value = said.get(figure) if isinstance(figure, str) else figure
    if value is None and not isinstance(figure, str):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise PipebenchError(f"{where}: {figure} is {value!r}, it must be a number")
    if not 0 <= value <= most:
        raise PipebenchError(f"{where}: {figure} is {value:g}, it must be from 0 to {most:g}")
    return value
