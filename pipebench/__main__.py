"""python -m pipebench: the same as the command."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]  # the interpreter put the current folder there, and a file in it may be anybody's

from pipebench.cli.main import entry

entry()
