"""The half of a certificate that proves a bound: tables of what operators cost at least, and a sum over them.

Imports the standard library and the certificate's own form and premises only. `KINDS` names the proofs that there
are (cost model, section 11); a new one is a function from the problem and its part of the certificate to ns.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.certificates.bound_check import flaw_of_bound
from pipebench.certificates.document import MOST_DIGITS, Part, Refused, whole
from pipebench.certificates.group_check import groups_bound
from pipebench.certificates.layer_check import layers_bound
from pipebench.certificates.plan_premises import Plan
from pipebench.certificates.problem_premises import Problem, require_order

SHARED_FIELDS = {
    *("claimed_ns", "devices", "memory_bytes", "every_ns", "tables", "operators", "edges", "visits", "waits"),
    *("share", "parts", "byte", "byte_parts", "instant", "step_bytes", "points"),
}
"""Of a proof from what all operators share (`bound_check`)."""
COLUMNS = {
    "work": ("busy",),
    "operator": ("busy", "update"),
    "path": ("busy", "update", "forward", "once", "crossing", "busy_crossing"),
}
"""The ns of a choice by kind.

busy: that a micro-batch adds to its lane, forward and backward; busy_crossing: without the weight gradient.
update: of its weights, for a mini-batch.
forward, once (forward and backward), crossing (forward and input gradient): of one micro-batch that runs alone."""


@dataclass(frozen=True)
class Choice:
    """A way to run an operator under a cut of the mini-batch. devices: of one replica. ns: by name of COLUMNS."""

    devices: int
    runs: int
    replicas: int
    turns: int
    ns: dict[str, int]

    def work_ns(self) -> int:
        """Device time of a mini-batch."""
        return self.runs * (self.replicas if self.turns == 1 else 1) * self.devices * self.ns["busy"]

    def lane_ns(self, flushes: bool, column: str) -> int:
        """Of the lane that runs most of the micro-batches."""
        if flushes:
            return -(-self.runs // self.turns) * self.ns[column]
        return -(-self.runs * self.ns[column] // self.turns)


def _table(problem: Problem, part: Part) -> list[list[Choice]]:
    """For each operator its choices, of which the least count."""
    kind = part.text("kind")
    columns = part.texts("columns")
    if columns != list(COLUMNS[kind]):
        raise Refused(part.at("columns"), f"are {', '.join(columns)}, not {', '.join(COLUMNS[kind])}")
    table: list[list[Choice]] = [[] for _ in problem.operators]
    wanted = (int, str, str, *(int,) * (5 + len(columns)))
    for position, row in enumerate(part.rows("choices", *wanted)):
        place = f"{part.at('choices')}[{position}]"
        operator, _, _, devices, runs, samples, replicas, turns, *ns = row
        whole(operator, place, 0, len(table) - 1)
        covered = runs * samples * (replicas if turns == 1 else 1)
        if min(devices, runs, samples, replicas, turns) < 1 or covered < problem.mini_batch:
            raise Refused(place, f"runs {covered} of {problem.mini_batch} samples")
        if devices * replicas > len(problem.devices):
            raise Refused(place, f"takes {devices * replicas} of {len(problem.devices)} devices")
        table[operator].append(Choice(devices, runs, replicas, turns, dict(zip(columns, ns, strict=True))))
    for operator, choices in enumerate(table):
        if not choices:
            raise Refused(part.at("choices"), f"operator {problem.operators[operator]!r} has no choice")
    return table


def work_bound(problem: Problem, part: Part) -> int:
    """All device time, shared evenly, and what every stage adds to its lane."""
    devices, every = problem.devices_of_bound(part, part.text("over") == ALL), part.number("every_stage_ns")
    total = sum(min(choice.work_ns() for choice in choices) for choices in _table(problem, part))
    return -(-total // devices) + every


def operator_bound(problem: Problem, part: Part) -> int:
    """The operator whose lane is busy longest."""
    lanes = [
        min(choice.lane_ns(problem.flushes, "busy") + choice.ns["update"] for choice in choices)
        for choices in _table(problem, part)
    ]
    return _at(problem, part, lanes)


def path_bound(problem: Problem, part: Part) -> int:
    """The longest path to an operator and back, with all micro-batches of that operator on it."""
    if not problem.flushes:
        raise Refused(part.at("kind"), "is of problems that flush")
    every, table = part.number("every_stage_ns"), _table(problem, part)
    least = {name: [min(each.ns[name] for each in choices) for choices in table] for name in COLUMNS["path"]}
    busy, once, crossing = least["busy"], least["once"], least["crossing"]
    above = _before_each(problem, _lesser(least["busy_crossing"], busy), busy)
    above_forward = _before_each(problem, _lesser(least["forward"], busy), _lesser(least["forward"], busy))
    alone = _before_each(problem, crossing, once)
    longest = [
        max(
            alone[operator] + crossing[operator] + every,
            min(
                max(
                    above_forward[operator] + each.lane_ns(True, "busy") + each.ns["update"],
                    above[operator] + each.lane_ns(True, "busy_crossing") + every,
                )
                for each in choices
            ),
        )
        for operator, choices in enumerate(table)
    ]
    return _at(problem, part, longest)


WHOLE, ALL = "plans of whole operators", "all plans"
"""What a bound is over: plans that split no operator, or these as well."""
MOST_POINTS = 64
"""Of the grid on which saved bytes are counted."""


def shared_bound(problem: Problem, part: Part) -> int:
    """What all operators share: the time and the memory of all devices (`bound_check` has the argument)."""
    proof = part.part("proof")
    if set(proof.value) != SHARED_FIELDS:
        raise Refused(proof.place, f"has not the fields {', '.join(sorted(SHARED_FIELDS))}")
    for name in ("tables", "visits"):
        _require_rows(proof.raw(name), proof.at(name), 3 if name == "tables" else 2)
    if proof.rows("edges", int, int) != sorted(
        [b, a] for a, each in enumerate(problem.predecessors()) for b in each
    ):
        raise Refused(proof.at("edges"), "are not those between the operators of the problem")
    tables = proof.numbers("operators", len(proof.raw("tables")) - 1)
    if len(tables) != len(problem.operators):
        raise Refused(proof.at("operators"), f"are {len(tables)} of {len(problem.operators)}")
    problem.devices_of_bound(proof)
    if proof.number("waits", 0, 1) and not problem.flushes:
        raise Refused(proof.at("waits"), "are those of devices that never wait for each other")
    proof.number("points", 1, MOST_POINTS)
    memory = sum(sorted((memory for memory, _ in problem.devices), reverse=True)[: proof.value["devices"]])
    if proof.number("memory_bytes") < memory:
        raise Refused(proof.at("memory_bytes"), f"are less than the {memory} of so many devices")
    try:
        flaw = flaw_of_bound(proof.value)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Refused(proof.place, f"is no proof: {type(error).__name__} {error}") from None
    if flaw:
        raise Refused(proof.place, flaw)
    return proof.number("claimed_ns")


def _require_rows(value: object, place: str, deep: int) -> None:
    """Refuse what is not a list of whole numbers, `deep` levels deep."""
    if deep == 0:
        whole(value, place, 0, 10**MOST_DIGITS - 1)
        return
    if not isinstance(value, list):
        raise Refused(place, "is no list")
    for position, each in enumerate(value):
        _require_rows(each, f"{place}[{position}]", deep - 1)


def _lesser(one: list[int], other: list[int]) -> list[int]:
    return [min(pair) for pair in zip(one, other, strict=True)]


def _before_each(problem: Problem, lengths: list[int], first: list[int]) -> list[int]:
    """For each operator the longest sum along a path to it, without itself; first: of the one that begins it."""
    before = problem.predecessors()
    above = [0] * len(lengths)
    for operator in require_order(before, "problem", "operators"):
        for other in before[operator]:
            above[operator] = max(above[operator], above[other] + lengths[other], first[other])
    return above


def _at(problem: Problem, part: Part, found: list[int]) -> int:
    """The largest, which the operator that the certificate names must have."""
    named = part.number("operator", 0, len(problem.operators) - 1)
    if found[named] != max(found):
        raise Refused(
            part.at("operator"), f"is {named}, where the bound is {found[named]} ns, not {max(found)} ns"
        )
    return found[named]


def links_bound(problem: Problem, part: Part) -> int:
    """Operators that no link can part, as wholes on devices (cost model, section 11, "Links").

    In one ns less than is claimed the tensors that keep a link busy longer stay on one device, with all that makes
    and reads them. Devices without the bundle of `first` wait for what is before theirs; what they wait is taken
    off every device and off that bundle. `threshold_ns` is that of Martello and Toth's bound on bins.
    """
    proof, count = part.part("proof"), len(problem.operators)
    if problem.pins["data_parallel"] != 1 or problem.pins["tensor_parallel"] > 1:
        raise Refused(proof.place, "is of problems whose stages have one replica on one device")
    claimed = proof.number("claimed_ns", 1)
    devices, every = problem.devices_of_bound(proof), proof.number("every_ns")
    whole_loads, first = proof.number("whole", 0, 1), proof.number("first", 0, count - 1)
    loads, forward, back = (_one_each(problem, proof, name) for name in ("loads_ns", "forward_ns", "back_ns"))
    waits = problem.flushes and not problem.overlap[0]
    for name, found, counts in (("forward_ns", forward, waits), ("back_ns", back, waits and not whole_loads)):
        if (any(found) and not counts) or any(found[operator] for operator in problem.constants):
            raise Refused(proof.at(name), "are those of operators that nobody waits for")
    bundle = _bundles(problem, proof, claimed - 1)
    held = [0] * count
    for operator, ns in enumerate(loads):
        held[bundle[operator]] += ns
    above, behind = (_before_each(problem, lengths, lengths) for lengths in (forward, back))
    others = [each for each in range(count) if loads[each] and bundle[each] != bundle[first]]
    waited = min((above[each] for each in others), default=0) + min((behind[each] for each in others), default=0)
    waited = min(waited, held[bundle[first]])
    held[bundle[first]] -= waited
    room = claimed - 1 - every - waited
    if max(held) <= room and _devices_of(held, room, proof) <= devices:
        raise Refused(proof.place, f"{claimed - 1} ns suffice for what the devices hold")
    proof.number("threshold_ns")
    return claimed


def _one_each(problem: Problem, proof: Part, name: str) -> list[int]:
    found = proof.numbers(name)
    if len(found) != len(problem.operators):
        raise Refused(proof.at(name), f"are {len(found)} of {len(problem.operators)}")
    return found


def _bundles(problem: Problem, proof: Part, time_ns: int) -> list[int]:
    """For each operator an operator of its bundle, the same one for all of a bundle."""
    of, before = list(range(len(problem.operators))), problem.predecessors()
    links = proof.rows("links", int, int, int)
    if links and problem.link_mode == "delay":
        raise Refused(proof.at("links"), "are not there, where a link carries any number of messages")
    for position, (producer, reader, ns) in enumerate(links):
        if reader >= len(of) or producer not in before[reader] or producer in problem.constants:
            raise Refused(f"{proof.at('links')}[{position}]", "is no tensor that one operator sends to another")
        if ns > time_ns and of[producer] != of[reader]:
            joined, other = of[producer], of[reader]
            of = [joined if each == other else each for each in of]
    return of


def _devices_of(held: list[int], room: int, proof: Part) -> int:
    """At least so many devices hold all of it; none of the loads is above the room."""
    threshold = proof.number("threshold_ns", 0, room // 2)
    loads = [each for each in held if each]
    large = [each for each in loads if 2 * each > room]
    small = sum(each for each in loads if threshold <= each and 2 * each <= room)
    beside = sum(room - each for each in large if each <= room - threshold)
    return len(large) + (-(-max(0, small - beside) // room) if room else 0)


def divided_bound(problem: Problem, part: Part) -> int:
    """Operators divided among groups of devices (`group_check`), by one pipeline on each; and by several.

    In sync several pipelines may share device sets: then each operator has replicas, and a proof from what all
    share says the same of these plans.
    """
    claimed = groups_bound(problem, part)
    pinned = problem.pins["data_parallel"] == 1
    if problem.flushes and not pinned and min(len(problem.devices), problem.mini_batch) > 1:
        several = part.part("several")
        if shared_bound(problem, several) != claimed:
            raise Refused(several.place, f"does not prove the {claimed} ns of one pipeline on its devices")
        several.end()
    return claimed


KINDS: dict[str, Callable[[Problem, Part], int]] = {
    "work": work_bound,
    "operator": operator_bound,
    "path": path_bound,
    "reduce": shared_bound,
    "fill": shared_bound,
    "memory": shared_bound,
    "links": links_bound,
    "groups": divided_bound,
    "layers": layers_bound,
}


def check_bound(problem: Problem, part: Part) -> int:
    """The ns that no plan of the problem beats, as this proof says. Raises Refused."""
    kind = part.text("kind", tuple(KINDS))
    part.text("over", (WHOLE, ALL) if kind in COLUMNS else (WHOLE,))
    bound = KINDS[kind](problem, part)
    part.end()
    return bound


def require_agreement(problem: Problem, plan: Plan, part: Part) -> None:
    """Raises Refused where a proof contradicts the costs of a plan of the problem, as far as sums show it."""
    kind = part.text("kind")
    if kind == "work":  # tables of the others leave out choices that take less time of devices, and more of a lane
        _require_no_less(problem, plan, part)
    if kind != "operator":
        _require_every_stage(plan, part, kind)


def _require_every_stage(plan: Plan, part: Part, kind: str) -> None:
    """What every stage is said to run once a mini-batch, each stage of the plan runs, too."""
    where, name = (part, "every_stage_ns") if kind in COLUMNS else (part.part("proof"), "every_ns")
    every, least = where.number(name), min(stage.update_ns for stage in plan.stages)
    if every > least:
        raise Refused(where.at(name), f"is {every} ns, a stage of the plan runs {least} ns for its update")


def _require_no_less(problem: Problem, plan: Plan, part: Part) -> None:
    """The plan has no operator that takes less time of devices than its least choice."""
    table = _table(problem, part)
    for stage in plan.stages[: plan.length]:
        devices = stage.data_parallel // stage.turns * stage.tensor_parallel
        for operator, (forward, backward, _) in zip(stage.operators, stage.compute_ns, strict=True):
            spent = problem.mini_batch // stage.micro_batch * devices * (forward + backward)
            least = min(choice.work_ns() for choice in table[operator])
            if spent < least and not stage.splits:
                name = problem.operators[operator]
                words = f"say that operator {name!r} takes {least} ns of devices, in the plan it takes {spent} ns"
                raise Refused(part.at("choices"), words)
