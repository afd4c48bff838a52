"""What pytest-benchmark wrote (`--benchmark-json FILE`), for the history.

A benchmark's counters are the whole numbers of `benchmark.extra_info["counters"]`, a mapping; they are exact. Its
ratios to a reference kernel are those that `pipebench.testing.benchmarks` left in `extra_info["pipebench"]`.
Several files of one night are several processes of the same benchmarks.
"""

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pipebench.bench.machine.environment import PACKAGES, environment
from pipebench.documents.decoding import MALFORMED, bounded_json
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_UNTYPED_ELEMENTS
from pipebench.domain.value import Value, require
from pipebench.formats.files import read_file
from pipebench.track.nights.conditions import FACTS, MachineClass, calibration_code, minor_version
from pipebench.track.nights.night import CLOCKS, GAP, Benchmark, PairedRatios, six_digits

SECONDS = ("min", "median", "iqr", "max")
INFO = "pipebench"
"""Under this name ratios stand in the extra_info of a benchmark, and versions in the machine_info of a file."""


class BenchmarkRatios(Value, frozen=True, kw_only=True):
    """What `pipebench.testing.benchmarks` leaves in extra_info.

    flavour: of the reference kernel. calibration: hash of its code, which is the unit. ratios: CPU time of the
    benchmark over that of the reference around it, one a pair. discarded: pairs in which the benchmark was off the
    CPU most of the time.
    """

    flavour: str
    calibration: str
    ratios: tuple[float, ...] = ()
    discarded: int = 0

    def __post_init__(self) -> None:
        require(all(0 < ratio < float("inf") for ratio in self.ratios), "a ratio is not above 0")

    @classmethod
    def of(cls, flavour: str, ratios: Sequence[float], discarded: int) -> "BenchmarkRatios":
        """Made with the reference kernels of this pipebench."""
        short = tuple(map(six_digits, ratios))
        return cls(flavour=flavour, calibration=calibration_code(), ratios=short, discarded=discarded)

    @property
    def as_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        return dict(msgspec.to_builtins(self))


def benchmark_environment() -> dict[str, str]:
    """Python and the packages whose versions begin a new segment of a benchmark's history."""
    found = environment()
    return {"python": minor_version(found["python"])} | {name: found[name] for name in PACKAGES if name in found}


class _Stats(msgspec.Struct, frozen=True):
    min: float
    median: float
    iqr: float
    max: float
    rounds: int


class _Benchmark(msgspec.Struct, frozen=True):
    fullname: str
    stats: _Stats
    extra_info: dict[str, Any] = {}


class _Cpu(msgspec.Struct, frozen=True):
    brand_raw: str = ""
    count: int = 0


class _Machine(msgspec.Struct, frozen=True):
    system: str = ""
    machine: str = ""
    cpu: _Cpu = _Cpu()
    python_version: str = ""
    pipebench: dict[str, str] = {}

    @property
    def fingerprint(self) -> dict[str, str]:
        return self.pipebench or {"python": minor_version(self.python_version)}


class _Commit(msgspec.Struct, frozen=True):
    id: str | None = None
    dirty: bool | None = False


class _File(msgspec.Struct, frozen=True):
    machine_info: _Machine
    benchmarks: list[_Benchmark]
    datetime: str
    commit_info: _Commit = _Commit()


class BenchmarkFile(msgspec.Struct, frozen=True):
    """The benchmarks of a night and when they ran (UTC, ISO 8601). commit: its full hash, empty where unknown."""

    benchmarks: tuple[Benchmark, ...]
    at: str
    commit: str = ""
    notices: tuple[str, ...] = ()


def read_nightly_benchmarks(paths: Sequence[str | Path], here: MachineClass, now: datetime) -> BenchmarkFile:
    """The benchmarks of several files, each of a process of its own, as one night.

    Seconds: the least, the greatest, and medians over the processes. Ratios: one of each process. A counter on
    which two processes disagree is left out and said. Raises PipebenchError: as `read_benchmarks`; files of
    several commits; the same file twice.
    """
    files = [read_benchmarks(path, here, now) for path in paths]
    names = ", ".join(map(str, paths))
    if len({file.commit for file in files}) > 1:
        raise PipebenchError(f"{names}: ran at several commits", "run them again, all at one")
    if len({file.at for file in files}) < len(files):
        raise PipebenchError(f"{names}: two of these are one run", "name each file once")
    processes: dict[str, list[Benchmark]] = {}
    for file in files:
        for benchmark in file.benchmarks:
            processes.setdefault(benchmark.name, []).append(benchmark)
    joined = [_joined(each) for each in processes.values()]
    return BenchmarkFile(
        tuple(benchmark for benchmark, _ in joined),
        max(file.at for file in files),
        files[0].commit,
        tuple(notice for _, notice in joined if notice),
    )


