"""What the simulator refuses."""

from pipebench.domain.errors import PipebenchError


class InvalidSchedule(PipebenchError):
    """The schedule does not fit its plan: a task is missing, doubled, or on devices that do not hold its stage."""


class Deadlock(PipebenchError):
    """No task can start any more.

    lanes: the devices of the lanes in one cycle of waits. heads: the task at which each of them stands, as
    (kind, stage, micro-batch).
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        lanes: tuple[tuple[int, ...], ...] = (),
        heads: tuple[tuple[str, int, int], ...] = (),
    ) -> None:
        super().__init__(message, hint)
        self.lanes = lanes
        self.heads = heads
