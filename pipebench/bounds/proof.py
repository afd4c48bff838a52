"""A proof of the least time: what the devices have, what each operator takes, and the prices that show it."""

from dataclasses import dataclass, fields
from typing import Any

from pipebench.bounds.search import bounds_of, dearest, work_of
from pipebench.bounds.shared import PARTS, POINTS, PRICE_BITS, Prices, Shared, shared
from pipebench.domain.problem import Problem

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TimeProof:
    """No plan takes less than `claimed_ns`. All numbers are whole; `certificates.bound_check` says what each means
    and checks them.

    operators, edges, visits: by the positions of operators in the graph.
    """

    claimed_ns: int
    devices: int
    memory_bytes: int
    every_ns: int
    tables: tuple[tuple[tuple[int, ...], ...], ...]
    operators: tuple[int, ...]
    edges: tuple[Edge, ...]
    visits: tuple[Edge, ...]
    waits: int
    share: int
    parts: int
    byte: int
    byte_parts: int
    instant: int
    step_bytes: int
    points: int

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def time_proof(problem: Problem) -> TimeProof | None:
    """The proof of the best of the bounds `reduce`, `fill` and `memory`. None where no plan fits into memory.

    Over plans that do not split operators. Raises InfeasibleProblem when the pins leave no plan.
    """
    found = shared(problem)
    return None if found is None else _proof(problem, found, *bounds_of(found, work_of(found))[-1])


def replicated_proof(problem: Problem, claimed_ns: int) -> TimeProof | None:
    """A proof that plans of which every operator has replicas take `claimed_ns`, or as much of it as is found.

    None where an operator with replicas fits on no device. Where their state is beyond all memory, any time is too
    short, and a high enough price of a byte shows it.
    """
    found = shared(problem, fewest_replicas=2)
    if found is None:
        return None
    claimed, prices = bounds_of(found, work_of(found))[-1]
    if claimed < claimed_ns:
        for priced in dearest(found, claimed_ns):
            if found.excess(claimed_ns - 1, priced) > 0:
                return _proof(problem, found, claimed_ns, priced)
    return _proof(problem, found, min(claimed, claimed_ns), prices)


def _proof(problem: Problem, found: Shared, claimed: int, prices: Prices) -> TimeProof:
    graph, rows, first = problem.profile.graph, found.choices.rows, found.choices.first
    return TimeProof(
        claimed_ns=claimed,
        devices=found.devices,
        memory_bytes=found.memory_bytes,
        every_ns=found.every_ns,
        tables=tuple(
            tuple(tuple(map(int, row)) for row in rows[first[table] : first[table + 1]].tolist())
            for table in range(len(first) - 1)
        ),
        operators=tuple(found.choices.of_operator.tolist()),
        edges=tuple(sorted((a, b) for a, behind in enumerate(graph.successors) for b in behind)),
        visits=found.spine.visits(prices.waits),
        waits=int(prices.waits),
        share=prices.share,
        parts=PARTS,
        byte=prices.byte,
        byte_parts=1 << PRICE_BITS,
        instant=prices.instant,
        step_bytes=found.step_bytes,
        points=POINTS,
    )
