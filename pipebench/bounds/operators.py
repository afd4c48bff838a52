"""The least that each operator can cost, over all ways to run it and all cuts of the mini-batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_part

import numpy as np
from msgspec.structs import replace

from pipebench.costs.formula import Formula
from pipebench.costs.quantise import FloatArray, IntArray, nanoseconds, seconds_at
from pipebench.costs.rings import fastest_ring
from pipebench.costs.weights import WeightPart, weight_parts
from pipebench.costs.weights import update_ns as weights_update_ns
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts
from pipebench.domain.recomputation import of_layers, permits
from pipebench.domain.workload import too_few_devices, typed_pins

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Ways:
    """Ways to run operators on one device type, a row for each way; arrays of shape (rows,).

    operator: position in the graph.
    devices: devices that one replica takes.
    plain_backward_s, weight_gradient_s: of the operator's plain way; an alternative has the same share of its
    backward.
    parameter_bytes: the operator's own weights on each device. expert_bytes: of them those of experts that ranks
    share out.
    fixed_bytes, saved_bytes (for a sample), workspace_bytes: on each device.
    """

    sizes: Sequence[int]
    operator: IntArray
    devices: IntArray
    parameter_bytes: IntArray
    expert_bytes: IntArray
    plain: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    fixed_bytes: IntArray
    saved_bytes: FloatArray
    workspace_bytes: IntArray
    forward_s: FloatArray
    backward_s: FloatArray
    plain_backward_s: FloatArray
    weight_gradient_s: FloatArray

    def forward_ns(self, samples: int) -> IntArray:
        """Forward of one micro-batch with `samples` on each device, rounded as the costs are."""
        return nanoseconds(seconds_at(self.sizes, self.forward_s, samples))

    def run_ns(self, samples: int) -> IntArray:
        """Forward plus backward of one micro-batch."""
        return self.forward_ns(samples) + nanoseconds(seconds_at(self.sizes, self.backward_s, samples))

    def crossing_ns(self, samples: int) -> IntArray:
        """At most what a sample waits for on its way through the operator and back: forward and input gradient.

        A backward may be split (zero bubble): then only its input gradient goes upstream, and the weight gradient
        runs when the lane has time.
        """
        backward = nanoseconds(seconds_at(self.sizes, self.backward_s, samples))
        weight = nanoseconds(seconds_at(self.sizes, self.weight_gradient_s, samples))
        plain = np.maximum(nanoseconds(seconds_at(self.sizes, self.plain_backward_s, samples)), 1)
        shared = np.ceil(backward * (weight / plain)).astype(np.int64) + 1  # rounded half-even by the cost model
        later = np.minimum(backward, np.where(self.plain, weight, np.where(weight > 0, shared, 0)))
        crossing: IntArray = self.forward_ns(samples) + backward - later
        return crossing

    def least(self, values: IntArray, operators: int) -> IntArray:
        """For each operator the smallest value among its ways, shape (operators,)."""
        smallest = np.full(operators, NEVER, dtype=values.dtype)
        np.minimum.at(smallest, self.operator, values)
        return smallest


def ways(problem: Problem) -> list[Ways]:
    """The ways on each device type of the cluster, those left out that contradict a pinned tensor_parallel or
    recomputation by layer. Raises InfeasibleProblem when that leaves an operator none.

    Without a pin the plain way takes one device for a replica; with one it takes as many as are pinned.
    """
    found = [_on(problem, problem.profile.on(name)) for name in dict.fromkeys(problem.cluster.devices)]
    lacking = set(range(len(problem.profile.graph.operators))).difference(
        *(rows.operator.tolist() for rows in found)
    )
    if lacking:
        raise _no_way(problem, min(lacking))
    return found


def _no_way(problem: Problem, operator: int) -> InfeasibleProblem:
    name, size = problem.profile.graph.operators[operator].name, problem.cluster.size
    few = too_few_devices(problem.pins, size)
    return InfeasibleProblem(few or f"the pins leave operator {name!r} no way to run on {size} devices")


def _on(problem: Problem, costs: DeviceCosts) -> Ways:
    pinned, layers = problem.pins.tensor_parallel, of_layers(problem.pins.recompute)
    graph = problem.profile.graph
    rows: list[tuple[int, OperatorCosts, Alternative | None]] = []
    for position, operator in enumerate(costs.operators):
        offered = (None, *(a for a in operator.alternatives if pinned in (None, a.tensor_parallel)))
        rows += [(position, operator, a) for a in offered if permits(layers, graph.operators[position], a)]
    own, experts = graph.weight_bytes, graph.expert_weight_bytes
    timed = [operator if alternative is None else alternative for _, operator, alternative in rows]
    plain = [operator for _, operator, _ in rows]
    none = (0.0,) * len(costs.micro_batches)
    return Ways(
        sizes=costs.micro_batches,
        operator=np.array([position for position, _, _ in rows], dtype=np.int64),
        devices=np.array([pinned or (a.tensor_parallel if a else 1) for _, _, a in rows], dtype=np.int64),
        parameter_bytes=np.array([a.parameter_bytes if a else own[p] for p, _, a in rows], dtype=np.int64),
        expert_bytes=np.array([a.expert_bytes if a else experts[p] for p, _, a in rows], dtype=np.int64),
        plain=np.array([a is None for _, _, a in rows]),
        fixed_bytes=np.array([a.fixed_bytes if a else 0 for _, _, a in rows], dtype=np.int64),
        saved_bytes=np.array([t.saved_bytes_per_sample for t in timed], dtype=np.float64),
        workspace_bytes=np.array([operator.workspace_bytes for _, operator, _ in rows], dtype=np.int64),
        forward_s=np.array([t.forward_s for t in timed], dtype=np.float64),
        backward_s=np.array([t.backward_s for t in timed], dtype=np.float64),
        plain_backward_s=np.array([each.backward_s for each in plain], dtype=np.float64),
        weight_gradient_s=np.array([each.weight_gradient_s or none for each in plain], dtype=np.float64),
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """How a stage cuts the mini-batch.

    runs: micro-batches of the stage for one mini-batch, in one of its pipelines; of all pipelines where replicas
    take them in turn.
    samples: samples of a micro-batch that a replica computes.
    replicas: replicas of the stage in all pipelines and copies.
    turns: replicas that take micro-batches in turn; 1 where all share each of them. A cut of more turns than
    replicas stands for all numbers between: it computes as many and reduces gradients over as few.
    """

    runs: int
    samples: int
    replicas: int
    turns: int = 1

    @property
    def computed(self) -> int:
        """Micro-batches, or parts of them, that all replicas compute for one mini-batch."""
        return self.runs * (self.replicas if self.turns == 1 else 1)

    def busiest_ns(self, problem: Problem, each_ns: IntArray) -> IntArray:
        """The ns of the lane that runs most of the micro-batches, from those of one.

        sync: one of r replicas in turn runs the r-th part, rounded up. async: a lane runs one in r periods.
        """
        if problem.regime.mode == "sync":
            return -(-self.runs // self.turns) * each_ns
        busiest: IntArray = -(-self.runs * each_ns // self.turns)
        return busiest


def cuts(problem: Problem) -> tuple[Cut, ...]:
    """Every cut that may be best for some operator.

    A stage with micro-batch b and d replicas in each of c pipelines, those of all copies counted, runs B / (c b)
    micro-batches with ceil(b / d) samples on each of c d replicas; c b divides B, d <= b, c d <= devices: stages
    that hold the same operators stand on different device sets in all pipelines and copies. The stage with
    micro-batch c b and c d replicas in one pipeline has the same three figures, so c = 1 stands for all unless
    the micro-batch is pinned. All that the bounds use grows with the replicas when runs and samples are
    fixed, but for the share of a sharded optimizer (`update_ns`), so only the fewest replicas with given samples
    matter. The pin data_parallel fixes the replicas.

    r replicas in turn run b samples of B / b micro-batches, each one in r; c pipelines of r are as one of c r.
    Where r divides B / b they cost what r replicas cost that share micro-batches of r b, or r pipelines of one; so
    these matter only where the number is pinned.

    The pin micro_batch_size fixes the samples of a replica, so it leaves the cuts that have as many.

    Raises InfeasibleProblem when no cut honours the pins.
    """
    each = problem.pins.micro_batch_size
    listed = dict.fromkeys([*_all(problem), *_in_turn(problem)])
    found = tuple(cut for cut in listed if each in (None, cut.samples))
    if not found:
        raise InfeasibleProblem(_no_cut(problem))
    return found


def _no_cut(problem: Problem) -> str:
    """Why nothing honours the pins of replicas and samples: no others can rule out every cut."""
    pins, size = problem.pins, problem.cluster.size
    if few := too_few_devices(pins, size):
        return few
    fixed = typed_pins(pins, "micro_batch_size", "micro_batch", "data_parallel")
    return f"{fixed} are pinned: they do not go with {size} devices and a mini-batch of {problem.mini_batch}"


def _all(problem: Problem) -> Iterator[Cut]:
    devices, samples, pins = problem.cluster.size, problem.mini_batch, problem.pins
    if pins.micro_batch is None:
        for micro_batch in divisors(samples):
            for replicas in _replicas(micro_batch, devices, pins.data_parallel):
                yield Cut(samples // micro_batch, -(-micro_batch // replicas), replicas)
        return
    size = pins.micro_batch
    for copies in divisors(samples // size):
        if pins.data_parallel is not None and pins.data_parallel % copies:
            continue
        pinned = None if pins.data_parallel is None else pins.data_parallel // copies
        for replicas in _replicas(size, devices // copies, pinned):
            yield Cut(samples // size // copies, -(-size // replicas), copies * replicas)


def _in_turn(problem: Problem) -> Iterator[Cut]:
    """The cuts of stages whose replicas take micro-batches in turn."""
    pins, samples = problem.pins, problem.mini_batch
    sizes = divisors(samples) if pins.micro_batch is None else [pins.micro_batch]
    pinned, most = pins.data_parallel, problem.cluster.size
    for size in sizes:
        runs = samples // size
        if pinned is not None:
            if 1 < pinned <= most:
                yield Cut(runs, size, pinned, pinned)
        elif problem.regime.mode == "sync":
            share = runs  # micro-batches of the busiest replica
            while share > 1 and (replicas := -(-runs // (share - 1))) <= most:
                share = -(-runs // replicas)
                if runs % replicas:
                    yield Cut(runs, size, replicas, replicas)
        else:
            fewest = 2
            while fewest <= most:
                turns = min(most, fewest + fewest // 16)
                if turns > fewest or runs % turns:
                    yield Cut(runs, size, fewest, turns)
                fewest = turns + 1


def _replicas(micro_batch: int, most: int, pinned: int | None) -> Iterator[int]:
    """The pinned number, or for each value of ceil(micro_batch / d) the smallest d <= most that gives it."""
    if pinned is not None:
        if pinned <= min(micro_batch, most):
            yield pinned
        return
    replicas = 1
    while replicas <= min(micro_batch, most):
        yield replicas
        samples = -(-micro_batch // replicas)
        if samples == 1:
            return
        replicas = -(-micro_batch // (samples - 1))


def most_replicas(problem: Problem) -> int:
    """The most replicas of any stage, all pipelines and copies counted: bounded by devices and the pin.

    Replicas in turn may be more than there are samples.
    """
    return min(problem.cluster.size, problem.pins.data_parallel or problem.cluster.size)


def least_parts(problem: Problem, weights: IntArray, experts: IntArray) -> tuple[WeightPart[IntArray], ...]:
    """The weights of each row in parts, each with the most replicas that hold the same in any plan.

    experts: of `weights` those of experts that E ranks share out. Each of so many groups of ranks holds E devices,
    so there are at most devices / E of them; state and optimizer of a device fall with the number.
    """
    most = most_replicas(problem)
    first, *others = weight_parts(problem.regime, weights, experts, most, 1)
    size = max(1, problem.cluster.accelerators // problem.regime.expert_ranks)
    return first, *(replace_part(part, ranks=size) for part in others)


def divisors(number: int) -> list[int]:
    """Divisors, ascending."""
    low = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*low, *(number // d for d in low)})


def devices_of_a_plan(problem: Problem) -> int:
    """The most devices that a plan uses: all, or those that the pins say when they fix all three degrees.

    With pipeline, data_parallel and tensor_parallel pinned, each of the pipeline's device sets holds
    data_parallel x tensor_parallel devices, copies counted. Several pipelines share the device sets: replicas of a
    stage are on several of them, and the plan uses fewer devices.
    """
    return min(problem.cluster.size, pinned_devices(problem) or problem.cluster.size)


def pinned_devices(problem: Problem) -> int | None:
    """The devices of a plan of one pipeline with the pinned degrees, None where one of the three is left open."""
    pins = problem.pins
    if pins.pipeline is None or pins.data_parallel is None or pins.tensor_parallel is None:
        return None
    return pins.pipeline * pins.data_parallel * pins.tensor_parallel


def freely_split(problem: Problem) -> Problem:
    """The problem without its pins of degrees inside a stage: an operator's split may go beyond both."""
    return replace(problem, pins=replace(problem.pins, data_parallel=None, tensor_parallel=None))


