"""Where compiled kernels are kept from command to command."""

import contextlib
import hashlib
import os
import sys
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
OWN = "pipebench"
"""The name under which kernels of the suite, and of the plugins that ship with it, are kept."""

PLUGINS = "plugins"
"""The folder in NUMBA_CACHE_DIR for kernels of others."""


def kernel_folder(owner: str = OWN) -> Path | None:
    """The folder of one distribution's kernels; None where nothing can be written.

    That is NUMBA_CACHE_DIR where the user has set it, else a folder in the user's cache, one for each environment,
    else one in the environment. What a plugin compiles is read by plugins of its distribution only.
    """
    said = os.environ.get(VARIABLE)
    if said:
        return _written_to(Path(said) if owner == OWN else Path(said) / PLUGINS / owner)
    within = Path("pipebench", "kernels", _installation(), owner)
    users = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return _written_to(users / within) or _written_to(Path(sys.prefix, ".cache") / within)


def _written_to(folder: Path) -> Path | None:
    """The folder, made where it is not there; None where it cannot be written to."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    return None


def _installation() -> str:
    """This environment and this copy of the suite, in a few letters."""
    return hashlib.sha256(f"{sys.prefix} {__file__}".encode()).hexdigest()[:12]
