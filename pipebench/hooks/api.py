"""The promise of the hook API to plugins, and its enforcement: which versions load, and what is deprecated.

The promise (docs/reference/api-promise.md): within one version nothing that a plugin uses is removed or changes
its meaning, and every addition has a default. A superseded version still loads for at least two minor releases,
with one warning line. So does anything that is deprecated.
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
    """Something that plugins may use and that will be removed. since, removed_in: releases such as "0.3"."""

    what: str
    since: str
    removed_in: str
    instead: str


DEPRECATIONS: tuple[Deprecation, ...] = (
    Deprecation("ScheduleCapabilities.shared_devices", "0.1", "0.3", 'placements=("listed",)'),
    Deprecation("ExecutorCapabilities.shared_devices", "0.1", "0.3", 'placements=("apart",)'),
)
"""All that is deprecated. A test fails when one is due, or was announced too late."""


def is_newer(version: object) -> bool:
    """Whether a plugin that states this version was written for a newer pipebench: that one is to be upgraded."""
    return isinstance(version, int) and version > API_VERSION


def refusal(version: object) -> str | None:
    """Why a plugin that states this version does not load; None when it does."""
    if version is None:
        return f"it states no PIPEBENCH_API, this pipebench offers {API_VERSION}"
    if not isinstance(version, int) or not OLDEST_API_VERSION <= version <= API_VERSION:
        offered = f"{OLDEST_API_VERSION} to {API_VERSION}" if OLDEST_API_VERSION < API_VERSION else API_VERSION
        return f"it was written for hook API {version!r}, this pipebench offers {offered}"
    return None


def notice(version: int) -> str | None:
    """The warning for a version that loads now and will not load in a later release."""
    gone = RETIRING.get(version)
    if gone is None:
        return None
    return f"it was written for hook API {version}, which pipebench {gone} will not load (now: {API_VERSION})"


def minor(release: str) -> tuple[int, int]:
    """Major and minor number of a release."""
    major, second, *_ = release.split(".")
    return int(major), int(second)
