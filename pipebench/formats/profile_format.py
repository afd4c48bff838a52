"""What a module that reads one kind of profile file offers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipebench.domain.profile import Profile
from pipebench.domain.value import Value


@dataclass(frozen=True, slots=True)
class Written:
    """A file, and one line for each thing that it cannot carry and that was left out."""

    data: bytes
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFormat:
    """One kind of profile file.

    recognises(data): whether the bytes look like it. suffix: of a file whose bytes tell nothing. options: a
    Value with defaults. read(data, source, options): the profile; source names the file in errors.
    """

    name: str
    summary: str
    suffix: str
    options: type[Value]
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str, Any], Profile]
