"""Passes of a card are held or not, as the options say, and both ways are told; on a made clock."""

from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench.bench.problems.plugin_sources import build_graph
from pipebench.hooks.syntax import parse_reference
from pipebench_torch.modules.models import SyntheticModel
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.profiling import passes
from pipebench_torch.profiling.timed_pass import Clock
from tests.plugins.running import services

HOST_S, CARD_S = 5.0, 1.0
"""Between two marks the processor launches for so long, and what it launched takes a card so long."""


class MadeCard(Clock):
    """A card that begins what was launched when it is free, not held, and the processor has launched it."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.cuda, self.host_s, self.free_s = True, 0.0, 0.0

    def hold(self) -> None:
        self.free_s = max(self.free_s, self.host_s) + self.held_s

    def mark(self) -> Any:
        self.host_s += HOST_S
        self.free_s = max(self.free_s, self.host_s) + CARD_S
        return self.free_s

    def seconds(self, marks: Any) -> list[float]:
        self.host_s = self.free_s = max(self.host_s, self.free_s)
        return [later - earlier for earlier, later in pairwise(marks)]


def measured(monkeypatch: pytest.MonkeyPatch, queued: bool, clock: type[Clock] = MadeCard) -> passes.PassTimes:
    monkeypatch.setattr(passes, "Clock", clock)
    graph = build_graph(services().host, parse_reference("tiny-mmt[layers=1]"))
    options = ProfilerOptions(repeats=3, least_s=0.0, warmup=1, queued=queued)
    return passes.measure(SyntheticModel(graph, 0, "fp32"), 2, options, torch.device("cpu"))


def test_a_card_that_is_held_never_waits_for_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    made = measured(monkeypatch, queued=True)
    assert set(made.forward) == {CARD_S}
    assert made.whole == (CARD_S, CARD_S)
    assert made.otherwise == (HOST_S, HOST_S)


def test_by_default_it_waits_as_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = measured(monkeypatch, queued=False)
    assert set(made.forward) == {HOST_S}
    assert made.whole == (HOST_S, HOST_S)
    assert made.otherwise == (CARD_S, CARD_S)


@pytest.mark.parametrize("queued", [True, False])
def test_a_cpu_has_one_way(monkeypatch: pytest.MonkeyPatch, queued: bool) -> None:
    made = measured(monkeypatch, queued, Clock)
    assert made.otherwise == (0.0, 0.0)
