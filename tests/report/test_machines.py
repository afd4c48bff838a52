"""Rows of one problem from machines of different kinds: the block says so."""

from pipebench.report.text.comparisons.comparison import machines
from tests.report.rows import row


def test_machines_of_different_kinds_are_said() -> None:
    here, there = {"cpu": "EPYC", "load": "1"}, {"cpu": "Xeon", "load": "2"}
    assert machines([row("a", environment=here), row("b", environment=dict(here))]) == []
    assert machines([row("a", environment=here), row("b", environment=here | {"load": "3", "seed": "7"})]) == []
    (line,) = machines([row("a", environment=here), row("b", environment=there)])
    assert line == "  search times are not compared: rows come from different machines: cpu is EPYC and Xeon"
    timed_here_alone = [row("a", environment=here), row("b", environment=there, search_cpu_s=None)]
    assert machines(timed_here_alone) == []
