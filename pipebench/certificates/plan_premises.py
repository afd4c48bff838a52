"""What a certificate takes as given of the plan: its stages with their whole-number costs, and its messages.

Imports the standard library and the form of certificates only. Whether these tables are those of a plan is not
asked here: `pipebench certify --against` and the tests ask it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from pipebench.certificates.document import Part, Refused, whole
from pipebench.certificates.problem_premises import Problem, require_order

Lane = tuple[int, ...]
"""The ids of the devices that work together, ascending."""
MOST_STAGES = 4096
MOST_TURNS = 1024
"""After which two stages meet on the same devices again."""


@dataclass(frozen=True)
class Stage:
    """A stage with the times of one micro-batch in ns, and bytes on each of its devices.

    lanes: the devices of each turn; micro-batch i is on lanes[i % len(lanes)].
    compute_ns: of each operator forward, backward and weight gradient.
    duration: by kind of task, F, B, its parts I and W, and R. update_ns: of the update, which without a flush is a
    part of B.
    held: bytes at all times. each_live, while_live: for each live micro-batch, and once while there is any.
    workspace: while a task runs.
    given: what stages at one position of several pipelines have in common.
    splits: whether its operators may be split over devices: then it states the sum of their times alone.
    """

    place: str
    operators: list[int]
    devices: Lane
    data_parallel: int
    tensor_parallel: int
    micro_batch: int
    in_flight: int
    lanes: list[Lane]
    duration: dict[str, int]
    compute_ns: list[list[int]]
    update_ns: int
    held: int
    each_live: int
    while_live: int
    workspace: int
    given: tuple[object, ...]
    splits: bool

    @property
    def turns(self) -> int:
        """Replicas that take micro-batches in turn."""
        return len(self.lanes)


def read_stage(problem: Problem, part: Part, pipelines: int) -> Stage:
    """A stage of a certificate (cost model, sections 4, 5 and 7). pipelines: that share the mini-batch."""
    last = len(problem.operators) - 1
    operators = part.numbers("operators", last)
    listed, replicas, width = part.numbers("devices", len(problem.devices) - 1), *_degrees(part)
    turns = replicas if part.text("replicas", ("split", "round_robin")) == "round_robin" else 1
    if not listed or len(set(listed)) < len(listed) or len(listed) != replicas * width:
        raise Refused(part.at("devices"), f"are not {replicas} x {width} different devices")
    each = len(listed) // turns
    size = part.number("micro_batch", 1)
    if problem.mini_batch % (pipelines * size) or replicas > turns * size:
        raise Refused(
            part.at("micro_batch"), f"{size} does not divide the samples of a pipeline, or is below the replicas"
        )
    computed = part.rows("compute_ns", int, int, int)
    if len(computed) != len(operators):
        raise Refused(part.at("compute_ns"), "does not have one row for each operator")
    again, update = part.text("recompute", ("none", "stage")), part.number("update_ns")
    joint = _joint_ns(part, again == "stage")
    forward, backward, weight = (sum(column) for column in zip(*computed, joint, strict=True))
    if again == "stage":
        backward += forward
    if not problem.flushes:  # each backward carries its share of the all-reduce
        backward -= -update * size * turns * pipelines // problem.mini_batch
        update = 0
    weight = min(weight, backward)
    memory = part.numbers("memory_bytes")
    if len(memory) != 4:
        raise Refused(part.at("memory_bytes"), "does not have four amounts")
    stage = Stage(
        place=part.place,
        operators=operators,
        devices=tuple(listed),
        data_parallel=replicas,
        tensor_parallel=width,
        micro_batch=size,
        in_flight=part.number("in_flight"),
        lanes=[tuple(sorted(listed[first : first + each])) for first in range(0, len(listed), each)],
        compute_ns=computed,
        update_ns=part.number("update_ns"),
        duration={"F": forward, "B": backward, "I": backward - weight, "W": weight, "R": update},
        held=memory[0],
        each_live=memory[1],
        while_live=memory[2],
        workspace=memory[3],
        given=(operators, computed, joint, again, size, replicas, width, turns, update),
        splits=each > 1 and not any(map(any, computed)),
    )
    part.end()
    return stage


def _joint_ns(part: Part, again: bool) -> list[int]:
    """What a stage adds to forward, backward and weight gradient of its operators.

    again: its backward has the forward in it. What the forward waits for an exchange is then taken off again.
    """
    place, listed = part.at("joint_ns"), part.raw("joint_ns")
    if not isinstance(listed, list) or len(listed) != 3:
        raise Refused(place, "does not have three times")
    forward = whole(listed[0], f"{place}[0]")
    return [forward, whole(listed[1], f"{place}[1]", -forward if again else 0), whole(listed[2], f"{place}[2]")]


def _degrees(part: Part) -> tuple[int, int]:
    return part.number("data_parallel", 1), part.number("tensor_parallel", 1)


@dataclass(frozen=True)
class Sending:
    """What one message takes: its ns, and (copy, level, way, ns) of what it takes of shared bandwidths."""

    ns: int
    ports: list[list[int]]


@dataclass(frozen=True)
class Plan:
    """The part `plan`.

    hops: what crosses between stages, (source, target, tensor). order: of stages, without bytes.
    sendings: by (kind, sender, receiver, tensor, turn), in the copy where it lasts longest. shift: by how much ids
    are above those of the copy before.
    hidden_ns: by (stage of F, other stage, other kind) what a pair of tasks saves.
    """

    stages: list[Stage]
    copies: int
    pipelines: int
    length: int
    order: list[tuple[int, int]]
    hops: list[tuple[int, int, int]]
    sendings: dict[tuple[str, int, int, int, int], Sending]
    shift: int
    hidden_ns: dict[tuple[int, int, str], int]

    def meeting(self, one: int, other: int) -> int:
        """After how many micro-batches two stages meet on the same devices again."""
        a, b = self.stages[one].turns, self.stages[other].turns
        return a * b // gcd(a, b)

    def lane(self, stage: int, number: int) -> Lane:
        """The devices of a micro-batch."""
        return self.stages[stage].lanes[number % self.stages[stage].turns]

    def mirrors(self, stage: int) -> Iterable[int]:
        """The stages with the same operators, one in each pipeline."""
        return range(stage % self.length, len(self.stages), self.length)


def read_plan(problem: Problem, part: Part) -> Plan:
    """The plan of a certificate, if it is a plan of the problem (cost model, sections 5 and 6). Raises Refused."""
    copies, pipelines = (part.number(name, 1, len(problem.devices)) for name in ("copies", "pipelines"))
    listed = part.parts("stages", MOST_STAGES)
    stages = [read_stage(problem, each, copies * pipelines) for each in listed]
    if not stages or len(stages) % pipelines or (pipelines > 1 and not problem.flushes):
        raise Refused(
            part.at("pipelines"), f"{len(stages)} stages are not {pipelines} whole pipelines, or do not flush"
        )
    length, last = len(stages) // pipelines, len(stages) - 1
    order = [(before, after) for before, after in part.rows("order_edges", int, int)]
    for before, after in order:
        if max(before, after) > last or before // length != after // length:
            raise Refused(part.at("order_edges"), f"{before} and {after} are not stages of one pipeline")
    relayed = part.text("routing", ("direct", "relay")) == "relay"
    hops = [
        hop for first in range(0, len(stages), length) for hop in _hops(problem, stages, first, length, relayed)
    ]
    each = len({device for stage in stages for device in stage.devices})
    plan = Plan(stages, copies, pipelines, length, order, sorted(hops), {}, each, {})
    before_each: list[set[int]] = [set() for _ in stages]
    for before, after in (*order, *((source, target) for source, target, _ in hops)):
        before_each[after].add(before)
    require_order(before_each, part.at("stages"), "stages")
    _require_places(problem, plan, part.at("stages"))
    _require_pins(problem, plan)
    _read_messages(problem, plan, part)
    _read_pairs(problem, plan, part)
    part.end()
    return plan


def _hops(
    problem: Problem, stages: list[Stage], first: int, length: int, relayed: bool
) -> set[tuple[int, int, int]]:
    """What crosses between the stages of one pipeline, every operator of which is in one of them."""
    holders: list[list[int]] = [[] for _ in problem.operators]
    for position in range(first, first + length):
        stage = stages[position]
        if stage.given != stages[position % length].given:
            raise Refused(stage.place, f"is not like stage {position % length}, which holds the same operators")
        if not stage.operators or len(set(stage.operators)) < len(stage.operators):
            raise Refused(f"{stage.place}.operators", "is empty, or holds an operator twice")
        for operator in stage.operators:
            holders[operator].append(position)
    for operator, found in enumerate(holders):
        if len(found) != 1 and not (found and operator in problem.constants):
            where = f"in stages {found}" if found else "in no stage"
            raise Refused(
                stages[first].place, f"operator {problem.operators[operator]!r} is {where} of its pipeline"
            )
    hops = set()
    for tensor, (producer, readers) in enumerate(problem.tensors):
        source = holders[producer][0]
        targets = {stage for reader in readers for stage in holders[reader]} - set(holders[producer])
        if relayed and targets:
            if min(targets) < source:
                raise Refused(stages[source].place, f"tensor {tensor} is relayed against the order of the stages")
            hops |= {(stage, stage + 1, tensor) for stage in range(source, max(targets))}
        else:
            hops |= {(source, target, tensor) for target in targets}
    return hops


def _require_places(problem: Problem, plan: Plan, place: str) -> None:
    """Stages share all of their devices or none, copies none; mirrors are on different ones of the same sets."""
    owner: dict[int, tuple[int, ...]] = {}
    for stage in plan.stages:
        for device in stage.devices:
            if owner.setdefault(device, (*stage.devices, -stage.turns)) != (*stage.devices, -stage.turns):
                raise Refused(f"{stage.place}.devices", f"shares device {device} with a stage of other devices")
    used = [device + copy * len(owner) for copy in range(plan.copies) for device in owner]
    if len(set(used)) < len(used) or max(used) >= len(problem.devices):
        raise Refused(
            place, f"{plan.copies} copies need devices twice, or more than the {len(problem.devices)} there are"
        )
    sets = {stage.devices for stage in plan.stages[: plan.length]}
    for position in range(len(plan.stages)):
        on = [plan.stages[mirror].devices for mirror in plan.mirrors(position)]
        if len(set(on)) < len(on) or plan.stages[position].devices not in sets:
            raise Refused(
                plan.stages[position].place, "stands where its mirror does, or where its pipeline does not"
            )
    for first in range(0, len(plan.stages), plan.length):
        if {stage.devices for stage in plan.stages[first : first + plan.length]} != sets:
            raise Refused(place, "its pipelines are not on the same devices")
    for source, target, _ in plan.hops:
        one, other = plan.stages[source], plan.stages[target]
        if max(one.turns, other.turns) > 1 and one.micro_batch != other.micro_batch:
            raise Refused(other.place, f"takes turns, and exchanges other micro-batches with stage {source}")
        if plan.meeting(source, target) > MOST_TURNS:
            raise Refused(other.place, f"meets stage {source} on the same devices after over {MOST_TURNS} turns")


def _require_pins(problem: Problem, plan: Plan) -> None:
    for position, stage in enumerate(plan.stages):
        first = position - position % plan.length
        here = [other.devices for other in plan.stages[first : first + plan.length]]
        sharers = stage.data_parallel // stage.turns
        found = {
            "tensor_parallel": stage.tensor_parallel,
            "data_parallel": stage.data_parallel * plan.copies * plan.pipelines,
            "pipeline": len(set(here)),
            "virtual_stages": here.count(stage.devices),
            "micro_batch": stage.micro_batch,
            "micro_batch_size": stage.micro_batch // sharers if stage.micro_batch % sharers == 0 else -1,
        }
        for name, pinned in problem.pins.items():
            if pinned not in (0, found[name]):
                raise Refused(stage.place, f"has {name} {found[name]}, the problem pins it to {pinned}")
        if problem.recompute and (problem.recompute == "stage") != (stage.given[3] == "stage"):
            raise Refused(stage.place, f"does not recompute as the problem pins it: {problem.recompute}")


def _read_messages(problem: Problem, plan: Plan, part: Part) -> None:
    """A row for each kind of message that goes from one set of devices to another, with the ports on its way.

    The ports are those of one copy of each kind (cost model, section 10): copies of a kind have the same levels
    between neighbouring devices.
    """
    kinds = _kinds_of_copies(problem, plan)
    wanted = {
        (kind, sender, receiver, tensor, turn)
        for source, target, tensor in plan.hops
        for kind, sender, receiver in (("F", source, target), ("B", target, source))
        for turn in range(plan.meeting(source, target))
        if plan.lane(sender, turn) != plan.lane(receiver, turn)
    }
    for position, (*key, ns, ports) in enumerate(part.rows("messages", str, int, int, int, int, int, list)):
        place, name = f"{part.at('messages')}[{position}]", (key[0], key[1], key[2], key[3], key[4])
        if name not in wanted:
            raise Refused(place, "is of no message of the plan, or stands twice")
        wanted.discard(name)
        ids = [device for end in name[1:3] for device in plan.lane(end, name[4])]
        expected = [
            [copy, level, way]
            for copy in kinds
            for level in _shared_levels(problem, min(ids) + copy * plan.shift, max(ids) + copy * plan.shift)
            for way in (0, 1)
            if ns > 0 and problem.link_mode != "delay"
        ]
        if (
            not all(isinstance(port, list) and len(port) == 4 for port in ports)
            or [[whole(value, place) for value in port[:3]] for port in ports] != expected
        ):
            raise Refused(place, "does not have the ports of the levels that it crosses")
        plan.sendings[name] = Sending(ns, [[*port[:3], whole(port[3], place)] for port in ports])
    for kind, sender, receiver, tensor, turn in wanted:
        what = f"lacks {kind} of tensor {tensor} from stage {sender} to stage {receiver}, turn {turn}"
        raise Refused(part.at("messages"), what)


def _kinds_of_copies(problem: Problem, plan: Plan) -> list[int]:
    """The first copy of each kind, ascending."""
    used = sorted({device for stage in plan.stages for device in stage.devices})
    found: dict[tuple[bool, ...], int] = {}
    for copy in range(plan.copies):
        ids = [device + copy * plan.shift for device in used]
        kind = tuple(
            one // group != other // group for group, _ in problem.levels[:-1] for one, other in pairwise(ids)
        )
        found.setdefault(kind, copy)
    return list(found.values())


def _shared_levels(problem: Problem, lowest: int, highest: int) -> list[int]:
    """Of the levels up to the innermost that holds both devices those that have a shared bandwidth."""
    last = len(problem.levels) - 1
    crossed = next(
        (at for at, (group, _) in enumerate(problem.levels) if lowest // group == highest // group), last
    )
    return [at for at in range(crossed + 1) if problem.levels[at][1]]


def _read_pairs(problem: Problem, plan: Plan, part: Part) -> None:
    numerator, denominator = problem.overlap
    for position, (first, other, kind, ns) in enumerate(part.rows("hidden_ns", int, int, str, int)):
        place = f"{part.at('hidden_ns')}[{position}]"
        if (
            max(first, other) >= len(plan.stages)
            or kind not in ("B", "I")
            or (first, other, kind) in plan.hidden_ns
        ):
            raise Refused(place, "is of no pair of tasks, or stands twice")
        least = min(plan.stages[first].duration["F"], plan.stages[other].duration[kind])
        if 2 * abs(ns * denominator - least * numerator) > denominator:
            raise Refused(place, f"hides {ns} ns: not the overlap's share of {least} ns")
        plan.hidden_ns[first, other, kind] = ns
