"""Run the command as a user does, in this process."""

from dataclasses import dataclass

import pytest

from pipebench.cli.main import run


@dataclass(frozen=True)
class Done:
    """What a command line gave."""

    code: int
    out: str
    err: str


class CommandLine:
    """Calls `pipebench` with arguments and captures what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = run(list(arguments))
        printed = self._capsys.readouterr()
        return Done(code, printed.out, printed.err)
