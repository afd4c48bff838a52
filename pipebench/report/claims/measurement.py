"""How a set of rows was measured: when, on which machine, by which version, how long it took, beside what."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipebench.domain.row import Row
from pipebench.report.units import duration

TRADEMARKS = re.compile(r"\((?:R|TM|C)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measurement:
    """How a set of rows was measured.

    cells: rows, each of which counts once, whatever number of artefacts shares it.
    elapsed_s: wall seconds of their trials together. untimed: rows of older stores, which do not say.
    parallel: rows whose trial ran beside other work.
    days: first and last day in UTC, ISO 8601; empty where not known. machines, versions: in words.
    """

    cells: int
    elapsed_s: float
    untimed: int
    parallel: int
    days: tuple[str, ...]
    machines: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def took(self) -> str:
        """How long the trials took together."""
        unknown = f" (not known of {self.untimed} of them)" if self.untimed else ""
        return f"{self.cells} cells took {duration(self.elapsed_s)} in all{unknown}"

    @property
    def lines(self) -> list[str]:
        """A line for each fact."""
        ran = f"{self.parallel} of {self.cells} cells ran beside other work"
        facts = {
            "date": " to ".join(self.days),
            "machine": "; ".join(self.machines),
            "versions": "; ".join(self.versions),
            "time": self.took,
            "note": f"{ran}: their search times cannot be compared" if self.parallel else "",
        }
        return [f"{name}: {fact}" for name, fact in facts.items() if fact]


def measurement(rows: Iterable[Row], finished_at: Mapping[str, str]) -> Measurement:
    """How the rows were measured. Rows of one key count once.

    finished_at: moments in ISO 8601, by the rows' keys.
    """
    distinct = list({row.key or str(place): row for place, row in enumerate(rows)}.values())
    days = sorted(finished_at[row.key][:10] for row in distinct if row.key in finished_at)
    return Measurement(
        cells=len(distinct),
        elapsed_s=sum(row.elapsed_s or 0.0 for row in distinct),
        untimed=sum(row.elapsed_s is None and bool(row.key) for row in distinct),
        parallel=sum(row.parallel for row in distinct),
        days=tuple(dict.fromkeys((days[0], days[-1]))) if days else (),
        machines=_distinct(_machine(row.environment) for row in distinct),
        versions=_distinct(_version(row.environment) for row in distinct),
    )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({text for text in texts if text}))


def _machine(environment: Mapping[str, str]) -> str:
    """`2 cores, Intel Xeon, Linux`."""
    cpu = " ".join(TRADEMARKS.sub("", environment.get("cpu", "")).split()[:2])
    cores = environment.get("cpus", "")
    told = (f"{cores} {'core' if cores == '1' else 'cores'}" if cores else "", cpu, environment.get("system", ""))
    return ", ".join(part for part in told if part)


def _version(environment: Mapping[str, str]) -> str:
    """`pipebench 1.0, Python 3.11.2`."""
    names = {"pipebench": "pipebench", "python": "Python"}
    return ", ".join(f"{name} {environment[key]}" for key, name in names.items() if key in environment)
