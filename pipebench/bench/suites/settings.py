"""What a comparison runs besides the workloads: the command line says it, else the suites."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pipebench.bench.suites.files import ChosenSuite
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import LONGEST_WAIT_S, MOST_COUNT, MOST_MEMORY_BYTES, MOST_SEED
from pipebench.domain.problem import RegimeMode
from pipebench.formats.quantities import parse_bytes
from pipebench.hooks.syntax import parse_reference, parse_references, split_list
from pipebench.hooks.trust import Trust

NOT_SAID: tuple[Any, ...] = (None, ())
KEYS = {"timeout_s": "limits.timeout_s", "memory_bytes": "limits.memory", "repeat": "limits.repeat"}
"""Of a suite file, where they are not called as the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Components as on the command line, one a text. Empty and None: not said.

    regimes: every planner is scored in each; not said: both. memory_bytes: of the process of a
    planner. repeat: warm searches to time. coarsen: the most blocks of operators that planners see.
    """

    planners: tuple[str, ...] = ()
    regimes: tuple[RegimeMode, ...] = ()
    schedulers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    timeout_s: float | None = None
    memory_bytes: int | None = None
    repeat: int | None = None
    seed: int | None = None
    coarsen: int | None = None


COMPONENTS = ("planners", "schedulers", "executors")
RANGES: dict[str, tuple[float, float]] = {
    "timeout_s": (1e-9, LONGEST_WAIT_S),
    "memory_bytes": (1, MOST_MEMORY_BYTES),
    "repeat": (0, MOST_COUNT),
    "rounds": (1, MOST_COUNT),
    "jobs": (1, MOST_COUNT),
    "seed": (0, MOST_SEED),
    "coarsen": (0, MOST_COUNT),
    "gap": (0, 1000),
}
"""Least and most of each figure of a comparison."""


def require_figures(**figures: float | None) -> None:
    """Raises PipebenchError for a figure that is out of its range or NaN. None: not said."""
    for name, value in figures.items():
        least, most = RANGES[name]
        if value is not None and not least <= value <= most:
            raise PipebenchError(f"{name} is {value:g}, it must be from {least:g} to {most:g}")


def settle(suites: Sequence[ChosenSuite], said: Settings, trust: Trust | None = None) -> Settings:
    """What the command line said; what it left open as the suites say it.

    trust: left out, suites that do not ship may name installed components only.
    Raises PipebenchError where the command line leaves open what two suites say differently, UntrustedName where
    a suite names code.
    """
    settings = {chosen.source: _settings(chosen) for chosen in suites}
    settled: dict[str, Any] = {}
    for field in fields(Settings):
        value = getattr(said, field.name)
        if value in NOT_SAID:
            by = {source: getattr(each, field.name) for source, each in settings.items()}
            by = {source: each for source, each in by.items() if each not in NOT_SAID}
            if len(set(by.values())) > 1:
                raise PipebenchError(
                    f"{' and '.join(by)} differ in {KEYS.get(field.name, field.name)}",
                    "say it on the command line, or run one suite at a time",
                )
            value = next(iter(by.values()), field.default)
            if field.name in COMPONENTS:
                _require_trust(suites, by, trust or Trust())
        settled[field.name] = value
    return Settings(**settled)


def _require_trust(suites: Sequence[ChosenSuite], by: dict[str, tuple[str, ...]], trust: Trust) -> None:
    """by: source of a suite to the components that it names."""
    for chosen in suites:
        if not chosen.ships and chosen.source in by:
            trust.require(parse_references(by[chosen.source]), chosen.source)


def _settings(chosen: ChosenSuite) -> Settings:
    suite = chosen.suite
    limits = suite.limits
    return Settings(
        planners=_with_absolute_paths(suite.planners, chosen.folder),
        regimes=suite.regimes,
        schedulers=_with_absolute_paths(suite.schedulers, chosen.folder),
        executors=_with_absolute_paths(suite.executors, chosen.folder),
        timeout_s=limits.timeout_s,
        memory_bytes=None if limits.memory is None else parse_bytes(limits.memory),
        repeat=limits.repeat,
        seed=suite.seed,
        coarsen=suite.coarsen,
    )


def _with_absolute_paths(texts: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Each component apart; a Python file relative to the suite's folder."""
    parts = [part for text in texts for part in split_list(text)]
    return tuple(str(folder / part) if parse_reference(part).is_script else part for part in parts)
