"""The project's own files: JSON documents, read with a size bound, written at once."""

from pathlib import Path
from typing import Any, cast

from pipebench.documents.document import PlannedProblem, decode, decode_any, encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.files import read_file, write_file
from pipebench.formats.json_forms import json_form
from pipebench.hooks.syntax import parse_reference
from pipebench.hooks.trust import Trust


def looks_native(data: bytes) -> bool:
    """Whether the bytes are one of the project's own documents by their fields, or JSON of no known form."""
    return json_form(data) == "native"


def read_document(path: str | Path, kind: str) -> Any:
    """The value of a document of that kind. Raises PipebenchError that names the file and the path inside."""
    return decode(_bytes(path), kind, str(path))


def read_any_document(path: str | Path) -> tuple[str, Any]:
    """The kind and the value of a document of any kind. Raises PipebenchError as `read_document`."""
    return decode_any(_bytes(path), str(path))


def read_plan(path: str | Path, trust: Trust | None = None) -> PlannedProblem:
    """A plan file. Raises PipebenchError as `read_document`, UntrustedName where its scheduler names code."""
    planned = cast(PlannedProblem, read_document(path, "plan"))
    try:
        scheduler = [parse_reference(planned.scheduler)]
    except PipebenchError:
        scheduler = []  # a name that is none runs nothing
    (trust or Trust()).require(scheduler, str(path))
    return planned


def decode_profile(data: bytes, source: str) -> Profile:
    """The profile in a document's bytes. Raises PipebenchError as `read_document`."""
    return cast(Profile, decode(data, "profile", source))


def write_document(path: str | Path, kind: str, value: Any) -> None:
    """Write a value as a document of that kind. Raises PipebenchError when the file cannot be written."""
    write_file(path, encode(kind, value) + b"\n")


def _bytes(path: str | Path) -> bytes:
    data = read_file(path)
    if not data.strip():
        raise PipebenchError(f"{str(path)!r} is empty")
    return data
