"""The half of a certificate that proves a plan: its schedule with every task and message, on devices and links.

Imports the standard library and the certificate's own form and premises only. The rules are those of the cost
model, sections 4 to 8 and 10, in whole numbers.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from pipebench.certificates.document import Part, Refused
from pipebench.certificates.plan_premises import Lane, Plan, Sending
from pipebench.certificates.problem_premises import Problem

Task = tuple[str, int, int]
"""Kind, stage and micro-batch; of R, the all-reduce, the turn."""
Sent = tuple[str, int, int, int, int]
"""Kind, sender, receiver, tensor and micro-batch of the sender."""


@dataclass(frozen=True)
class PlanProof:
    """time_ns: of a mini-batch. peak_bytes: of each device that the plan uses."""

    time_ns: int
    peak_bytes: dict[int, int]


class Run:
    """A schedule with the start and the end of each task and message.

    round: micro-batches after which a schedule without end repeats, each `round_ns` later; 0: the schedule ends.
    """

    def __init__(self, problem: Problem, plan: Plan, part: Part) -> None:
        self.problem, self.plan, self.part = problem, plan, part
        self.round = self.round_ns = 0
        if part.text("kind", ("finite", "periodic")) == "periodic":
            self.round, self.round_ns = part.number("round", 1), part.number("round_ns", 1)
            self._require_round()
        samples = problem.mini_batch // (plan.copies * plan.pipelines)
        self.count = [self.round or samples // stage.micro_batch for stage in plan.stages]
        self.start: dict[Task, int] = {}
        self.end: dict[Task, int] = {}
        self.pairs: dict[Lane, set[int]] = {}
        self.tasks: dict[Lane, list[Task]] = {}
        for lane in part.parts("lanes"):
            self._read_lane(lane)
        self._require_all_tasks()
        self.sent: dict[Sent, tuple[int, int]] = {}
        self._released: dict[int, int] = {}
        self._read_messages()
        part.end()

    def at(self, instant: int) -> int:
        """The instant within its round."""
        return instant % self.round_ns if self.round else instant

    def _require_round(self) -> None:
        turns = [stage.turns for stage in self.plan.stages]
        if self.problem.flushes or len({stage.micro_batch for stage in self.plan.stages}) > 1:
            raise Refused(self.part.at("kind"), "a schedule without end has no flush, and one micro-batch size")
        if any(self.round % each for each in turns):
            raise Refused(
                self.part.at("round"), f"{self.round} micro-batches are no whole rounds of {turns} turns"
            )

    def _read_lane(self, part: Part) -> None:
        lane = tuple(sorted(part.numbers("devices")))
        if lane in self.tasks or all(lane not in stage.lanes for stage in self.plan.stages):
            raise Refused(part.at("devices"), "are those of another lane, or of no stage")
        tasks = self.tasks[lane] = []
        first_of_pairs = part.numbers("together")
        self.pairs[lane] = set(first_of_pairs)
        for position, (kind, stage, number, start, end) in enumerate(part.rows("tasks", str, int, int, int, int)):
            task, place = (kind, stage, number), f"{part.at('tasks')}[{position}]"
            known = stage < len(self.plan.stages) and kind in self.plan.stages[stage].duration
            if not known or number >= (self.plan.stages[stage].turns if kind == "R" else self.count[stage]):
                raise Refused(place, f"the plan has no {kind} of stage {stage}, micro-batch {number}")
            if self.plan.lane(stage, number) != lane:
                raise Refused(place, f"{name(task)} is on devices {lane}, not on those of its stage")
            if task in self.start:
                raise Refused(place, f"{name(task)} stands twice")
            self.start[task], self.end[task] = start, end
            tasks.append(task)
        if any(second < first + 2 for first, second in pairwise(first_of_pairs)):
            raise Refused(part.at("together"), "does not ascend, or has a task in two pairs")
        lasting = [self.plan.stages[stage].duration[kind] for kind, stage, _ in tasks]
        for first in first_of_pairs:
            lasting[first : first + 2] = [self._pair_ns(tasks, first, part)] * 2
        for position, (task, wanted) in enumerate(zip(tasks, lasting, strict=True)):
            if self.end[task] - self.start[task] != wanted:
                place = f"{part.at('tasks')}[{position}]"
                raise Refused(place, f"{name(task)} lasts {self.end[task] - self.start[task]} ns, not {wanted} ns")
        part.end()

    def _pair_ns(self, tasks: list[Task], first: int, part: Part) -> int:
        pair = tasks[first : first + 2]
        if len(pair) < 2 or pair[0][0] != "F" or pair[1][0] not in ("B", "I") or pair[0][1:] == pair[1][1:]:
            raise Refused(part.at("together"), f"position {first} is not a forward with a backward of another")
        key = pair[0][1], pair[1][1], pair[1][0]
        if key not in self.plan.hidden_ns or self.start[pair[0]] != self.start[pair[1]]:
            raise Refused(
                part.at("together"), f"the pair at {first} does not start together, or hides nothing known"
            )
        whole = sum(self.plan.stages[stage].duration[kind] for kind, stage, _ in pair)
        return whole - self.plan.hidden_ns[key]

    def _require_all_tasks(self) -> None:
        for position, stage in enumerate(self.plan.stages):
            for number in range(self.count[position]):
                there = "".join(kind for kind in "FBIW" if (kind, position, number) in self.start)
                if there not in ("FB", "FIW"):
                    what = f"stage {position}, micro-batch {number} has {' '.join(there) or 'no task'}"
                    raise Refused(self.part.at("lanes"), f"{what}: it needs F and B, or F, I and W")
            reduced = sum(("R", position, turn) in self.start for turn in range(stage.turns))
            if (self.round and reduced) or (stage.duration["R"] and reduced < stage.turns):
                raise Refused(
                    self.part.at("lanes"), f"stage {position} has {reduced} all-reduces, not {stage.turns}"
                )

    def _read_messages(self) -> None:
        rows = self.part.rows("messages", str, int, int, int, int, int, int)
        for position, (kind, sender, receiver, tensor, number, start, end) in enumerate(rows):
            place, sent = f"{self.part.at('messages')}[{position}]", (kind, sender, receiver, tensor, number)
            lasting = self._lasting(sent) if max(sender, receiver) < len(self.plan.stages) else None
            if lasting is None or number >= self.count[sender] or sent in self.sent:
                raise Refused(place, f"{message(sent)} is no message of the plan, or stands twice")
            if end - start != lasting:
                raise Refused(place, f"{message(sent)} lasts {end - start} ns, not {lasting} ns")
            self.sent[sent] = start, end
        for kind, sender, receiver, tensor, turn in self.plan.sendings:
            for number in range(turn, self.count[sender], self.plan.meeting(sender, receiver)):
                if (kind, sender, receiver, tensor, number) not in self.sent:
                    missing = message((kind, sender, receiver, tensor, number))
                    raise Refused(self.part.at("messages"), f"{missing} is missing")

    def _takes(self, sent: Sent) -> Sending | None:
        turn = sent[4] % self.plan.meeting(sent[1], sent[2])
        return self.plan.sendings.get((sent[0], sent[1], sent[2], sent[3], turn))

    def _lasting(self, sent: Sent) -> int | None:
        takes = self._takes(sent)
        return None if takes is None else max(takes.ns, *(ns for *_, ns in takes.ports), 0)

    def gradient(self, stage: int, number: int) -> int:
        """When the gradient of the inputs of a stage is there."""
        whole = ("B", stage, number)
        return self.end[whole] if whole in self.end else self.end["I", stage, number]

    def release(self, stage: int, number: int) -> int:
        """When a micro-batch is no longer live on a stage."""
        whole = ("B", stage, number)
        return self.end[whole] if whole in self.end else self.end["W", stage, number]

    def last_release(self, stage: int) -> int:
        """When no micro-batch is live on a stage any more."""
        if stage not in self._released:
            self._released[stage] = max(self.release(stage, number) for number in range(self.count[stage]))
        return self._released[stage]

    def made(self, sent: Sent) -> int:
        """When what a message carries is there."""
        return self.end["F", sent[1], sent[4]] if sent[0] == "F" else self.gradient(sent[1], sent[4])

    def require_messages_in_time(self) -> None:
        """A message starts when what it carries is there and its link and ports are free, and not later."""
        held: dict[object, list[tuple[int, int, str]]] = defaultdict(list)
        taken: dict[Sent, list[object]] = {}
        for sent, (start, end) in self.sent.items():
            if start < self.made(sent):
                words = f"{message(sent)} starts at {start} ns, it is made at {self.made(sent)} ns"
                raise Refused(self.part.at("messages"), words)
            taken[sent] = []
            for resource, ns in self._occupied(sent, end - start):
                held[resource].append((self.at(start), ns, message(sent)))
                taken[sent].append(resource)
        free: dict[object, set[int]] = {}
        for resource, uses in held.items():
            uses.sort()
            self._require_apart(uses, f"on {resource}", self.part.at("messages"))
            free[resource] = {self.at(start + ns) for start, ns, _ in uses}
        for sent, (start, _) in self.sent.items():
            begun = start in (0, self.made(sent)) if self.round else start == self.made(sent)
            if not begun and not any(self.at(start) in free[resource] for resource in taken[sent]):
                raise Refused(self.part.at("messages"), f"{message(sent)} waits for nothing at {start} ns")
        if not self.round:
            self._require_first_come(taken)

    def _occupied(self, sent: Sent, lasting: int) -> Iterator[tuple[object, int]]:
        """The link and the ports of a message, each with its ns (cost model, section 3)."""
        found = self._takes(sent)
        if found is None or found.ns == 0 or self.problem.link_mode == "delay":
            return
        ends = self.plan.lane(sent[1], sent[4]), self.plan.lane(sent[2], sent[4])
        yield ("link", *(ends if self.problem.link_mode == "full" else sorted(ends))), lasting
        for copy, level, way, ns in found.ports:
            below = self.problem.levels[level - 1][0] if level else 1
            for group in sorted({(device + copy * self.plan.shift) // below for device in ends[way]}):
                yield ("way in" if way else "way out", "level", level, "group", group, "copy", copy), ns

    def _require_first_come(self, taken: dict[Sent, list[object]]) -> None:
        """Of messages that need nothing but one link, those that are there first go first (section 10)."""
        alone: dict[object, list[Sent]] = defaultdict(list)
        ported = {used[0] for used in taken.values() if len(used) > 1}
        for sent, used in taken.items():
            if len(used) == 1 and used[0] not in ported:
                alone[used[0]].append(sent)
        for queue in alone.values():
            queue.sort(key=lambda sent: self.sent[sent][0])
            for first, second in pairwise(queue):
                if (self.made(second), _rank(second)) < (self.made(first), _rank(first)):
                    words = f"{message(second)} was there before {message(first)}, and goes behind it"
                    raise Refused(self.part.at("messages"), words)

    def _require_apart(self, uses: list[tuple[int, int, str]], where: str, place: str) -> None:
        """Uses follow one another, in this order; in a round the first comes again after the last one."""
        again = [(start + self.round_ns, ns, what) for start, ns, what in uses[:1]] if self.round else []
        for (start, ns, what), (after, _, other) in pairwise([*uses, *again]):
            if start + ns > after:
                raise Refused(place, f"{other} starts at {after} ns {where}, where {what} ends at {start + ns} ns")

    def require_tasks_in_time(self) -> None:
        """A task starts when its lane is free and its inputs are there, and not later."""
        into, back = self._neighbours()
        for position, (lane, tasks) in enumerate(self.tasks.items()):
            place = f"{self.part.at('lanes')}[{position}].tasks"
            paired = self.pairs[lane]
            steps = [tasks[at : at + 1 + (at in paired)] for at in range(len(tasks)) if at - 1 not in paired]
            uses = [(self.at(self.start[step[0]]), self._lasts(step), name(step[0])) for step in steps]
            self._require_apart(uses, f"on devices {lane}", place)
            free = 0
            if self.round and uses:
                free = self.at(uses[-1][0] + uses[-1][1])
            for step, (begins, lasting, what) in zip(steps, uses, strict=True):
                start = self.start[step[0]]
                ready = max((instant for task in step for instant in self._inputs(task, into, back)), default=0)
                if start < ready:
                    raise Refused(place, f"{what} starts at {start} ns, what it needs is there at {ready} ns")
                if start not in (0, ready) and begins != free:
                    raise Refused(place, f"{what} waits for nothing at {start} ns")
                free = self.at(begins + lasting)

    def _lasts(self, step: list[Task]) -> int:
        return self.end[step[0]] - self.start[step[0]]

    def _neighbours(self) -> tuple[list[set[tuple[int, int]]], list[set[tuple[int, int]]]]:
        """For each stage those it waits for, forward and backward, with a tensor; -1: an order without bytes."""
        into: list[set[tuple[int, int]]] = [set() for _ in self.plan.stages]
        back: list[set[tuple[int, int]]] = [set() for _ in self.plan.stages]
        for source, target, tensor in (*self.plan.hops, *((a, b, -1) for a, b in self.plan.order)):
            into[target].add((source, tensor))
            back[source].add((target, tensor))
        return into, back

    def _inputs(
        self, task: Task, into: list[set[tuple[int, int]]], back: list[set[tuple[int, int]]]
    ) -> Iterator[int]:
        """The instants at which the inputs of a task are there."""
        kind, stage, number = task
        if kind == "W":
            yield self.end["I", stage, number]
        elif kind == "R":
            yield from (self.last_release(mirror) for mirror in self.plan.mirrors(stage))
        else:
            passing = "F" if kind == "F" else "B"
            if passing == "B":
                yield self.end["F", stage, number]
            for sender, tensor in into[stage] if passing == "F" else back[stage]:
                for each in self._covering(sender, stage, number):
                    sent = (passing, sender, stage, tensor, each)
                    yield self.sent[sent][1] if sent in self.sent else self.made(sent)

    def _covering(self, sender: int, receiver: int, number: int) -> range:
        """The micro-batches of the sender that share samples with one of the receiver."""
        here, there = self.plan.stages[receiver].micro_batch, self.plan.stages[sender].micro_batch
        return range(number * here // there, ((number + 1) * here - 1) // there + 1)

    def peaks(self) -> dict[int, int]:
        """The most bytes on each device, over all its tasks (cost model, section 8)."""
        stages = self.plan.stages
        shift = len({device for stage in stages for device in stage.devices})
        found: dict[int, int] = {}
        for lane in dict.fromkeys(lane for stage in stages for lane in stage.lanes):
            peak = self._steady_peak(lane) if self.round else self._peak(lane)
            found |= {device + copy * shift: peak for copy in range(self.plan.copies) for device in lane}
        return found

    def _peak(self, lane: Lane) -> int:
        stages = self.plan.stages
        live = {position: 0 for position, stage in enumerate(stages) if lane in stage.lanes}
        tasks = self.tasks.get(lane, [])
        peak = held = sum(stages[s].held for s in live)
        for position, (kind, s, number) in enumerate(tasks):
            stage = stages[s]
            if kind == "F":
                held += stage.each_live + (stage.while_live if live[s] == 0 else 0)
                live[s] += 1
                self._require_declared(s, live[s])
            peak = max(peak, held + self._scratch(lane, position))
            if kind in "BW":
                if live[s] < 1:
                    raise Refused(stage.place, f"{name((kind, s, number))} frees what is not there")
                live[s] -= 1
                held -= stage.each_live + (stage.while_live if live[s] == 0 else 0)
        return peak

    def _steady_peak(self, lane: Lane) -> int:
        """The same in a round. At a start all are live that have begun, those that begin then included."""
        stages, tasks = self.plan.stages, self.tasks.get(lane, [])
        live = {position: 0 for position, stage in enumerate(stages) if lane in stage.lanes}
        changes: dict[int, list[tuple[int, int]]] = defaultdict(list)
        starting: dict[int, list[int]] = defaultdict(list)
        for position, (kind, s, number) in enumerate(tasks):
            starting[self.at(self.start[kind, s, number])].append(position)
            if kind == "F":
                begun, freed = self.start[kind, s, number], self.release(s, number)
                live[s] += freed // self.round_ns - begun // self.round_ns  # those that earlier rounds left
                changes[self.at(begun)].append((s, 1))
                changes[self.at(freed)].append((s, -1))
        held = sum(stages[s].held + self._live_bytes(s, count) for s, count in live.items())
        peak = sum(stages[s].held for s in live)
        for instant in sorted({*changes, *starting}):
            for s, change in changes[instant]:
                held -= self._live_bytes(s, live[s])
                live[s] += change
                held += self._live_bytes(s, live[s])
            for position in starting[instant]:
                kind, s, _ = tasks[position]
                if kind == "F":
                    self._require_declared(s, live[s])
                # A micro-batch whose tasks take no time is live while one of them runs.
                own = 0 if live[s] else self._live_bytes(s, 1)
                peak = max(peak, held + own + self._scratch(lane, position))
        return peak

    def _live_bytes(self, stage: int, count: int) -> int:
        known = self.plan.stages[stage]
        return count * known.each_live + (known.while_live if count > 0 else 0)

    def _scratch(self, lane: Lane, position: int) -> int:
        """The workspace of a task and of the one that runs at once; an all-reduce has none."""
        tasks, stages = self.tasks[lane], self.plan.stages
        if tasks[position][0] == "R":
            return 0
        beside = [at for at in (position - 1, position) if at in self.pairs[lane]]
        running = [tasks[at + 1 if at == position else at][1] for at in beside]
        return stages[tasks[position][1]].workspace + sum(stages[other].workspace for other in running)

    def _require_declared(self, stage: int, count: int) -> None:
        known = self.plan.stages[stage]
        if known.in_flight and count * known.micro_batch > known.in_flight:
            raise Refused(known.place, f"has {count} micro-batches in flight, more than it declares")

    def time_ns(self) -> int:
        """The time of a mini-batch: the whole schedule, or so many periods of one without end."""
        if not self.round:
            return max(max(self.end.values(), default=0), max((end for _, end in self.sent.values()), default=0))
        period = -(-self.round_ns // self.round)
        lanes = self.plan.stages[0].micro_batch * self.plan.copies
        return period * self.problem.mini_batch // lanes


def _rank(sent: Sent) -> tuple[int, int, int, int, int]:
    """Forward before backward, then by source, target, tensor and micro-batch."""
    kind, sender, receiver, tensor, number = sent
    return (0, sender, receiver, tensor, number) if kind == "F" else (1, receiver, sender, tensor, number)


def check_plan(problem: Problem, plan: Plan, part: Part) -> PlanProof:
    """What the schedule of a certificate proves. Raises Refused at the first rule that it breaks."""
    run = Run(problem, plan, part)
    run.require_messages_in_time()
    run.require_tasks_in_time()
    return PlanProof(run.time_ns(), run.peaks())


def name(task: Task) -> str:
    """How messages call a task."""
    return f"{task[0]} of stage {task[1]}, micro-batch {task[2]}"


def message(sent: Sent) -> str:
    """How messages call a message."""
    kind, sender, receiver, tensor, number = sent
    return f"the {kind} message of tensor {tensor}, micro-batch {number}, from stage {sender} to stage {receiver}"
