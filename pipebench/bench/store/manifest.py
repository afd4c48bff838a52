"""store.json: what makes a folder a store, and which version of the format it has."""

import msgspec

from pipebench import __version__
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value

MANIFEST, KIND, VERSION = "store.json", "store", 1
ROWS, OBJECTS, LOCK = "rows.jsonl", "objects", "lock"


class StoreInfo(Value, frozen=True, kw_only=True):
    """Who made the store, and when (UTC, ISO 8601)."""

    made_at: str
    pipebench: str = __version__


class _Envelope(msgspec.Struct):
    """As in domain.document; fields that a later version adds do not hide its version."""

    pipebench: str
    version: int
    content: msgspec.Raw


def encode_manifest(info: StoreInfo) -> bytes:
    """The bytes of store.json."""
    return msgspec.json.encode({"pipebench": KIND, "version": VERSION, "content": info}) + b"\n"


def check_manifest(data: bytes, store: str) -> None:
    """Raise PipebenchError when the bytes of store.json are of another kind or of another version."""
    where = f"store {store!r}"
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
        if envelope.pipebench == KIND and envelope.version == VERSION:
            msgspec.json.decode(envelope.content, type=StoreInfo)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PipebenchError(f"{where}: its {MANIFEST} is damaged: {error}", "give another folder") from None
    if envelope.pipebench != KIND:
        raise PipebenchError(f"{where}: its {MANIFEST} holds a {envelope.pipebench}, not a store")
    if envelope.version != VERSION:
        newer = "install a newer pipebench, or " if envelope.version > VERSION else ""
        raise PipebenchError(
            f"{where} was written in version {envelope.version} of the store format, "
            f"this pipebench ({__version__}) reads version {VERSION}",
            f"{newer}give another folder",
        )
