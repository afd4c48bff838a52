"""What a distribution needs and lacks, from metadata alone."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?")
_LEAST = re.compile(r">=\s*([0-9]+(?:\.[0-9]+)*)")


def plain(name: str) -> str:
    """A distribution's name as an index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def unmet(name: str) -> list[tuple[str, str]]:
    """Requirements of an installed distribution that are missing or too old, each with what is there.

    Only names and lower bounds are looked at; requirements under a condition (extras, platforms) are left out.
    """
    try:
        needs = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    found = []
    for need in needs:
        match = _REQUIREMENT.fullmatch(need)
        if match is None or match[4]:
            continue
        required, bounds = match[1], match[3]
        try:
            version = distribution(required).version
        except PackageNotFoundError:
            found.append((f"{required}{bounds.strip()}", "it is not installed"))
            continue
        least = _LEAST.search(bounds)
        if least is not None and _numbers(version) < _numbers(least[1]):
            found.append((f"{required}{bounds.strip()}", f"{version} is installed"))
    return found


def installed_twice(names: set[str]) -> dict[str, list[str]]:
    """Of the distributions named, those whose metadata is found more than once, with the versions."""
    versions: dict[str, list[str]] = {}
    for each in distributions():
        name = _name(each)
        if name in names:
            versions.setdefault(name, []).append(each.version or "?")
    return {name: each for name, each in versions.items() if len(set(each)) > 1}


def _name(each: Distribution) -> str:
    return plain(each.name) if each.name else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
