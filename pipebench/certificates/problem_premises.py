"""What a certificate takes as given of the problem.

Imports the standard library and the form of certificates only. Whether these tables are those of a problem is not
asked here: `pipebench certify --against` and the tests ask it.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from pipebench.certificates.document import MOST, Part, Refused, whole

PINS = "tensor_parallel", "data_parallel", "pipeline", "virtual_stages", "micro_batch", "micro_batch_size"


@dataclass(frozen=True)
class Problem:
    """The part `problem`. devices: of each its bytes of memory and those that are to stay free.

    levels: of each link level the devices of a group, and whether groups share a bandwidth there.
    tensors: of each the operator that makes it and those that read it. overlap: a fraction.
    pins: by name, 0 where nothing is pinned.
    """

    mini_batch: int
    flushes: bool
    link_mode: str
    overlap: tuple[int, int]
    devices: list[list[int]]
    levels: list[list[int]]
    operators: list[str]
    constants: set[int]
    tensors: list[tuple[int, list[int]]]
    pins: dict[str, int]
    recompute: str

    def devices_of_bound(self, part: Part, split: bool = False) -> int:
        """The field `devices` of a bound, which must be as many as a plan uses at most. Raises Refused.

        All, or those of three pinned degrees; split: where operators may be split beyond these, all.
        """
        every, degrees = len(self.devices), ("pipeline", "data_parallel", "tensor_parallel")
        used = every if split else min(every, prod(self.pins[name] for name in degrees) or every)
        if part.number("devices", 1, every) != used:
            raise Refused(part.at("devices"), f"are not the {used} of a plan")
        return used

    def predecessors(self) -> list[set[int]]:
        """For each operator those whose tensors it reads."""
        found: list[set[int]] = [set() for _ in self.operators]
        for producer, readers in self.tensors:
            for reader in readers:
                found[reader].add(producer)
        return found


def read_problem(part: Part) -> Problem:
    """The problem of a certificate. Raises Refused."""
    operators = part.texts("operators")
    last = len(operators) - 1
    if len(set(operators)) < len(operators) or not operators:
        raise Refused(part.at("operators"), "is empty, or names an operator twice")
    tensors = []
    for position, (_, producer, readers) in enumerate(part.rows("tensors", str, int, list)):
        place = f"{part.at('tensors')}[{position}]"
        tensors.append((whole(producer, place, 0, last), [whole(each, place, 0, last) for each in readers]))
    pins = part.part("pins")
    problem = Problem(
        mini_batch=part.number("mini_batch", 1),
        flushes=part.text("regime", ("sync", "async")) == "sync",
        link_mode=part.text("link_mode", ("full", "half", "delay")),
        overlap=(part.number("overlap_numerator"), part.number("overlap_denominator", 1)),
        devices=part.rows("devices", int, int),
        levels=part.rows("levels", int, int),
        operators=operators,
        constants=set(part.numbers("constants", last)),
        tensors=tensors,
        pins={name: pins.number(name) for name in PINS},
        recompute=pins.text("recompute", ("", "none", "stage", "full", "selective")),
    )
    groups = [group for group, _ in problem.levels]
    if problem.overlap[0] > problem.overlap[1]:
        raise Refused(part.at("overlap_numerator"), "is above the denominator")
    if not groups or any(low < 1 or low >= high for low, high in pairwise([*groups, MOST + 1])):
        raise Refused(part.at("levels"), "do not go from small groups to large ones")
    if groups[-1] < len(problem.devices) or any(flag > 1 for _, flag in problem.levels):
        raise Refused(part.at("levels"), "do not span the devices")
    pins.end()
    part.end()
    require_order(problem.predecessors(), part.at("tensors"), "operators")
    return problem


def require_order(before: list[set[int]], place: str, what: str) -> list[int]:
    """An order in which each comes behind all that stand before it; raises Refused where they go in a circle."""
    left = [len(each) for each in before]
    after: list[list[int]] = [[] for _ in before]
    for position, each in enumerate(before):
        for other in each:
            after[other].append(position)
    order = [position for position, count in enumerate(left) if count == 0]
    for position in order:
        for other in after[position]:
            left[other] -= 1
            if left[other] == 0:
                order.append(other)
    if len(order) < len(before):
        raise Refused(place, f"some {what} wait for each other in a circle")
    return order
