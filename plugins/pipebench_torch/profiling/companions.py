"""Processes that run a model over and over while this one measures it, as the other devices of a pipeline do."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.system.scratch import scratch_folder
from pipebench_torch.plugin import ProfilerOptions

READY = b"ready"
LEAVE_S = 10.0


class Company(Value, frozen=True, kw_only=True):
    """What a companion process is told.

    graph: None where the model is captured by its name.
    place: number of the companion, from 1 (0 measures).
    """

    graph: OperatorGraph | None
    model: str
    precision: Precision
    device: str
    options: ProfilerOptions
    seed: int
    place: int


class Companions:
    """The companion processes. Call `turn_to` before each size."""

    def __init__(self, processes: list["subprocess.Popen[bytes]"], errors: list[Path]) -> None:
        self._processes, self._errors = processes, errors

    def turn_to(self, samples: int) -> None:
        """Wait until all companions run passes of this many samples. Raises PipebenchError when one has ended."""
        for process in self._processes:
            assert process.stdin is not None
            try:
                process.stdin.write(f"{samples}\n".encode())
                process.stdin.flush()
            except BrokenPipeError:
                continue  # it is found to have ended below
        for process, errors in zip(self._processes, self._errors, strict=True):
            assert process.stdout is not None
            if process.stdout.readline().strip() != READY:
                said = errors.read_text(errors="replace").strip().splitlines() or ["it did not say why"]
                raise PipebenchError(f"a process beside the measured one ended: {said[-1][:200]}")


@contextmanager
def companions(each: list[Company]) -> Iterator[Companions]:
    """Start the companions, and end them. They end with their standard input, however this process ends."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        processes, errors = [], []
        for company in each:
            told, error = folder / f"company-{company.place}", folder / f"errors-{company.place}"
            told.write_bytes(msgspec.msgpack.encode(company))
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipebench_torch.profiling.companion", str(told)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stack.enter_context(error.open("wb")),
            )
            stack.callback(_end, process)
            processes.append(process)
            errors.append(error)
        yield Companions(processes, errors)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.communicate(timeout=LEAVE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
