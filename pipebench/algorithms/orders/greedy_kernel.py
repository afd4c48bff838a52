"""Greedy orders in compiled code."""

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.algorithms.orders.tables import (
    AHEAD,
    ANY,
    BACK,
    CONTENDED,
    LINK,
    NS,
    RECEIVER,
    SENDER,
    WEIGHT,
    Waits,
)
from pipebench.costs.quantise import IntArray

WAITS = -1
"""Instead of a kind of task."""


@kernel
def run(
    tasks: IntArray,
    free: IntArray,
    peak: IntArray,
    room: IntArray,
    most_bytes: IntArray,
    most_ns: int,
    count: int,
    caps: IntArray,
    duration: IntArray,
    lane_of: IntArray,
    memory: IntArray,
    waits: Waits,
) -> int:
    """Run `count` micro-batches greedily; return how many tasks ran: fewer than there are where a limit is passed.

    Of all that can start first the smaller kind goes first, then the smaller micro-batch, then the later stage.
    tasks: (kind, stage, micro-batch) in the order in which they start; not written where it has no rows.
    free: by lane, when its last task ends. peak: bytes by lane; without micro-batches at first. room: by lane,
    bytes for which forwards wait. most_bytes: by lane, a limit. most_ns: of the end of each task that must follow.
    duration: shape (kinds, stages).
    """
    first, rows, sent_first, sent, port_first, ports = waits
    kinds, stages = duration.shape
    releases = WEIGHT if kinds > WEIGHT else BACK
    lanes = len(free)
    hosted, lane_first = _hosted(lane_of, lanes)
    tail = _tails(duration, waits) if most_ns < ANY else np.zeros_like(duration)
    used, left = peak.copy(), np.zeros(lanes, np.int64)
    for at in range(stages):
        for each in range(kinds):
            left[lane_of[at]] += count * duration[each, at]
    done = np.zeros((kinds, stages), np.int64)
    # Of each lane its oldest micro-batch; its bytes at most while that one is in all stages, others as they are.
    oldest, kept = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
    for at in range(stages):
        kept[lane_of[at]] = max(kept[lane_of[at]], memory[2, at])
    for lane in range(lanes):
        kept[lane] += peak[lane]
    for at in range(stages):
        kept[lane_of[at]] += memory[0, at] + memory[1, at]
    # When the messages of each row arrive; of those that still wait for a link or port, when they are sent.
    arrived, gone = np.zeros((len(rows), count), np.int64), np.zeros(len(rows), np.int64)
    link_free = np.zeros(lanes * lanes, np.int64)
    port_free = np.zeros(ports[:, 0].max() + 1 if len(ports) else 0, np.int64)
    # Rows with messages that wait; when the next one leaves at the earliest, and when it was sent.
    held_up, number_held_up = np.empty((len(rows), 3), np.int64), 0
    rank = _ranks(waits)
    # When all is there that the next task of each kind and stage waits for, by place in `hosted`; ANY: not yet.
    there = np.full((kinds, stages), ANY, np.int64)
    # Kinds and stages of which that may have changed.
    changed, changes = np.empty((kinds + stages + len(rows), 2), np.int64), stages
    place_of = np.empty(stages, np.int64)
    for place in range(stages):
        place_of[hosted[place]] = place
        changed[place, 0], changed[place, 1] = AHEAD, place
    # What each lane would run next: kind, stage and start; ANY: nothing. Of `lane` it has to be found out.
    next_kind, next_stage = np.full(lanes, WAITS, np.int64), np.zeros(lanes, np.int64)
    next_start = np.full(lanes, ANY, np.int64)
    total: int = kinds * stages * count
    lane, turn = -1, 0
    while turn < total:
        for change in range(changes):
            each, at = changed[change, 0], changed[change, 1]
            ran, here = done[each, at], lane_of[at]
            if (
                ran == count
                or (each == AHEAD and ran - done[releases, at] >= caps[at])
                or (each == BACK and ran >= done[AHEAD, at])
                or (each == WEIGHT and ran >= done[BACK, at])
            ):
                there[each, place_of[at]] = ANY
                continue
            ready = 0
            if each != WEIGHT:
                for row in range(first[each, at], first[each, at + 1]):
                    if gone[row] <= ran:
                        ready = ANY
                        break
                    ready = max(ready, arrived[row, ran])
            there[each, place_of[at]] = ready
            ready = max(ready, free[here])
            if here == lane or ready > next_start[here] or ready == ANY:
                continue
            crowded = kept[here] + memory[0, at] > room[here]
            if crowded and each == AHEAD and ran > oldest[here]:
                continue
            chosen, other = next_kind[here], next_stage[here]
            if (
                ready < next_start[here]
                or each < chosen
                or (each == chosen and (ran, -at) < (done[each, other], -other))
            ):
                next_kind[here], next_stage[here], next_start[here] = each, at, ready
        if lane >= 0:
            chosen, other, start = WAITS, 0, ANY
            for each in range(kinds):
                for place in range(lane_first[lane], lane_first[lane + 1]):
                    ready = max(free[lane], there[each, place])
                    if ready > start:
                        continue
                    at = hosted[place]
                    crowded = kept[lane] + memory[0, at] > room[lane]
                    if crowded and each == AHEAD and done[AHEAD, at] > oldest[lane]:
                        continue
                    if ready < start or (each == chosen and done[each, at] < done[each, other]):
                        chosen, other, start = each, at, ready
            next_kind[lane], next_stage[lane], next_start[lane] = chosen, other, start
        changes = 0
        lane, kind, stage, start, number = -1, -1, -1, ANY, 0
        for here in range(lanes):
            ready = next_start[here]
            if ready > start or ready == ANY:
                continue
            each, at = next_kind[here], next_stage[here]
            ran = done[each, at]
            if ready < start or (each, ran, -at) < (kind, number, -stage):
                lane, kind, stage, start, number = here, each, at, ready, ran
        # Messages that leave by then, and before what they bring may start another task.
        most_leaving, woken = start, 0
        while number_held_up:
            place = _first_to_leave(held_up, number_held_up, most_leaving, link_free, port_free, rank, waits)
            if place < 0:
                break
            row, leaves = held_up[place, 0], held_up[place, 1]
            sent_number = gone[row]
            comes = leaves + rows[row, NS]
            arrived[row, sent_number] = link_free[rows[row, LINK]] = comes
            for port in range(port_first[row], port_first[row + 1]):
                port_free[ports[port, 0]] = leaves + ports[port, 1]
            gone[row] += 1
            each, at = AHEAD if row >= first[AHEAD, 0] else BACK, rows[row, RECEIVER]
            if done[each, rows[row, SENDER]] > gone[row]:
                held_up[place, 1] = held_up[place, 2] = arrived[row, gone[row]]
            else:
                number_held_up -= 1
                for column in range(3):
                    held_up[place, column] = held_up[number_held_up, column]
            if done[each, at] == sent_number:
                changed[woken, 0], changed[woken, 1] = each, at
                woken += 1
                most_leaving = min(most_leaving, comes)
        if woken:
            lane, changes = -1, woken
            continue
        if lane < 0:
            return turn
        if len(tasks):
            tasks[turn, 0], tasks[turn, 1], tasks[turn, 2] = kind, stage, number
        free[lane] = start + duration[kind, stage]
        left[lane] -= duration[kind, stage]
        done[kind, stage] += 1
        live = done[AHEAD, stage] - done[releases, stage]
        if kind == AHEAD:
            used[lane] += memory[0, stage] + (memory[1, stage] if live == 1 else 0)
            if number > oldest[lane]:
                kept[lane] += memory[0, stage]
        peak[lane] = max(peak[lane], used[lane] + memory[2, stage])
        last = free[lane] + (count - 1 - number) * duration[kind, stage]
        if free[lane] + left[lane] > most_ns or last + tail[kind, stage] > most_ns:
            return turn
        if peak[lane] > most_bytes[lane]:
            return turn
        if kind == releases:
            used[lane] -= memory[0, stage] + (memory[1, stage] if live == 0 else 0)
            if number > oldest[lane]:
                kept[lane] -= memory[0, stage]
            else:
                kept[lane] -= _next_oldest(oldest, lane, done, releases, memory, hosted, lane_first)
        for each in range(kinds):
            changed[each, 0], changed[each, 1] = each, stage
        changes = kinds
        if kind != WEIGHT:
            for place in range(sent_first[kind, stage], sent_first[kind, stage + 1]):
                row = sent[place]
                comes, link = free[lane], rows[row, LINK]
                if rows[row, CONTENDED]:
                    if gone[row] == number:
                        held_up[number_held_up, 0] = row
                        held_up[number_held_up, 1] = held_up[number_held_up, 2] = comes
                        number_held_up += 1
                    arrived[row, number] = comes
                    continue
                gone[row] += 1
                if link >= 0:
                    comes = max(comes, link_free[link])
                    link_free[link] = comes + rows[row, NS]
                arrived[row, number] = comes + rows[row, NS]
                if done[kind, rows[row, RECEIVER]] == number:
                    changed[changes, 0], changed[changes, 1] = kind, rows[row, RECEIVER]
                    changes += 1
        turn += 1
    return total


