"""python -m pipebench: the same as the command."""

import os
import sys


def _leave_current_folder_out() -> None:
    """The interpreter puts it first on the import path, and a file in it may be anybody's."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    if not sys.flags.safe_path and sys.path[:1] in ([here], [""]):
        del sys.path[0]


_leave_current_folder_out()

from pipebench.cli.main import entry  # noqa: E402 - what it imports must not be looked for in that folder

entry()
