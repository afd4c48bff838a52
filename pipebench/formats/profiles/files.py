"""Profiles from files of any known format and to them, chosen by content or by name."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipebench.documents.document import decode_any, encode
from pipebench.documents.printable import in_unicode
from pipebench.domain.errors import PipebenchError, nearest, unknown
from pipebench.domain.profile import Profile
from pipebench.formats.documents import decode_profile, looks_native
from pipebench.formats.files import read_file
from pipebench.formats.profiles import layer_table, pipedream, piper, tarnawski
from pipebench.formats.profiles.format import ProfileFormat, ProfileText
from pipebench.hooks.descriptors import NoOptions
from pipebench.hooks.syntax import Reference, parse_reference, typed_options


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a JSON document. Raises PipebenchError that names file and path inside."""
    del options
    return decode_profile(data, source)


FORMAT = ProfileFormat(
    name="pipebench",
    summary="the project's own JSON document of kind profile",
    suffix=".json",
    options=NoOptions,
    recognises=looks_native,
    read=read,
)


FORMATS: tuple[ProfileFormat, ...] = (
    piper.FORMAT,
    tarnawski.FORMAT,
    layer_table.JSON,
    FORMAT,
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
    if options and path in known and not os.path.exists(path):
        raise PipebenchError(
            f"the shipped profile {path!r} has no options", f"write {path}, or the path of a file"
        )
    if known and not os.path.exists(path) and "/" not in path and not Path(path).suffix:
        raise PipebenchError(f"there is neither a file nor a shipped profile {path!r}", nearest(path, known))
    data = read_file(path)
    if not data.strip():
        raise PipebenchError(f"{path!r} is empty")
    found = _format_of(data, path, (*FORMATS, *others))
    chosen = typed_options(Reference(path, dict(options or {})), found.options)
    return found.read(data, in_unicode(path), chosen)


def is_native(data: bytes) -> bool:
    """Whether the bytes look like one of the project's own documents: JSON that no foreign format claims."""
    found = next((candidate for candidate in FORMATS if candidate.recognises(data)), None)
    return found is FORMAT


def _format_of(data: bytes, path: str, formats: Sequence[ProfileFormat]) -> ProfileFormat:
    for candidate in formats:
        if candidate.recognises(data):
            return candidate
    for candidate in formats:
        if path.endswith(candidate.suffix):
            return candidate
    supported = "; ".join(f"{f.name}: {f.summary} ({f.suffix})" for f in formats)
    raise PipebenchError(f"{path!r} is in no profile format that is known", f"known: {supported}")


def _write_native(profile: Profile) -> ProfileText:
    return ProfileText(encode("profile", profile) + b"\n")


WRITERS: dict[str, tuple[str, Callable[[Profile], ProfileText]]] = {
    "piper": (".piper.json", piper.write),
    "tarnawski": (".tarnawski.json", tarnawski.write),
    "layers-json": (".layers.json", layer_table.write_json),
    "layers-csv": (".csv", layer_table.write_csv),
    "pipedream": (".txt", pipedream.write),
    "pipebench": (".json", _write_native),
}
"""By name of the format: the end of a file name that means it, and its writer."""


def write_profile(profile: Profile, path: str, name: str | None = None) -> ProfileText:
    """The file of a profile. name: of the format; None: told by the end of the path.

    Raises PipebenchError: an unknown format, an end that means none, a profile that the format cannot carry.
    """
    if name is not None:
        if name not in WRITERS:
            raise unknown("format to write", name, WRITERS)
        return WRITERS[name][1](profile)
    for suffix, write in WRITERS.values():
        if path.endswith(suffix):
            return write(profile)
    known = ", ".join(f"{suffix} ({format_name})" for format_name, (suffix, _) in WRITERS.items())
    ends = [suffix for suffix, _ in WRITERS.values()]
    raise PipebenchError(
        f"the name {Path(path).name!r} does not say which format to write",
        f"end it in {known}, or say --to; {nearest(Path(path).suffix, ends)}",
    )


def read_any(path: str, others: Callable[[], Sequence[ProfileFormat]] = tuple) -> tuple[str, Any]:
    """The kind of a document and its value; path may carry the options of a foreign profile in brackets.

    others: gives the formats of plugins; it is asked where the file is none of the project's own.
    Raises PipebenchError that names what is wrong.
    """
    reference = parse_reference(path)
    if not reference.options:
        data = read_file(path)
        if data.strip() and is_native(data):
            return decode_any(data, path)
    return "profile", read_profile(reference.name, reference.options, others=others())
