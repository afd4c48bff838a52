"""Tiny problems on which a planner runs before its clock does: kernels are compiled and loaded by them."""

import contextlib
import signal
import time
from collections.abc import Iterator
from functools import cache
from types import FrameType

from pipebench.bench.searches.timing import CompilationWatch
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Problem, Regime, RegimeMode
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from pipebench.hooks.context import DeadlineReached

CHAIN = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
BRANCHES = ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5))
WORK = (4, 5, 5, 8, 9, 7)
"""Parts that no cut balances, so that planners go beyond their first plan."""
OPERATORS = len(WORK)
FORWARD_S, BACKWARD_S = 0.001, 0.002
BYTES = 10_000
BANDWIDTH_BYTES_S = 1e7
DEVICES, MINI_BATCH = 4, 8
MICRO_BATCHES = (1, 2, 4, 8)


@cache
def toys(mode: RegimeMode) -> tuple[Problem, ...]:
    """A chain and two branches of six operators on four devices, in that regime."""
    return tuple(
        Problem(
            profile=_profile(name, edges),
            cluster=_CLUSTER,
            mini_batch=MINI_BATCH,
            regime=Regime(mode=mode),
        )
        for name, edges in (("chain", CHAIN), ("forks", BRANCHES))
    )


_CLUSTER = Cluster(
    name="toy",
    types=(DeviceType(name="toy", memory_bytes=10**9),),
    devices=("toy",) * DEVICES,
    levels=(LinkLevel(name="toy", group=DEVICES, latency_s=0.0, bandwidth_bytes_s=BANDWIDTH_BYTES_S),),
)


def _profile(name: str, edges: tuple[tuple[int, int], ...]) -> Profile:
    tensors = tuple(
        Tensor(
            name=f"t{producer}",
            producer=f"op{producer}",
            forward_bytes_per_sample=float(BYTES),
            gradient_bytes_per_sample=float(BYTES),
        )
        for producer in range(OPERATORS)
    )
    operators = tuple(
        Operator(
            name=f"op{at}",
            kind="toy",
            inputs=tuple(f"t{producer}" for producer, consumer in edges if consumer == at),
            parameters=(f"w{at}",),
        )
        for at in range(OPERATORS)
    )
    parameters = tuple(Parameter(name=f"w{at}", bytes=BYTES) for at in range(OPERATORS))
    costs = tuple(
        OperatorCosts(
            operator=f"op{at}",
            forward_s=tuple(FORWARD_S * size * WORK[at] for size in MICRO_BATCHES),
            backward_s=tuple(BACKWARD_S * size * WORK[at] for size in MICRO_BATCHES),
            saved_bytes_per_sample=float(BYTES),
        )
        for at in range(OPERATORS)
    )
    return Profile(
        name=name,
        graph=OperatorGraph(name=name, operators=operators, tensors=tensors, parameters=parameters),
        costs=(DeviceCosts(device_type="toy", micro_batches=MICRO_BATCHES, operators=costs),),
    )


IDLE_S, IDLE_SHARE = 1.0, 0.02
"""A planner that has used less than this share of a core by then waits for something: no toy is worth that."""


@contextlib.contextmanager
def toy_alarm(compilation: CompilationWatch, toy_s: float) -> Iterator[None]:
    """Raise DeadlineReached inside when a toy problem took its time, and again while nobody listens.

    toy_s: of CPU, beside compiling.
    """
    began_s, cpu_s, compiled_s = time.monotonic(), time.process_time(), compilation.cpu_seconds

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        used_s = time.process_time() - cpu_s
        idle = used_s < IDLE_SHARE * (time.monotonic() - began_s)
        spent = used_s - (compilation.cpu_seconds - compiled_s) >= toy_s
        if not compilation.running and (idle or spent):
            raise DeadlineReached("a toy problem takes too long")

    before = signal.signal(signal.SIGALRM, ring)
    look_s = min(IDLE_S, toy_s)
    signal.setitimer(signal.ITIMER_REAL, look_s, look_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