@kernel
def _next_oldest(
    oldest: IntArray,
    lane: int,
    done: IntArray,
    releases: int,
    memory: IntArray,
    hosted: IntArray,
    lane_first: IntArray,
) -> int:
    """Find the oldest micro-batch of a lane. Returns what it holds there where it is another one than before."""
    least, bytes_ = ANY, 0
    for place in range(lane_first[lane], lane_first[lane + 1]):
        least = min(least, done[releases, hosted[place]])
    if least == oldest[lane]:
        return 0
    oldest[lane] = least
    for place in range(lane_first[lane], lane_first[lane + 1]):
        at = hosted[place]
        if done[releases, at] == least < done[AHEAD, at]:
            bytes_ += memory[0, at]
    return bytes_


@kernel
def _ranks(waits: Waits) -> IntArray:
    """By row, the order of messages that are sent at one instant, as the simulator has it.

    Those of forwards go first, by who sends and who waits, then those of backwards, by who waits and who sends.
    """
    rows, ahead = len(waits.rows), waits.first[AHEAD, 0]
    rank = np.empty(rows, np.int64)
    for row in range(rows):
        rank[row] = row + rows if row < ahead else row
    for place in range(waits.sent_first[AHEAD, 0], len(waits.sent)):
        rank[waits.sent[place]] = place
    return rank


