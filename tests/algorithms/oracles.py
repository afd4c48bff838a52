"""The oracle table of MadPipe's study: tiny integer chains, solved by enumeration and MILP."""

from dataclasses import dataclass

from pipebench.domain.problem import Problem
from tests.algorithms.enumeration import Figures, figures
from tests.builders import chain_problem, cluster


@dataclass(frozen=True)
class Oracle:
    """devices and memory; forward, backward, weights of each layer; activations a_0 … a_L; one_way transfer ns
    for each of them, which bytes_per_ns gives. Periods in ns: of the best contiguous plan, of MadPipe-DP with the
    printed and with the tight bound, of the printed one's allocation scheduled (None: it has no schedule), of
    the best allocation with one special GPU, and of the best assignment of stages to GPUs.
    """

    devices: int
    memory: int
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    weights: tuple[int, ...]
    activations: tuple[int, ...]
    one_way: tuple[int, ...]
    bytes_per_ns: float
    contiguous: int
    printed: int
    tight: int
    scheduled: int | None
    one_special: int
    any_assignment: int

    @property
    def figures(self) -> Figures:
        return figures(self.forward, self.backward, self.weights, self.activations, self.one_way)

    @property
    def problem(self) -> Problem:
        return chain_problem(
            self.forward,
            self.backward,
            cluster(self.devices, self.memory, self.bytes_per_ns * 1e9),
            activations=self.activations,
            weights=self.weights,
        )


ORACLES = {
    "O1": Oracle(
        2,
        75,
        (2, 7, 8, 20),
        (1, 15, 11, 15),
        (1, 1, 2, 3),
        (1, 3, 15, 9, 0),
        (0, 1, 4, 2, 0),
        4.0,
        44,
        41,
        41,
        41,
        41,
        41,
    ),
    "O3": Oracle(
        3,
        77,
        (1, 20, 2, 4, 8),
        (18, 9, 3, 3, 6),
        (1, 2, 3, 3, 2),
        (7, 11, 11, 16, 5, 0),
        (0, 11, 11, 16, 5, 0),
        1.0,
        58,
        48,
        51,
        None,
        51,
        51,
    ),
    "O4": Oracle(
        2,
        65,
        (17, 3, 4, 16, 18),
        (15, 8, 19, 9, 2),
        (0, 2, 3, 2, 3),
        (7, 2, 6, 12, 13, 0),
        (0, 1, 3, 6, 6, 0),
        2.0,
        123,
        66,
        91,
        123,
        91,
        91,
    ),
    "O6": Oracle(
        3,
        74,
        (2, 20, 18, 3, 16),
        (11, 14, 2, 10, 3),
        (3, 2, 0, 2, 3),
        (11, 4, 9, 3, 1, 0),
        (0, 1, 2, 1, 0, 0),
        4.0,
        52,
        34,
        37,
        37,
        37,
        34,
    ),
    "O8": Oracle(
        3,
        63,
        (14, 15, 12, 7),
        (2, 5, 16, 20),
        (1, 1, 3, 0),
        (1, 8, 14, 17, 0),
        (0, 8, 14, 17, 0),
        1.0,
        91,
        55,
        91,
        None,
        91,
        91,
    ),
}