def _joined(processes: Sequence[Benchmark]) -> tuple[Benchmark, str]:
    """One benchmark, and what its processes disagree on."""
    first = processes[0]
    if len(processes) == 1:
        return first, ""
    over = {"min": min, "max": max}
    seconds = {
        name: float(over.get(name, statistics.median)([each.seconds[name] for each in processes]))
        for name in SECONDS
    }
    names = dict.fromkeys(name for each in processes for name in each.counters)
    unsteady = [name for name in names if len({each.counters.get(name) for each in processes}) > 1]
    counters = {name: count for name, count in first.counters.items() if name not in unsteady}
    notice = f"{first.name}: two runs of this night differ in {', '.join(unsteady)}" if unsteady else ""
    joined = Benchmark(
        name=first.name,
        seconds=seconds,
        counters=counters,
        fingerprint=first.fingerprint,
        paired=_joined_ratios([each.paired for each in processes if each.paired is not None]),
    )
    return joined, notice


def _joined_ratios(processes: Sequence[PairedRatios]) -> PairedRatios | None:
    """All processes ran the same code in the same environment: flavour and unit are those of the first."""
    if not processes:
        return None
    rounds: dict[str, tuple[float, ...]] = {}
    for each in processes:
        for flavour, ratios in each.rounds.items():
            rounds[flavour] = (*rounds.get(flavour, ()), *ratios)
    discarded = sum(each.discarded for each in processes)
    return PairedRatios(rounds=rounds, calibration=processes[0].calibration, discarded=discarded)


def read_benchmarks(path: str | Path, here: MachineClass, now: datetime) -> BenchmarkFile:
    """The benchmarks of a file that ran on a machine of this class, at most 36 hours ago.

    Raises PipebenchError: not such a file, no benchmark in it, another machine, a date that cannot be.
    """
    source = str(path)
    try:
        text = bounded_json(read_file(path), source, MOST_UNTYPED_ELEMENTS)
        read = msgspec.json.decode(text, type=_File)
    except MALFORMED as error:
        raise PipebenchError(
            f"{source}: not what pytest-benchmark writes: {error}", "make one with pytest --benchmark-json FILE"
        ) from None
    if not read.benchmarks:
        raise PipebenchError(f"{source}: holds no benchmark", "did they run without --benchmark-enable?")
    _check_machine(read.machine_info, here, source)
    at = _moment(read.datetime, now, source)
    fingerprint = read.machine_info.fingerprint
    found = tuple(_benchmark(each, fingerprint, source) for each in read.benchmarks)
    return BenchmarkFile(found, at, _commit(read.commit_info))


def _commit(info: _Commit) -> str:
    """A hash of git, or nothing: pytest-benchmark writes words where there is no repository."""
    text = info.id or ""
    return text if len(text) >= 40 and all(letter in "0123456789abcdef" for letter in text) else ""


def _check_machine(there: _Machine, here: MachineClass, source: str) -> None:
    ran = there.system, there.machine, there.cpu.brand_raw, str(there.cpu.count)
    for name, value in zip(FACTS, ran, strict=True):
        ours = getattr(here, name)
        if value not in ("", "0") and value != ours:
            raise PipebenchError(
                f"{source}: ran on another class of machine: {name} is {value!r}, here {ours!r}",
                "record it on the machine that it ran on",
            )


def _moment(text: str, now: datetime, source: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PipebenchError(f"{source}: its datetime is {text!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > now + CLOCKS:
        raise PipebenchError(f"{source}: is dated {text}, in the future: two clocks disagree")
    if now - moment > GAP:
        raise PipebenchError(f"{source}: is dated {text}, that is not this night", "run the benchmarks again")
    return moment.isoformat(timespec="seconds")


def _benchmark(read: _Benchmark, fingerprint: dict[str, str], source: str) -> Benchmark:
    counters = read.extra_info.get("counters", {})
    if not isinstance(counters, dict) or not all(type(count) is int for count in counters.values()):
        raise PipebenchError(f"{source}: {read.fullname}: extra_info counters must be whole numbers by name")
    seconds = {name: float(getattr(read.stats, name)) for name in SECONDS}
    paired = _paired(read, source)
    if paired is not None:
        fingerprint = fingerprint | {"reference": str(read.extra_info[INFO]["flavour"])}
    return Benchmark(
        name=read.fullname, seconds=seconds, counters=counters, fingerprint=fingerprint, paired=paired
    )


def _paired(read: _Benchmark, source: str) -> PairedRatios | None:
    """The median ratio of this process; None where the benchmark ran without a reference."""
    info = read.extra_info.get(INFO)
    if info is None:
        return None
    try:
        found = msgspec.convert(info, BenchmarkRatios)
    except MALFORMED as error:
        raise PipebenchError(
            f"{source}: {read.fullname}: its extra_info[{INFO!r}] is not what pipebench.testing.benchmarks "
            f"writes: {error}",
            "run the benchmarks with the pipebench that records them",
        ) from None
    rounds: dict[str, tuple[float, ...]] = {}
    if found.ratios:
        rounds[found.flavour] = (statistics.median(found.ratios),)
    return PairedRatios(rounds=rounds, calibration=found.calibration, discarded=found.discarded)
