"""What a file is that was given in place of another, such as a store's folder, and which command takes it."""

import shlex
from pathlib import Path

import msgspec

from pipebench.documents.decoding import MALFORMED
from pipebench.documents.naming import NAMINGS, in_words, taken_by
from pipebench.domain.errors import PipebenchError
from pipebench.system.files import open_regular, read_file


class _Envelope(msgspec.Struct):
    """The first word of a document."""

    pipebench: str


def is_zip(file: Path) -> bool:
    """Whether a file begins as a zip does. Raises PipebenchError where it cannot be read."""
    try:
        with open_regular(file) as opened:
            return opened.read(2) == b"PK"
    except OSError as error:
        raise PipebenchError(f"cannot read {str(file)!r}: {(error.strerror or str(error)).lower()}") from None


def no_folder(file: Path, what: str) -> PipebenchError:
    """That a file is no folder, and what it is. what: `store`, or `history`."""
    if is_zip(file):
        unpack = shlex.join(["python", "-m", "zipfile", "-e", str(file), file.stem])
        shows = shlex.join(["pipebench", "show", str(file)])
        return PipebenchError(
            f"{str(file)!r} is a packed store, and a folder is asked for",
            f"unpack it first: {unpack}; or read it as it is: {shows}",
        )
    kind = document_kind(file)
    if not kind:
        return PipebenchError(f"{str(file)!r} is a file, not a {what}", f"give the folder of a {what}")
    return PipebenchError(f"{str(file)!r} holds {in_words(kind)}, not a {what}", taken_by(kind))


def document_kind(file: Path) -> str:
    """The kind of the document in a file; '' where it holds none that is known, or cannot be read."""
    try:
        kind = msgspec.json.decode(read_file(file), type=_Envelope).pipebench
    except (PipebenchError, *MALFORMED):
        return ""
    return kind if kind in NAMINGS else ""
