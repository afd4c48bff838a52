"""Whether a proof of a lower bound on time holds. Nothing of pipebench is used: the file can run alone.

A proof is a document of whole numbers (`pipebench.bounds.proof.TimeProof.document`):

claimed_ns: no plan takes less, says the proof.
devices, memory_bytes, every_ns: the devices of a plan, the memory of all of them together, and the ns that each
device runs once a mini-batch whatever it holds.
tables: lists of rows. A row is a way to run an operator: its devices, compute_ns, crossing_ns, update_ns,
forward_ns, round_ns, state_bytes, saved_bytes, own_byte_ns and live_bytes (`pipebench.bounds.choices.COLUMNS`).
operators: for each operator the number of its table.
edges: pairs (before, behind) of operators.
visits: pairs (operator, kind) in the order in which operators are counted. Kind 0: an operator of the path, with
all that it costs. Kind 1: another operator, without what kind 2 counts. Kind 2: its devices, update and state.
waits: 1 where devices wait for their first operator. Where it is 0 there is no kind 2, and kind 1 counts all.
share, parts: share / parts of the time of all tasks counts, and the rest of that of forwards and input gradients.
byte, byte_parts: the price of a byte is byte / byte_parts ns.
instant: instant / parts of it is for live_bytes at one instant, the rest for bytes as long as they are held.
step_bytes, points: saved bytes are looked at from 0 to points x step_bytes, in steps.

The argument is that of docs/explanation/cost-model.md, section 11. All arithmetic is of whole numbers of any size.
"""

from collections.abc import Mapping, Sequence
from typing import Any

DEVICES, COMPUTE, CROSSING, UPDATE, FORWARD, ROUND, STATE, SAVED, OWN, LIVE = range(10)
PLACED, SAVES, STARTED = range(3)
MOST_PLACES = 32
"""More devices are counted in units of several, rounded up."""
Row = tuple[int, int, int, int, int]
"""Devices in units, cost, cost for each device that waits, saved bytes, cost for each saved byte before it."""


def flaw_of_bound(proof: Mapping[str, Any]) -> str:
    """What is wrong with a proof; '' where it holds: no plan that the tables describe takes less than is claimed.

    Raises KeyError, TypeError, ValueError or IndexError for what is no proof at all.
    """
    return _flaw_of_numbers(proof) or _flaw_of_order(proof) or _flaw_of_sum(proof)


def _flaw_of_numbers(proof: Mapping[str, Any]) -> str:
    names = "claimed_ns", "devices", "memory_bytes", "every_ns", "waits", "share", "parts", "byte", "byte_parts"
    numbers = [proof[name] for name in (*names, "instant", "step_bytes", "points")]
    numbers += [number for table in proof["tables"] for row in table for number in row]
    if any(type(number) is not int or number < 0 for number in numbers):
        return "a number is not whole or below zero"
    if min(proof["devices"], proof["parts"], proof["byte_parts"], proof["step_bytes"], proof["points"]) < 1:
        return "there are no devices, no parts or no steps"
    if max(proof["share"], proof["instant"]) > proof["parts"]:
        return "the share is more than the whole"
    if any(len(row) != LIVE + 1 for table in proof["tables"] for row in table):
        return "a row has not as many numbers as there are resources"
    if not all(proof["tables"]):
        return "an operator has no way to run"
    return ""


def _flaw_of_order(proof: Mapping[str, Any]) -> str:
    """Every operator counts once, and the order of visits is one that the edges allow."""
    count = len(proof["operators"])
    before, flaw = _ancestors(count, proof["edges"])
    if flaw:
        return flaw
    expected = [[PLACED], sorted([SAVES, STARTED]) if proof["waits"] else [SAVES]]
    kinds: list[list[int]] = [[] for _ in range(count)]
    path: list[int] = []
    for operator, kind in proof["visits"]:
        kinds[operator].append(kind)
        if kind == PLACED:
            if path and not before[operator] >> path[-1] & 1:
                return f"operator {operator} is on the path and not behind operator {path[-1]}"
            path.append(operator)
        elif kind == STARTED and not all(before[operator] >> earlier & 1 for earlier in path):
            return f"devices wait for an operator that is not before operator {operator}"
    if any(sorted(each) not in expected for each in kinds):
        return "an operator counts twice or not at all"
    if not _have_one_end(proof, before):
        return "live bytes are of operators that no one operator without successors is behind"
    behind: list[int] = []
    for operator, kind in reversed(proof["visits"]):
        if kind == SAVES and not all(before[later] >> operator & 1 for later in behind):
            return f"operator {operator} saves for an operator that is not behind it"
        if kind == PLACED:
            behind.append(operator)
    return ""


def _have_one_end(proof: Mapping[str, Any], before: Sequence[int]) -> bool:
    """Whether all that have live bytes are before one operator without successors, or are that one."""
    holds = [any(row[LIVE] for row in table) for table in proof["tables"]]
    live = sum(1 << operator for operator, table in enumerate(proof["operators"]) if holds[table])
    inner = 0
    for each in before:
        inner |= each
    ends = (operator for operator in range(len(before)) if not inner >> operator & 1)
    return not live or any(live & ~(before[end] | 1 << end) == 0 for end in ends)


