"""What pytest-benchmark wrote (`--benchmark-json FILE`), for the history: seconds as information, counters exact.

A benchmark's counters are the whole numbers of `benchmark.extra_info["counters"]`, a mapping.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from pipebench.documents.decoding import MALFORMED, bounded_json
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_UNTYPED_ELEMENTS
from pipebench.formats.files import read_file
from pipebench.track.conditions import MachineClass
from pipebench.track.night import Benchmark

SECONDS = ("min", "median", "iqr", "max")
OLD = timedelta(hours=36)


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


class _File(msgspec.Struct, frozen=True):
    machine_info: _Machine
    benchmarks: list[_Benchmark]
    datetime: str


class BenchmarkFile(msgspec.Struct, frozen=True):
    """The benchmarks of a file and when they ran (UTC, ISO 8601)."""

    benchmarks: tuple[Benchmark, ...]
    at: str


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
    return BenchmarkFile(tuple(_benchmark(each, source) for each in read.benchmarks), at)


def _check_machine(there: _Machine, here: MachineClass, source: str) -> None:
    ran = there.system, there.machine, there.cpu.brand_raw, str(there.cpu.count)
    for name, value, ours in zip(("system", "machine", "cpu", "cpus"), ran, here_facts(here), strict=True):
        if value not in ("", "0") and value != ours:
            raise PipebenchError(
                f"{source}: ran on another class of machine: {name} is {value!r}, here {ours!r}",
                "record it on the machine that it ran on",
            )


def here_facts(here: MachineClass) -> tuple[str, str, str, str]:
    """The facts in the order in which a file has them."""
    return here.system, here.machine, here.cpu, here.cpus


def _moment(text: str, now: datetime, source: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PipebenchError(f"{source}: its datetime is {text!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment > now + timedelta(minutes=5):
        raise PipebenchError(f"{source}: is dated {text}, in the future: two clocks disagree")
    if now - moment > OLD:
        raise PipebenchError(f"{source}: is dated {text}, that is not this night", "run the benchmarks again")
    return moment.isoformat(timespec="seconds")


def _benchmark(read: _Benchmark, source: str) -> Benchmark:
    counters = read.extra_info.get("counters", {})
    if not isinstance(counters, dict) or not all(type(count) is int for count in counters.values()):
        raise PipebenchError(f"{source}: {read.fullname}: extra_info counters must be whole numbers by name")
    seconds = {name: float(getattr(read.stats, name)) for name in SECONDS}
    return Benchmark(name=read.fullname, seconds=seconds, counters=counters)
