"""What differs between two problems."""

from collections.abc import Iterator

from msgspec.structs import replace

from pipebench.bench.difference.structure import Change, Figure
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Provenance
from pipebench.domain.value import Value, digest


def problem_changes(before: Problem, after: Problem) -> tuple[Change, ...]:
    """The fields that differ, empty for the same problem (whoever measured its profile).

    Profiles and clusters with the same name, size and memory but other figures show the head of a hash.
    """
    return () if before.problem_id == after.problem_id else tuple(_changes(before, after))


def _changes(before: Problem, after: Problem) -> Iterator[Change]:
    profiles = [replace(problem.profile, provenance=Provenance()) for problem in (before, after)]
    clusters = [before.cluster, after.cluster]
    yield from _change("profile", before.profile.name, after.profile.name)
    yield from _figures("profile", profiles[0], profiles[1], before.profile.name == after.profile.name)
    told = list(_change("cluster", *(cluster.name for cluster in clusters)))
    told += _change("devices", *(cluster.size for cluster in clusters))
    told += _change("memory_bytes", *(cluster.memory_bytes for cluster in clusters))
    yield from told
    yield from _figures("cluster", clusters[0], clusters[1], not told)
    for name in Problem.__struct_fields__:
        if name not in ("profile", "cluster", "regime", "pins"):
            yield from _change(name, getattr(before, name), getattr(after, name))
    for name in before.regime.__struct_fields__:
        yield from _change(f"regime {name}", getattr(before.regime, name), getattr(after.regime, name))
    for name in before.pins.__struct_fields__:
        yield from _change(f"pin {name}", getattr(before.pins, name), getattr(after.pins, name))


def _change(field: str, before: Figure, after: Figure) -> Iterator[Change]:
    if before != after:
        yield Change(field=field, before=before, after=after)


def _figures(what: str, before: Value, after: Value, silent: bool) -> Iterator[Change]:
    """Nothing else told them apart, yet they differ."""
    if silent and before != after:
        yield Change(field=f"{what} figures", before=digest(before)[:12], after=digest(after)[:12])
