"""What a suite file may say, as typed records."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from msgspec import NODEFAULT, Meta, defstruct

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.limits import MOST_SECONDS, MOST_SEED
from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, require, require_name, require_unique
from pipebench.domain.workload import Count, Field, Memory, WorkloadSpec, without_none, workload_fields
from pipebench.formats.quantities import parse_bandwidth, parse_bytes
from pipebench.hooks.syntax import Reference, parse_reference, split_list

T = TypeVar("T")
Seconds = Annotated[float, Meta(gt=0, le=MOST_SECONDS)]
Seed = Annotated[int, Meta(ge=0, le=MOST_SEED)]

Axis: TypeAlias = T | Annotated[tuple[T, ...], Meta(min_length=1)]
"""One value, or a list of them: a workload for each."""
QUANTITIES: dict[str, Callable[[str], Any]] = {"bytes": parse_bytes, "bytes/s": parse_bandwidth}
AXES = tuple(name for name, field in workload_fields().items() if field.axis)
"""The keys of a workload that may be lists, in the order in which their cross product runs (the last fastest)."""


def _axis(field: Field) -> tuple[str, Any] | tuple[str, Any, Any]:
    """The field as a struct takes it: one value, or a list of them."""
    axis: Any = Axis
    several = axis[without_none(field.type)]
    return (field.name, several) if field.default is NODEFAULT else (field.name, several | None, field.default)


class _SuiteEntry(WorkloadSpec, frozen=True, kw_only=True):
    """One model or profile on one cluster; keys that hold a list make a workload for each of their values.

    Files are relative to the suite file. name: of the workload, left out: that of the model or profile.
    """

    name: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name is not None:
            require_name("a workload", self.name)
        for key in ("model", "profile", "profiler"):
            text = getattr(self, key)
            if text is not None:
                _readable(key, text, parse_reference)
                require(text.strip() != "", f"{key} is empty")
        for key, field in workload_fields().items():
            if field.unit:
                for text in values(getattr(self, key)):
                    _readable(key, text, QUANTITIES[field.unit])


# To mypy an entry is a WorkloadSpec with a name; that its axes may hold lists is known at run time only.
if TYPE_CHECKING:
    SuiteWorkload: TypeAlias = _SuiteEntry
else:
    SuiteWorkload = defstruct(
        "SuiteWorkload",
        [_axis(workload_fields()[name]) for name in AXES],
        bases=(_SuiteEntry,),
        namespace={"__doc__": _SuiteEntry.__doc__},
        module=__name__,
        frozen=True,
        kw_only=True,
    )


class Limits(Value, frozen=True, kw_only=True):
    """Of one trial. timeout_s: of its whole search. memory: of the planner's process. repeat: warm searches."""

    timeout_s: Seconds | None = None
    memory: Memory | None = None
    repeat: Count | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            _readable("memory", self.memory, parse_bytes)


class Suite(Value, frozen=True, kw_only=True):
    """A named list of workloads, and what a comparison runs on them where the command line does not say it.

    planners, schedulers, executors: as on the command line; Python files are relative to the suite file. regimes:
    every planner is scored in each of them; empty: each planner in its own. coarsen: planners see at most so many
    blocks of operators; left out: the operators.
    """

    name: str
    summary: str
    workloads: Annotated[tuple[SuiteWorkload, ...], Meta(min_length=1)]
    planners: tuple[str, ...] = ()
    regimes: tuple[RegimeMode, ...] = ()
    schedulers: tuple[str, ...] = ()
    executors: tuple[str, ...] = ()
    limits: Limits = Limits()
    seed: Seed | None = None
    coarsen: Count | None = None

    def __post_init__(self) -> None:
        require_name("a suite", self.name)
        for key in ("planners", "schedulers", "executors"):
            for text in getattr(self, key):
                _readable(key, text, _parse_all)
        for key in ("planners", "regimes", "schedulers", "executors"):
            require_unique(f"{key}:", getattr(self, key))
        first: dict[str, int] = {}
        for position, workload in enumerate(self.workloads):
            if workload.name is not None:
                other = first.setdefault(workload.name, position)
                require(
                    other == position,
                    f"workloads[{other}] and workloads[{position}] are both named {workload.name!r}",
                )


def values(axis: T | tuple[T, ...] | None) -> tuple[T, ...]:
    """The values of one key, none where it is left out."""
    if axis is None:
        return ()
    return axis if isinstance(axis, tuple) else (axis,)


def _parse_all(texts: str) -> list[Reference]:
    return [parse_reference(text) for text in split_list(texts)]


def _readable(key: str, text: str, read: Callable[[str], Any]) -> None:
    """Raise InvalidValue, which decoding completes with the place in the file, where the text cannot be read."""
    try:
        read(text)
    except PipebenchError as error:
        raise InvalidValue(f"{key}: {error.message}", error.hint) from None
