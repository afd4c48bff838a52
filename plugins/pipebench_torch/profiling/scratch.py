"""What a measurement keeps while it goes on, so that one that was stopped goes on where it was."""

from pathlib import Path

import msgspec

from pipebench.domain.value import Value


class Kept(Value, frozen=True, kw_only=True):
    """What was measured at one size. spread: relative. whole: seconds of the model's forward and backward."""

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    spread: float
    saved: tuple[int, ...]
    workspace: tuple[int, ...]
    whole: tuple[float, float]


class Held(Value, frozen=True, kw_only=True):
    """The content of the file. key: of what was being measured."""

    key: str
    sizes: dict[int, Kept] = {}


class Scratch:
    """The sizes that were measured, by size; in a file where there is one."""

    def __init__(self, file: str, key: str) -> None:
        self._file, self._key = Path(file) if file else None, key
        self.sizes = dict(self._read())

    def add(self, size: int, kept: Kept) -> None:
        """Keep what was measured at a size."""
        self.sizes[size] = kept
        if self._file is not None:
            draft = self._file.with_name(self._file.name + ".draft")
            draft.write_bytes(msgspec.msgpack.encode(Held(key=self._key, sizes=self.sizes)))
            draft.replace(self._file)

    def _read(self) -> dict[int, Kept]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            held = msgspec.msgpack.decode(self._file.read_bytes(), type=Held)
        except (msgspec.DecodeError, OSError):
            return {}
        return held.sizes if held.key == self._key else {}
