"""python -m pipebench: the same as the command."""

from pipebench.cli.main import entry

entry()
