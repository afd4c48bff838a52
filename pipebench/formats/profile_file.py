"""Read a profile from any file whose format is known: by what is in it, else by its name."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.profile import Profile
from pipebench.formats import layer_table, native_profile, pipedream, piper, tarnawski
from pipebench.formats.files import read_file
from pipebench.formats.profile_format import ProfileFormat
from pipebench.hooks.syntax import Reference, typed_options

FORMATS: tuple[ProfileFormat, ...] = (
    piper.FORMAT,
    tarnawski.FORMAT,
    layer_table.JSON,
    native_profile.FORMAT,
    pipedream.FORMAT,
    layer_table.CSV,
)
"""Formats that are read, asked in this order. A new one is a module with a FORMAT, and its entry here."""


def read_profile(
    path: str,
    options: Mapping[str, str] | None = None,
    known: Sequence[str] = (),
    others: Sequence[ProfileFormat] = (),
) -> Profile:
    """The profile in a file. options: of its format, as texts. known: names of profiles that need no file.
    others: formats of plugins, asked after those that are built in.

    Raises PipebenchError: no such file (with the nearest known name), a format that is not supported, an option
    that the format does not have, whatever is wrong inside.
    """
    if options and path in known and not Path(path).exists():
        raise PipebenchError(
            f"the shipped profile {path!r} has no options", f"write {path}, or the path of a file"
        )
    if known and not Path(path).exists() and "/" not in path and not Path(path).suffix:
        raise PipebenchError(f"there is neither a file nor a shipped profile {path!r}", nearest(path, known))
    data = read_file(path)
    if not data.strip():
        raise PipebenchError(f"{path!r} is empty")
    found = _format_of(data, path, (*FORMATS, *others))
    chosen = typed_options(Reference(path, dict(options or {})), found.options)
    return found.read(data, path, chosen)


def is_native(data: bytes) -> bool:
    """Whether the bytes look like one of the project's own documents: JSON that no foreign format claims."""
    found = next((candidate for candidate in FORMATS if candidate.recognises(data)), None)
    return found is native_profile.FORMAT


def _format_of(data: bytes, path: str, formats: Sequence[ProfileFormat]) -> ProfileFormat:
    for candidate in formats:
        if candidate.recognises(data):
            return candidate
    for candidate in formats:
        if path.endswith(candidate.suffix):
            return candidate
    supported = "; ".join(f"{f.name}: {f.summary} ({f.suffix})" for f in formats)
    raise PipebenchError(f"{path!r} is in no profile format that is known", f"known: {supported}")
