"""Each operator is charged the time of its own steps: against operators that take known times on a made clock."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch
from torch import Tensor

from pipebench.domain.graph import Operator, OperatorGraph, Parameter
from pipebench.domain.graph import Tensor as GraphTensor
from pipebench_torch.profiling.timed_pass import Clock, SavedStorages, TimedPass

FORWARD, BACKWARD = 100, 1000
"""An operator n takes n + 100 forward, and each step of its backward n + 1000."""


class MadeClock(Clock):
    """Stands still but for what operators say they take."""

    now = 0.0

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))

    def mark(self) -> Any:
        return self.now


class Step(torch.autograd.Function):
    """Hands a tensor on; its two directions take time."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, operator: int, clock: MadeClock) -> Tensor:
        ctx.operator, ctx.clock = operator, clock
        clock.now += FORWARD + operator
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.clock.now += BACKWARD + ctx.operator
        return gradient, None, None


class Made:
    """a reads the input and a weight; b and c read a, b in two steps; d hands b on untouched; e reads c and d and
    the weight of a once more, and gives two tensors of which f reads one.
    """

    def __init__(self, clock: MadeClock) -> None:
        self.clock = clock
        reads = {"a": ["x"], "b": ["a0"], "c": ["a0"], "d": ["b0"], "e": ["c0", "d0"], "f": ["e0"]}
        makes = {"a": ["a0"], "b": ["b0"], "c": ["c0"], "d": ["d0"], "e": ["e0", "e1"], "f": ["f0"]}
        producer = {tensor: operator for operator, tensors in makes.items() for tensor in tensors}
        size = {"forward_bytes_per_sample": 4.0, "gradient_bytes_per_sample": 4.0}
        self.graph = OperatorGraph(
            name="made",
            operators=tuple(
                Operator(name=name, kind="step", inputs=tuple(read), parameters=("w",) if name in "ae" else ())
                for name, read in reads.items()
            ),
            tensors=tuple(
                GraphTensor(name=name, producer=producer.get(name), **size) for name in ("x", *producer)
            ),
            parameters=(Parameter(name="w", bytes=4),),
        )

    def run(
        self, operator: int, values: Mapping[int, Tensor], weights: Mapping[str, Tensor], first: int, groups: Any
    ) -> dict[int, Tensor]:
        del first, groups
        described = self.graph.operators[operator]
        read = [values[self.graph.tensor_index[name]] for name in described.inputs]
        outputs = self.graph.outputs[operator]
        if described.name == "d":
            return {outputs[0]: read[0]}
        value = sum(read[1:], read[0])
        for name in described.parameters:
            value = value * weights[name]
        made = [Step.apply(value, operator, self.clock) for _ in outputs]
        if described.name == "b":
            made = [Step.apply(made[0], operator, self.clock)]
        return dict(zip(outputs, made, strict=True))


def passed(storages: bool = False) -> tuple[list[float], list[float], Tensor, Sequence[int]]:
    clock = MadeClock()
    model = Made(clock)
    weight = torch.full((1,), 3.0, requires_grad=True)
    one = TimedPass(model, {"w": weight}, {0: torch.ones(2, 1)}, 2, clock)  # type: ignore[arg-type]
    kept = SavedStorages(6, [weight], torch.device("cpu")) if storages else None
    one.run(kept)
    assert weight.grad is not None
    return one.forward, one.backward, weight.grad, kept.saved if kept else ()


def test_every_step_is_charged_to_its_operator() -> None:
    forward, backward, gradient, _ = passed()
    assert forward == [100, 202, 102, 0, 208, 105]
    # e gives two tensors, and both are outputs or lead to one; d has no step of its own
    assert backward == [1000, 2002, 1002, 0, 2008, 1005]
    # y = 2 w (w x) for both outputs, each half its mean square over two samples
    assert float(gradient) == pytest.approx(2 * 18 * 12)


def test_storages_are_charged_once_and_weights_never() -> None:
    """a keeps x to learn w; e keeps the sum that it multiplies; one tensor of e and that of f are the outputs."""
    saved = passed(storages=True)[3]
    assert list(saved) == [8, 0, 0, 0, 8 + 8, 8]


