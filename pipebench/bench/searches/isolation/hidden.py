"""Files of this process that its children shall not see: what others found, and what they will be asked."""

import os
from collections.abc import Iterable
from pathlib import Path

_hidden: set[str] = set()


def hide_from_children(paths: Iterable[str | Path]) -> None:
    """From now on children of this process see these folders and files empty, where the kernel permits it."""
    _hidden.update(os.path.abspath(path) for path in paths)


def hidden_paths() -> tuple[str, ...]:
    """What has been hidden."""
    return tuple(sorted(_hidden))
