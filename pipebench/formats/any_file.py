"""Read a file of any kind: the project's own documents, else a foreign profile."""

from typing import Any

from pipebench.formats.files import read_file
from pipebench.formats.native import read_any_document
from pipebench.formats.profile_file import is_native, read_profile
from pipebench.hooks.syntax import parse_reference


def read_any(path: str) -> tuple[str, Any]:
    """The kind of a document and its value; path may carry the options of a foreign profile in brackets.

    Raises PipebenchError that names what is wrong.
    """
    reference = parse_reference(path)
    if not reference.options and is_native(read_file(path)):
        return read_any_document(path)
    return "profile", read_profile(reference.name, reference.options)