@kernel
def _first_to_leave(
    held_up: IntArray,
    number: int,
    most_ns: int,
    link_free: IntArray,
    port_free: IntArray,
    rank: IntArray,
    waits: Waits,
) -> int:
    """Of the first rows in `held_up` the place of the one whose message leaves first; -1: none does by `most_ns`.

    Of several that could leave at once it is the one that was sent first, of these the one of least rank.
    """
    found, soonest = -1, most_ns
    for place in range(number):
        leaves = held_up[place, 1]
        if leaves > soonest:
            continue
        row = held_up[place, 0]
        leaves = max(leaves, link_free[waits.rows[row, LINK]])
        for port in range(waits.port_first[row], waits.port_first[row + 1]):
            leaves = max(leaves, port_free[waits.ports[port, 0]])
        held_up[place, 1] = leaves
        if leaves > soonest:
            continue
        if leaves == soonest and found >= 0:
            later = held_up[place, 2] - held_up[found, 2]
            if later > 0 or (later == 0 and rank[row] > rank[held_up[found, 0]]):
                continue
        found, soonest = place, leaves
    return found


@kernel
def _tails(duration: IntArray, waits: Waits) -> IntArray:
    """The least ns from the end of each kind of task of a stage to the end of all that waits for it."""
    rows, sent_first, sent = waits.rows, waits.sent_first, waits.sent
    kinds, stages = duration.shape
    tail = np.zeros((kinds, stages), np.int64)
    for kind in range(BACK, AHEAD + 1):
        for at in range(stages):
            tail[kind, at] = duration[WEIGHT, at] if kinds > WEIGHT and kind == BACK else 0
            if kind == AHEAD:
                tail[kind, at] = duration[BACK, at] + tail[BACK, at]
        grown, rounds = True, 0
        while grown and rounds < stages:
            grown, rounds = False, rounds + 1
            for each in range(stages):
                at = each if kind == BACK else stages - 1 - each
                for place in range(sent_first[kind, at], sent_first[kind, at + 1]):
                    row = sent[place]
                    ns = rows[row, NS] + duration[kind, rows[row, RECEIVER]] + tail[kind, rows[row, RECEIVER]]
                    if ns > tail[kind, at]:
                        tail[kind, at], grown = ns, True
    return tail


@kernel
def _hosted(lane_of: IntArray, lanes: int) -> tuple[IntArray, IntArray]:
    """The stages of each lane, the later first, and the place of its first one."""
    hosted, first = np.empty(len(lane_of), np.int64), np.zeros(lanes + 1, np.int64)
    for at in range(len(lane_of)):
        first[lane_of[at] + 1] += 1
    for lane in range(lanes):
        first[lane + 1] += first[lane]
    free = first[:-1].copy()
    for at in range(len(lane_of) - 1, -1, -1):
        hosted[free[lane_of[at]]] = at
        free[lane_of[at]] += 1
    return hosted, first