class Allocator:
    """What a card's allocator tells."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def take(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)

    def forget(self) -> None:
        self.peak = self.now


def test_scratch_is_what_an_operator_takes_for_a_while_in_either_direction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forward, n keeps 10 and takes 7 + n meanwhile; backward, a step takes 20 + n (f: 3), and gives that and 10
    back.
    """
    card = Allocator()
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: card.now)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: card.peak)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", card.forget)

    class Busy(MadeClock):
        """Operators tell it that they ran by moving it on."""

        def __setattr__(self, name: str, value: float) -> None:
            took = value - self.now if name == "now" and hasattr(self, "cuda") else 0
            super().__setattr__(name, value)
            operator = round(took) % FORWARD
            if FORWARD <= took < BACKWARD:
                card.take(10 + 7 + operator)
                card.take(-7 - operator)
            elif took:
                card.take(3 if operator == 5 else 20 + operator)
                card.take(-10 - (3 if operator == 5 else 20 + operator))

    clock = Busy()
    weight = torch.full((1,), 3.0, requires_grad=True)
    kept = SavedStorages(6, [weight], torch.device("cuda"))
    one = TimedPass(Made(clock), {"w": weight}, {0: torch.ones(2, 1)}, 2, clock)  # type: ignore[arg-type]
    one.run(kept)
    assert kept.workspace == [20, 21, 22, 0, 24, 12]


def test_instants_of_a_card_are_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded where the work is queued, read once the card is done; an event knows milliseconds."""
    card: dict[str, Any] = {"at_ms": 0.0, "done": False}

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            card["done"] = False
            self.at_ms = card["at_ms"]

        def elapsed_time(self, later: "Event") -> float:
            assert card["done"]
            return float(later.at_ms - self.at_ms)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: card.update(done=True))
    clock = Clock(torch.device("cuda"))
    marks = []
    for at_ms in (1.0, 3.5, 3.5, 10.0):
        card["at_ms"] = at_ms
        marks.append(clock.mark())
    assert clock.seconds(marks) == [0.0025, 0.0, 0.0065]


def test_a_card_is_held_for_seconds_whatever_its_cycles_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time, the rate of its cycles is measured by holding it for some of them."""
    at_ms, rate_ms = [0.0], 1.7e6

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            del enable_timing

        def record(self) -> None:
            self.at_ms = at_ms[0]

        def elapsed_time(self, later: "Event") -> float:
            return later.at_ms - self.at_ms

    def sleep(cycles: int) -> None:
        at_ms[0] += cycles / rate_ms

    for name, value in (("Event", Event), ("synchronize", lambda: None), ("_sleep", sleep)):
        monkeypatch.setattr(torch.cuda, name, value)
    clock = Clock(torch.device("cuda"))
    clock.hold()
    assert at_ms[0] == 0
    clock.held_s = 0.25
    clock.hold()
    begun_ms = at_ms[0]
    clock.hold()
    assert at_ms[0] - begun_ms == pytest.approx(250, rel=1e-6)
    other = Clock(torch.device("cpu"))
    other.held_s = 0.25
    other.hold()
    assert at_ms[0] - begun_ms == pytest.approx(250, rel=1e-6)


def test_a_card_is_held_before_either_direction_and_not_within() -> None:
    """Else the processor would queue a direction while the card already runs it."""
    told: list[str] = []

    class Told(MadeClock):
        def hold(self) -> None:
            told.append("hold")

        def mark(self) -> Any:
            told.append("mark")
            return self.now

    clock = Told()
    weight = torch.full((1,), 3.0, requires_grad=True)
    TimedPass(Made(clock), {"w": weight}, {0: torch.ones(2, 1)}, 2, clock).run()  # type: ignore[arg-type]
    # six operators; backward, d has no output of its own and e has two
    assert told == ["hold", *["mark"] * (1 + 6), "hold", *["mark"] * (1 + 6 + 1)]
