"""Schedule: the order of tasks on devices (finite), or a pattern that repeats (periodic). Columnar."""

from typing import Any

from pipebench.domain.limits import MOST_NS, MOST_SHIFT
from pipebench.domain.value import Value, require

FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, ALL_REDUCE = "F", "B", "I", "W", "R"
TASK_KINDS = FORWARD + BACKWARD + INPUT_GRADIENT + WEIGHT_GRADIENT + ALL_REDUCE


class Lane(Value, frozen=True, kw_only=True):
    """The order of tasks on one set of devices that always work together (`Stage.device_sets`).

    devices: ids, as in the stages that run here.
    stage, micro_batch: entry i of each is one task: a position in the plan's stages, and a number from 0.
    kinds: a letter for each task. F forward, B full backward, I and W its input and weight gradient parts, R the
    all-reduce of the weight gradients (micro_batch 0; for replicas in turn the number of the replica).
    together: ascending positions i of an F that runs at the same time as task i + 1, a B or I of another stage or
    micro-batch. Such a pair starts when the inputs of both are there, and both end together. Problem.overlap gives
    its duration.
    """

    devices: tuple[int, ...]
    stage: tuple[int, ...]
    micro_batch: tuple[int, ...]
    kinds: str
    together: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(
            len(self.stage) == len(self.micro_batch) == len(self.kinds),
            f"lane of devices {self.devices}: columns of {len(self.stage)}, {len(self.micro_batch)} "
            f"and {len(self.kinds)} tasks",
        )
        unknown = set(self.kinds) - set(TASK_KINDS)
        require(not unknown, f"lane of devices {self.devices}: unknown task kinds {sorted(unknown)}")
        before = -2
        for first in self.together:
            self._require_pair(first, before)
            before = first

    def _require_pair(self, first: int, before: int) -> None:
        """Refuse a position that is no pair; before: the pair in front of it."""
        what = f"lane of devices {self.devices}: together names position {first}"
        require(0 <= first < len(self.kinds) - 1, f"{what}, the lane has {len(self.kinds)} tasks")
        require(first >= before + 2, f"{what} behind {before}: pairs ascend and share no task")
        pair = self.kinds[first : first + 2]
        require(
            pair in (FORWARD + BACKWARD, FORWARD + INPUT_GRADIENT),
            f"{what}, where {pair[0]} and {pair[1]} stand: a pair is an F and the B or I behind it",
        )
        require(
            (self.stage[first], self.micro_batch[first]) != (self.stage[first + 1], self.micro_batch[first + 1]),
            f"{what}, where a forward would run at the same time as its own backward",
        )


class FiniteSchedule(Value, frozen=True, kw_only=True, tag="finite"):
    """One mini-batch: for each lane the order of its tasks.

    lanes: one for each set of devices.
    """

    lanes: tuple[Lane, ...]

    def identity_content(self) -> Any:
        """As in schedules without pairs of tasks, where a lane has none."""
        content = super().identity_content()
        for lane in content["lanes"]:
            if not lane["together"]:
                del lane["together"]
        return content


class PeriodicSchedule(Value, frozen=True, kw_only=True, tag="periodic"):
    """A pattern repeated for ever; micro-batch i runs an operation at start + (shift + i) * period.

    Where replicas take micro-batches in turn, one of r runs an operation every r periods, so that an operation may
    last longer than a period.

    period_ns: nanoseconds from one micro-batch to the next.
    stage: for each operation the position of its stage.
    kinds: for each operation F or B.
    start_ns: for each operation its start in [0, period).
    shift: for each operation the number of whole periods that it starts later.
    source, target: for each transfer the positions of two stages. A transfer F carries all tensors that cross from
    source to target. A transfer B carries their gradients back: its source is the consumer stage, its target the
    producer stage.
    transfer_kinds, transfer_start_ns, transfer_shift: for each transfer, as kinds, start_ns and shift.
    """

    period_ns: int
    stage: tuple[int, ...]
    kinds: str
    start_ns: tuple[int, ...]
    shift: tuple[int, ...]
    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    transfer_kinds: str = ""
    transfer_start_ns: tuple[int, ...] = ()
    transfer_shift: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(0 < self.period_ns <= MOST_NS, f"period_ns is {self.period_ns}, it must be in (0, 2^53]")
        require(
            all(abs(shift) <= MOST_SHIFT for shift in (*self.shift, *self.transfer_shift)),
            "a shift lies outside [-2^31, 2^31]",
        )
        require(
            len(self.stage) == len(self.kinds) == len(self.start_ns) == len(self.shift),
            "the columns of the operations differ in length",
        )
        transfers = len(self.source)
        require(
            transfers
            == len(self.target)
            == len(self.transfer_kinds)
            == len(self.transfer_start_ns)
            == len(self.transfer_shift),
            "the columns of the transfers differ in length",
        )
        require(set(self.kinds) <= {FORWARD, BACKWARD}, "a periodic schedule has operations F and B only")
        require(set(self.transfer_kinds) <= {FORWARD, BACKWARD}, "a transfer is of kind F or B")
        require(
            all(0 <= start < self.period_ns for start in (*self.start_ns, *self.transfer_start_ns)),
            "a start lies outside [0, period_ns)",
        )


Schedule = FiniteSchedule | PeriodicSchedule
