"""The hook API's promise to plugins, and what holds it: which versions load, what goes away and when.

The promise (docs/reference/api-promise.md): within one version nothing that a plugin uses is removed or changes
its meaning; what is added has a default. A version that is superseded loads for at least two more minor releases,
with one warning line; so does anything deprecated.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipebench.hooks import API_VERSION

OLDEST_API_VERSION = 1
"""The oldest version that still loads."""

RETIRING: Mapping[int, str] = {}
"""Superseded version of the API to the release of pipebench that will not load it any more."""

GRACE_MINORS = 2
"""For how many minor releases something deprecated stays."""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """Something that plugins may use and that goes away. since, removed_in: releases, "0.3"."""

    what: str
    since: str
    removed_in: str
    instead: str


DEPRECATIONS: tuple[Deprecation, ...] = (
    Deprecation("ScheduleCapabilities.shared_devices", "0.1", "0.3", 'placements=("listed",)'),
    Deprecation("ExecutorCapabilities.shared_devices", "0.1", "0.3", 'placements=("apart",)'),
)
"""All that is deprecated. A test fails when one is due, or was announced too late."""


def refusal(version: object) -> str | None:
    """Why a plugin that states this version does not load; None when it does."""
    if version is None:
        return f"it states no PIPEBENCH_API, this pipebench offers {API_VERSION}"
    if not isinstance(version, int) or not OLDEST_API_VERSION <= version <= API_VERSION:
        offered = f"{OLDEST_API_VERSION} to {API_VERSION}" if OLDEST_API_VERSION < API_VERSION else API_VERSION
        return f"it was written for hook API {version!r}, this pipebench offers {offered}"
    return None


def notice(version: int) -> str | None:
    """What to know of a version that loads: that it will not for long."""
    gone = RETIRING.get(version)
    if gone is None:
        return None
    return f"it was written for hook API {version}, which pipebench {gone} will not load (now: {API_VERSION})"


def minor(release: str) -> tuple[int, int]:
    """Major and minor number of a release."""
    major, second, *_ = release.split(".")
    return int(major), int(second)