def _ancestors(count: int, edges: Sequence[tuple[int, int]]) -> tuple[list[int], str]:
    """For each operator the set of those before it, as bits; and what is wrong with the edges."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for first, second in edges:
        if not (0 <= first < count and 0 <= second < count):
            return [], "an edge names an operator that is not there"
        into[second].append(first)
        out[first].append(second)
    missing = [len(each) for each in into]
    ready = [operator for operator in range(count) if not missing[operator]]
    before = [0] * count
    for operator in ready:
        for other in into[operator]:
            before[operator] |= before[other] | 1 << other
        for other in out[operator]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return before, "" if len(ready) == count else "the edges have a cycle"


def _flaw_of_sum(proof: Mapping[str, Any]) -> str:
    """In one ns less than is claimed the devices have less than all operators need."""
    time = proof["claimed_ns"] - 1
    if time < 0:
        return ""
    if time == 0:  # the price of a byte is by the time: without any, time alone counts, on any scale
        proof = {**proof, "byte": 0}
    scale = max(time, 1)
    needed = _least(proof, scale)
    have = proof["devices"] * (time - proof["every_ns"]) * proof["parts"] * proof["byte_parts"] * scale
    have += proof["parts"] * proof["byte"] * scale * proof["memory_bytes"]
    return "" if needed > have else f"{time} ns suffice for what the operators need"


def _least(proof: Mapping[str, Any], time: int) -> int:
    """The least sum of all choices, or less; in ns / (parts x byte_parts x time)."""
    unit = -(-proof["devices"] // MOST_PLACES)
    places = -(-proof["devices"] // unit) if proof["waits"] else 0
    points = proof["points"] if proof["byte"] else 0
    step = proof["step_bytes"]
    made: dict[tuple[int, int], list[Row]] = {}
    after = [[0] * (points + 1) for _ in range(places + 1)]
    for operator, kind in reversed(proof["visits"]):
        key = proof["operators"][operator], kind
        if key not in made:
            made[key] = _useful([_row(proof, each, kind, time, unit) for each in proof["tables"][key[0]]])
        here = [[0] * (points + 1) for _ in range(places + 1)]
        moved: dict[tuple[int, int], list[int]] = {}
        for started in range(places + 1):
            least: dict[tuple[int, int, int], int] = {}
            for devices, cost, wait, saved, slope in made[key]:
                held = min(started + devices, places)
                sum_ns = cost + wait * max(0, proof["devices"] - held * unit)
                alike = held, saved, slope
                least[alike] = min(sum_ns, least.get(alike, sum_ns))
            sums: list[list[int]] = []
            for (held, saved, slope), sum_ns in least.items():
                if (held, saved) not in moved:
                    moved[held, saved] = _moved(after[held], saved, step)
                each = slope * step
                sums.append([sum_ns + each * point + ns for point, ns in enumerate(moved[held, saved])])
            here[started] = list(map(min, *sums)) if len(sums) > 1 else sums[0]
        after = here
    return after[0][0]


def _moved(line: list[int], saved: int, step: int) -> list[int]:
    """The values `saved` bytes behind each point: between two rounded down, behind the last that of the last."""
    at, rest = divmod(saved, step)
    pairs = zip(line[at:], line[at + 1 :], strict=False)
    between = [low + (high - low) * rest // step for low, high in pairs] if rest else line[at:-1]
    return between + line[-1:] * (len(line) - len(between))


def _row(proof: Mapping[str, Any], row: Sequence[int], kind: int, time: int, unit: int) -> Row:
    alone = kind == PLACED or not proof["waits"]
    share, rest = proof["share"], proof["parts"] - proof["share"]
    instant, lasting = proof["instant"], proof["parts"] - proof["instant"]
    ns = byte_ns = 0
    if kind != STARTED:
        ns += share * row[COMPUTE] + rest * row[CROSSING]
        byte_ns += lasting * row[OWN] + instant * row[LIVE] * time
    if kind == STARTED or alone:
        ns += share * row[UPDATE]
        byte_ns += proof["parts"] * row[STATE] * time
    cost = ns * proof["byte_parts"] * time + proof["byte"] * byte_ns
    counts = proof["waits"] and kind != SAVES
    wait = (share * row[FORWARD] + rest * row[ROUND]) * proof["byte_parts"] * time
    return (
        -(-row[DEVICES] // unit) if counts else 0,
        cost,
        wait if counts and kind == PLACED else 0,
        row[SAVED] if proof["byte"] and kind != STARTED else 0,
        lasting * proof["byte"] * row[ROUND] if proof["byte"] and kind == PLACED else 0,
    )


def _useful(rows: list[Row]) -> list[Row]:
    """Those than which no other one is better or as good in everything: more devices, or less of anything else."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda each: (-each[0], *each[1:])):
        if not any(
            other[0] >= row[0] and all(a <= b for a, b in zip(other[1:], row[1:], strict=True)) for other in kept
        ):
            kept.append(row)
    return kept
