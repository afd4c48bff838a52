"""What a distribution needs and lacks, from metadata alone."""

from importlib.metadata import PackageNotFoundError, distribution, distributions

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion


def unmet(name: str) -> list[tuple[str, str]]:
    """Requirements of an installed distribution that are missing or of another version, each with what is there.

    Requirements of extras, and those whose marker does not hold here, are left out. So are requirements and
    versions that do not follow the standards (PEP 508, PEP 440).
    """
    try:
        needs = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    found = []
    for need in needs:
        try:
            requirement = Requirement(need)
        except InvalidRequirement:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = f"{requirement.name}{requirement.specifier}"
        try:
            version = distribution(requirement.name).version
        except PackageNotFoundError:
            found.append((needed, "it is not installed"))
            continue
        try:
            suits = requirement.specifier.contains(version, prereleases=True)
        except InvalidVersion:
            continue
        if not suits:
            found.append((needed, f"{version} is installed"))
    return found


def installed_twice(names: set[str]) -> dict[str, list[str]]:
    """Of the distributions named, those whose metadata is found more than once, with the versions.

    names: canonical (`packaging.utils.canonicalize_name`).
    """
    versions: dict[str, list[str]] = {}
    for each in distributions():
        name = canonicalize_name(each.name) if each.name else ""
        if name in names:
            versions.setdefault(name, []).append(each.version or "?")
    return {name: each for name, each in versions.items() if len(set(each)) > 1}
