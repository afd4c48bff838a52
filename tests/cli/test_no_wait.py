"""--no-wait runs beside another run of pipebench, and the row says so."""

import json

from tests.bench.sweeps.test_exclusive import holder
from tests.cli.command_line import CommandLine

ALONE = ("plan", "uniform", "--profile", "resnet50", "--devices", "2", "--memory", "16GB", "--json")


def test_a_run_that_does_not_wait_is_tagged(pipebench: CommandLine) -> None:
    with holder("machine_to_itself") as other:
        beside = pipebench(*ALONE, "--no-wait")
        other.communicate("go\n")
    assert json.loads(beside.out)["parallel"] is True
    assert "waiting" not in beside.err
    assert json.loads(pipebench(*ALONE).out)["parallel"] is False
