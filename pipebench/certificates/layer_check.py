"""Whether operators that are alike go as wholes on the devices in a time (cost model, section 11, "Layers").

Imports the standard library and the certificate's own form and premises only. A proof has tables of what an
operator of each class takes in a stage on a group of devices (`bounds.by_group.layer_tables`). In each case
operators of each class count something. In one ns less than is claimed no group holds operators that count more
than its devices do, and all operators together count more than all devices.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from pipebench.certificates.document import MOST_DIGITS, Part, Refused, whole
from pipebench.certificates.group_check import MOST_SAMPLES, divisors
from pipebench.certificates.group_rows import Effort
from pipebench.certificates.problem_premises import Problem, require_order

MOST_DEVICES, MOST_CLASSES = 128, 32
Row = list[int]
"""ns of a mini-batch, bytes of state, bytes saved of one micro-batch: on each device of the first replica."""


@dataclass(frozen=True)
class Classes:
    """What all cases share.

    counts: operators of each class. at_once: of each class whether all its operators have a micro-batch live at
    the instant. devices: of a plan. room: ns in which a device can run something. memory: bytes of a device.
    """

    problem: Problem
    counts: list[int]
    at_once: list[bool]
    devices: int
    room: int
    memory: int
    effort: Effort = field(default_factory=Effort)


def layers_bound(problem: Problem, part: Part) -> int:
    """What no plan is below. Raises Refused."""
    proof = part.part("proof")
    if problem.mini_batch > MOST_SAMPLES:
        raise Refused(proof.place, f"is of mini-batches of up to {MOST_SAMPLES} samples")
    if len({memory for memory, _ in problem.devices}) > 1:
        raise Refused(proof.place, "is of problems whose devices have as much memory each")
    claimed = proof.number("claimed_ns", 1)
    classes = _classes(problem, proof, claimed - 1)
    expected = [
        (pipelines, size)
        for pipelines in (divisors(problem.mini_batch) if problem.flushes else [1])
        if pipelines <= (1 if problem.pins["data_parallel"] == 1 else classes.devices)
        for size in (0, *(() if problem.flushes else divisors(problem.mini_batch)))
    ]
    cases = proof.parts("cases")
    found = [(each.number("pipelines", 1), each.number("micro_batch")) for each in cases]
    if found != expected:
        raise Refused(proof.at("cases"), "are not those of all pipelines and micro-batches")
    for case, (pipelines, _) in zip(cases, expected, strict=True):
        _require_too_short(classes, case, pipelines, claimed - 1)
        case.end()
    proof.end()
    return claimed


def _classes(problem: Problem, proof: Part, time: int) -> Classes:
    before = problem.predecessors()
    order = require_order(before, "problem", "operators")
    last = proof.number("last", 0, len(problem.operators) - 1)
    if any(last in each for each in before):
        raise Refused(proof.at("last"), "is an operator that another one reads from")
    at_once = {last}
    for operator in reversed(order):
        at_once |= before[operator] if operator in at_once else set()
    listed, place = proof.raw("classes"), proof.at("classes")
    if not isinstance(listed, list) or not listed or not all(isinstance(each, list) and each for each in listed):
        raise Refused(place, "are not lists of operators")
    if len(listed) > MOST_CLASSES:
        raise Refused(place, f"are more than {MOST_CLASSES}")
    every = [whole(each, place, 0, len(problem.operators) - 1) for alike in listed for each in alike]
    if len(set(every)) < len(every) or problem.constants & set(every):
        raise Refused(place, "are not of different operators that need the input")
    devices = problem.devices_of_bound(proof)
    if devices > MOST_DEVICES:
        raise Refused(proof.at("devices"), f"are more than {MOST_DEVICES}")
    memory = proof.number("memory_bytes", 1)
    if memory != problem.devices[0][0]:
        raise Refused(proof.at("memory_bytes"), "is not that of a device")
    return Classes(
        problem=problem,
        counts=[len(each) for each in listed],
        at_once=[set(each) <= at_once for each in listed],
        devices=devices,
        room=time - proof.number("every_ns"),
        memory=memory,
    )


def _require_too_short(classes: Classes, case: Part, pipelines: int, time: int) -> None:
    """Raises Refused unless the weights show that a time is too short for the plans of a case."""
    weights, of_a_device = case.numbers("weights"), case.number("of_a_device")
    if len(weights) != len(classes.counts):
        raise Refused(case.at("weights"), f"are not {len(classes.counts)}, one of each class")
    if (
        pipelines * sum(a * b for a, b in zip(weights, classes.counts, strict=True))
        <= classes.devices * of_a_device
    ):
        raise Refused(case.place, f"counts no more than the devices: {time} ns may suffice")
    expected = [(count, turns) for count in range(1, classes.devices + 1) for turns in divisors(count)]
    groups = case.parts("groups")
    if [(group.number("devices"), group.number("turns")) for group in groups] != expected:
        raise Refused(case.at("groups"), f"are not those of all sizes and turns on {classes.devices} devices")
    for group, (count, _) in zip(groups, expected, strict=True):
        rows = _rows(classes, group)
        prices = [(a, b) for a, b in group.rows("prices", int, int)]
        if not prices:
            raise Refused(group.at("prices"), "are none")
        classes.effort.spend(len(prices) * sum(1 + len(each) for each in rows))
        have = [a * classes.room + b * pipelines * classes.memory for a, b in prices]
        costs = [
            [
                min((a * ns + b * (pipelines * state + saved) for ns, state, saved in each), default=-1)
                for each in rows
            ]
            for a, b in prices
        ]
        if min(have) >= 0 and Load(classes, weights, costs).may_exceed(count * of_a_device, have):
            raise Refused(group.place, f"holds more than counts in {time} ns")
        group.end()


def _rows(classes: Classes, group: Part) -> list[list[Row]]:
    """Of each class the rows of one operator. Raises Refused."""
    listed, place = group.raw("rows"), group.at("rows")
    if not isinstance(listed, list) or len(listed) != len(classes.counts):
        raise Refused(place, f"are not {len(classes.counts)} lists, one of each class")
    for rows, at_once in zip(listed, classes.at_once, strict=True):
        if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 3 for row in rows):
            raise Refused(place, "has a list that is not of rows of three numbers")
        for row in rows:
            for number in row:
                whole(number, place, 0, 10**MOST_DIGITS - 1)
            if row[2] and not at_once:
                raise Refused(place, "has what an operator saves that may have nothing live at the instant")
    return listed


class Load:
    """What a group may hold.

    weights: what an operator of each class counts. costs: of each price, of an operator of each class; below 0
    where the group cannot hold one.
    """

    def __init__(self, classes: Classes, weights: list[int], costs: list[list[int]]) -> None:
        self._counts, self._weights, self._costs, self._effort = classes.counts, weights, costs, classes.effort
        self._held = [min(each) >= 0 for each in zip(*costs, strict=True)]
        numbers = range(len(weights))
        self._dearest = [
            sorted((each for each in numbers if self._held[each]), key=lambda each: self._rank(each, here[each]))
            for here in costs
        ]

    def _rank(self, each: int, cost: int) -> Fraction:
        """Smaller where a unit of cost counts more."""
        return Fraction(-self._weights[each], cost) if cost else Fraction(-(10**MOST_DIGITS))

    def may_exceed(self, limit: int, have: list[int], first: int = 0) -> bool:
        """Whether operators of the classes from `first` on may count more than a limit and cost what there is."""
        self._effort.spend(len(have) * len(self._counts))
        if limit < 0:
            return True
        if any(self._at_most(here, each, first) <= limit for here, each in enumerate(have)):
            return False
        if first == len(self._counts):
            return False
        most = self._counts[first] if self._held[first] else 0
        for cost, some in zip(self._costs, have, strict=True):
            most = min(most, some // cost[first]) if cost[first] > 0 else most
        numbers = [most] if first + 1 == len(self._counts) else range(most, -1, -1)
        return any(
            self.may_exceed(
                limit - number * self._weights[first],
                [some - number * max(0, cost[first]) for cost, some in zip(self._costs, have, strict=True)],
                first + 1,
            )
            for number in numbers
        )

    def _at_most(self, price: int, have: int, first: int) -> int:
        """What the classes from `first` on count at most at one price: the best first, the last one in part."""
        counted = 0
        for each in self._dearest[price]:
            if each >= first:
                cost = self._costs[price][each]
                if self._counts[each] * cost > have:
                    return counted + self._weights[each] * have // cost
                have -= self._counts[each] * cost
                counted += self._counts[each] * self._weights[each]
        return counted
