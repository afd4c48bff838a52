"""The command line as a fixture."""

import pytest

from tests.cli.command_line import CommandLine


@pytest.fixture
def pipebench(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
