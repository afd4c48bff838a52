"""The device of a process: where tensors live, what time it is, how much memory is in use."""

import contextlib
import ctypes
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipebench_torch.processes.cores import give_way

PAGE_BYTES = 4096
AT_ONCE_NS = 50_000
"""A message that is received in less has not been waited for: to wake a thread takes about as long."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Numbers of mallopt in the GNU C library; elsewhere the call does nothing."""


def keep_freed_memory() -> None:
    """Let the C library keep freed memory, as the allocators of training runs do.

    Fetching fresh pages for every tensor would take a third of the time of a light operator, and nine tenths of
    that of the gradient of a large embedding. The heap is never trimmed, and nothing is mapped apart from it. (The
    C library maps tensors above 32 MB apart by default and returns their pages when they are freed.)
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, -1)


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Turn TensorFloat-32 off; cards use it for float32 convolutions by default."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


class Machine:
    """A CPU process: tensors in host memory, time from the monotonic clock, memory as the resident set."""

    device = torch.device("cpu")
    staged = True
    """Whether what is sent and received lies in host memory."""

    def begin(self) -> None:
        """Begin a run. Its marks are read before the next run begins."""

    def mark(self) -> Any:
        """Mark this instant, to be read later."""
        return time.monotonic_ns()

    def begin_of_task(self, free: Any, called: Any, returned: Any) -> Any:
        """The mark at which a task begins.

        free: the end of the task before it.
        called, returned: around the receipt of its inputs. Where they had been there already, what was done since
            the other task's end is work of the processor.
        """
        return free if returned - called <= AT_ONCE_NS else returned

    def read(self, marks: list[Any]) -> list[int]:
        """Instants of the marks, in ns of the monotonic clock that all processes of a machine share."""
        return list(marks)

    def settle(self) -> None:
        """Wait for work that was started."""

    def give_way(self) -> None:
        """Let the threads that send and receive run, which share the core of the one that computes."""
        give_way()

    def memory_bytes(self) -> int:
        """Bytes in use now."""
        try:
            return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
        except OSError:  # no such file outside Linux
            return 0

    def settled_bytes(self) -> int:
        """Bytes in use once freed memory has gone back to the system."""
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        return self.memory_bytes()

    def peak_bytes(self) -> int:
        """The most bytes in use since `reset_peak`, never less than now."""
        try:
            status = Path("/proc/self/status").read_text()
        except OSError:
            return 0
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def reset_peak(self) -> None:
        """Begin a new peak."""
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return

    def name(self) -> str:
        """The device as a provenance says it."""
        try:
            lines = Path("/proc/cpuinfo").read_text().splitlines()
        except OSError:
            lines = []
        return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "cpu")

    def sending(self, tensor: Tensor) -> Tensor:
        """A tensor as the backend sends it."""
        return tensor.contiguous()


class CudaMachine(Machine):
    """One card. Instants are events on the current stream, tied to the monotonic clock when a run begins.

    The time since then is a float32 of milliseconds, exact to 1 microsecond for 16 s.
    """

    def __init__(self, index: int, staged: bool) -> None:
        torch.cuda.set_device(index)
        self.device = torch.device("cuda", index)
        self.staged = staged
        self._base: Any = None
        self._base_ns = 0

    def begin(self) -> None:
        """Tie events to the clock."""
        torch.cuda.synchronize()
        self._base = torch.cuda.Event(enable_timing=True)
        self._base.record()
        self._base.synchronize()
        self._base_ns = time.monotonic_ns()

    def mark(self) -> Any:
        """An event on the current stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def begin_of_task(self, free: Any, called: Any, returned: Any) -> Any:  # noqa: ARG002
        """The receipt of its inputs: the host's work is not the card's."""
        return returned

    def read(self, marks: list[Any]) -> list[int]:
        """Events as ns of the monotonic clock."""
        torch.cuda.synchronize()
        return [self._base_ns + round(self._base.elapsed_time(mark) * 1e6) for mark in marks]

    def settle(self) -> None:
        """Wait for the card."""
        torch.cuda.synchronize()

    def give_way(self) -> None:
        """Nothing: the card computes."""

    def memory_bytes(self) -> int:
        """Bytes of this process's tensors."""
        return int(torch.cuda.memory_allocated())

    def settled_bytes(self) -> int:
        """Bytes of tensors; the allocator's cache does not count."""
        torch.cuda.synchronize()
        return self.memory_bytes()

    def peak_bytes(self) -> int:
        """The most bytes of tensors since `reset_peak`."""
        return int(torch.cuda.max_memory_allocated())

    def reset_peak(self) -> None:
        """Begin a new peak."""
        torch.cuda.reset_peak_memory_stats()

    def name(self) -> str:
        """The card's name."""
        return str(torch.cuda.get_device_name(self.device))

    def sending(self, tensor: Tensor) -> Tensor:
        """The tensor as the backend sends it: in host memory where the backend cannot read the card's."""
        return tensor.contiguous().cpu() if self.staged else tensor.contiguous()


def machine_of(device: str, backend: str, local_rank: int) -> Machine:
    """The machine of a process; processes beyond the number of cards share them."""
    if device == "cpu":
        return Machine()
    return CudaMachine(local_rank % torch.cuda.device_count(), staged=backend == "gloo")