def least_part(problem: Problem, rows: Ways, cut: Cut, whole_ns: IntArray) -> IntArray:
    """The least ns on one device of operators that take `whole_ns` at the cut's samples without a split."""
    del rows
    parts: IntArray = -(-whole_ns // most_parts(problem, cut))
    return parts


def most_parts(problem: Problem, cut: Cut) -> int:
    """Into how many parts the devices of a replica can split an operator."""
    return max(1, problem.cluster.size // cut.replicas)


def least(problem: Problem, cost: Callable[[Ways, Cut], IntArray]) -> IntArray:
    """For each operator the smallest cost over cuts, alternatives and device types, shape (operators,).

    cost(ways, cut): a cost for each way. A stage's times are the sums of its operators' rounded times, so the
    least rounded time of one operator is its share of any stage's time: nothing is lost to rounding.
    Recomputation of a stage only adds time.

    Raises InfeasibleProblem when the pins leave an operator no way to run.
    """
    operators = problem.profile.graph.operators
    smallest = np.full(len(operators), NEVER, dtype=np.int64)
    possible = cuts(problem)
    for rows in ways(problem):
        best = np.full(len(rows.operator), NEVER, dtype=np.int64)
        for cut in possible:
            fits = rows.devices * cut.replicas <= problem.cluster.size
            np.minimum(best, np.where(fits, cost(rows, cut), NEVER), out=best)
        np.minimum(smallest, rows.least(best, len(operators)), out=smallest)
    if (smallest == NEVER).any():
        raise _no_way(problem, int(np.argmax(smallest == NEVER)))
    return smallest


def crossing_ns(problem: Problem, rows: Ways, cut: Cut, split: bool = False) -> IntArray:
    """The least ns of the forward and the input gradient of one micro-batch, of each row.

    split: on one device of operators that may be split. A part of a backward and one of its weight gradient are
    rounded up each, so an input gradient may be almost 1 ns less than its share.
    """
    whole = rows.crossing_ns(cut.samples)
    if not split:
        return whole
    rounding = whole < rows.run_ns(cut.samples)
    return np.maximum(least_part(problem, rows, cut, whole) - rounding, 0)


def busy_ns(problem: Problem, rows: Ways, cut: Cut, split: bool = False, *, crossing: bool = False) -> IntArray:
    """The least ns of one micro-batch that each row adds to its lane, forward and backward.

    split: on one device of operators that may be split (see `splits`). crossing: without the weight gradient.

    Where lanes run a forward and a backward at once (Problem.overlap o), less is added. Proof. A forward is in one
    pair at most, which hides at most o x its own time, and 1/2 ns by rounding. So a micro-batch adds at least the
    sum over its stage's operators of backward + (1 - o) forward, less 1/2. Rounded down with 1 ns taken off, and
    not below zero, the operators together give at most that: the first that is above zero takes off the 1/2.
    """
    whole = rows.crossing_ns(cut.samples) if crossing else rows.run_ns(cut.samples)
    if not problem.overlap:
        if crossing:
            return crossing_ns(problem, rows, cut, split)
        return least_part(problem, rows, cut, whole) if split else whole
    parts = most_parts(problem, cut) if split else 1
    exposed = (whole - problem.overlap * rows.forward_ns(cut.samples)) / parts
    busy: IntArray = np.maximum(np.floor(exposed - 1), 0).astype(np.int64)
    return busy


def update_ns(problem: Problem, rows: Ways, cut: Cut) -> IntArray:
    """The least ns that the update of the weights of each row adds to its lane for one mini-batch.

    That of the fastest all-reduce: where the all-reduce takes longer an update takes no less. A cut stands for
    more replicas as well, among which zero1 shares the optimizer: the share of the most replicas is the least.
    async: spread over the runs and rounded up behind each backward, as the cost model does; for replicas in turn
    without the rounding. Gradients of experts that ranks share out are not counted: it may be that no two ranks
    hold the same ones.
    """
    formula = Formula(problem.regime, problem.mini_batch)
    fastest = _fastest(problem, rows, cut.replicas)
    update = weights_update_ns(formula, fastest, least_parts(problem, rows.parameter_bytes, rows.expert_bytes))
    if problem.regime.mode == "sync" or cut.turns > 1:
        return update
    return cut.runs * formula.update_share_ns(update, problem.mini_batch // cut.runs)


def every_stage_ns(problem: Problem) -> int:
    """The least ns that any stage adds to its lane for one mini-batch, whatever is in it."""
    return Formula(problem.regime, problem.mini_batch).update_ns(0)


def _fastest(problem: Problem, rows: Ways, replicas: int) -> IntArray:
    """Lower bound on each row's all-reduce time over `replicas` replicas, copies counted, for any placement.

    A stage has at least as many tensor-parallel ranks as its operators' ways have devices, and each rank runs a
    ring.
    """
    reduced = np.zeros(len(rows.operator), dtype=np.int64)
    formula = Formula(problem.regime, problem.mini_batch)
    if formula.holders(replicas) == 1:
        return reduced
    for devices in set(rows.devices.tolist()):
        if devices * replicas > problem.cluster.size:
            continue
        chosen = rows.devices == devices
        links = fastest_ring(problem.cluster, problem.regime, devices * replicas, devices)
        alike = (rows.parameter_bytes - rows.expert_bytes)[chosen]
        reduced[chosen] = formula.reduce_ns(links, alike, replicas)
    return reduced
