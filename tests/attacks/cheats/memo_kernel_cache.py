"""It tries: the folder in which compiled kernels are kept remembers the search."""

import os

from memo import in_folders


def _folders():
    import numba

    import pipebench

    named = [os.environ.get(name) for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")]
    package = os.path.join(os.path.dirname(pipebench.__file__), "algorithms", "__pycache__")
    return [folder for folder in (numba.config.CACHE_DIR, *named, package) if folder]


plan = in_folders(_folders)
