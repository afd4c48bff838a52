"""Whether a plan is valid before its tasks are ordered: coverage, sizes, choices, devices, routing, pins."""

from collections.abc import Callable
from math import prod

from pipebench.check.ranks import uneven_groups, with_experts, wrong_experts
from pipebench.check.structure import cyclic_stages, data_edges, leaves_and_returns
from pipebench.costs.messages import messages
from pipebench.costs.placement import devices_of_copies, turns_between
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.placement import pipelines_of_kind, sets_listed, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Rule, Verdict, Witness

ALIKE = (
    "operators",
    "choice",
    "sharding",
    "recompute",
    "micro_batch",
    "data_parallel",
    "tensor_parallel",
    "replicas",
)
"""Fields of a stage that are the same in all pipelines of a plan."""


def unlike_mirror(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage that is not like its mirror, the stage at the same position in the first pipeline.

    They may differ in their devices only.
    """
    del problem
    for position in range(plan.pipeline_length, len(plan.stages)):
        first = plan.mirrors(position)[0]
        here, there = plan.stages[position], plan.stages[first]
        for name in ALIKE:
            if getattr(here, name) != getattr(there, name):
                message = (
                    f"stages {first} and {position} stand at one position of two pipelines and differ in {name}: "
                    f"{_short(getattr(there, name))} and {_short(getattr(here, name))}"
                )
                rule: Rule = "coverage" if name == "operators" else "shape"
                return Witness(rule=rule, message=message, stage=position)
    return None


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def uncovered_operator(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator that is unknown, in two stages, or in none; or the first empty stage.

    Only the first pipeline is checked: the others hold the same operators (`unlike_mirror`).
    """
    graph = problem.profile.graph
    home: dict[str, int] = {}
    for position, stage in enumerate(plan.stages[: plan.pipeline_length]):
        if not stage.operators:
            return Witness(rule="coverage", message=f"stage {position} holds no operator", stage=position)
        for name in stage.operators:
            if name not in graph.index:
                message = f"stage {position} holds {name!r}, which the graph does not have"
                return Witness(rule="coverage", message=message, stage=position, operator=name)
            before = home.get(name)
            cloned = before != position and graph.operators[graph.index[name]].constant
            if before is not None and not cloned:
                where = (
                    f"twice in stage {position}" if before == position else f"in stages {before} and {position}"
                )
                message = f"operator {name!r} is {where}"
                return Witness(rule="coverage", message=message, stage=position, operator=name)
            home[name] = position
    for operator in graph.operators:
        if operator.name not in home:
            message = f"operator {operator.name!r} is in no stage"
            return Witness(rule="coverage", message=message, operator=operator.name)
    return None


def wrong_size(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage whose devices or micro-batch are unknown, do not divide, or do not match."""
    if problem.mini_batch % plan.all_pipelines:
        pipelines = f"{plan.pipelines} pipelines in each of " if plan.pipelines > 1 else ""
        message = f"{pipelines}{plan.copies} copies do not divide the mini-batch {problem.mini_batch}"
        return Witness(rule="shape", message=message)
    if plan.devices_used > problem.cluster.size:
        message = f"{plan.copies} copies need {plan.devices_used} devices, the cluster has {problem.cluster.size}"
        return Witness(rule="shape", message=message)
    samples = problem.mini_batch // plan.all_pipelines
    for position in range(len(plan.stages)):
        message = _devices(plan, position) or _micro_batch(plan, position, samples)
        if message:
            return Witness(rule="shape", message=message, stage=position)
        for device in devices_of_copies(plan, plan.stages[position].devices):
            if not 0 <= device < problem.cluster.size:
                message = f"stage {position} uses device {device}; the cluster has 0 to {problem.cluster.size - 1}"
                return Witness(rule="shape", message=message, stage=position, device=device)
    return None


def _devices(plan: Plan, position: int) -> str:
    stage = plan.stages[position]
    needed = stage.data_parallel * stage.tensor_parallel
    if len(stage.devices) == needed:
        return ""
    return (
        f"stage {position} has {len(stage.devices)} devices, data_parallel {stage.data_parallel} "
        f"x tensor_parallel {stage.tensor_parallel} needs {needed}"
    )


def _micro_batch(plan: Plan, position: int, samples: int) -> str:
    stage = plan.stages[position]
    if samples % stage.micro_batch:
        whose = f"the {samples} samples of a {'pipeline' if plan.pipelines > 1 else 'copy'}"
        return f"stage {position}: micro-batch {stage.micro_batch} does not divide {whose}"
    if stage.sharers > stage.micro_batch:
        return f"stage {position}: {stage.sharers} replicas share a micro-batch of {stage.micro_batch}"
    return ""


def wrong_turns(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage whose replicas take micro-batches in turn and do not meet those of another stage one by one.

    Stages that exchange tensors then have one micro-batch size; stages on the same devices have the same turns.
    """
    if not plan.takes_turns:
        return None
    for source, target in _exchanging(problem, plan):
        one, other = plan.stages[source], plan.stages[target]
        if max(one.turns, other.turns) > 1 and one.micro_batch != other.micro_batch:
            message = (
                f"stages {source} and {target} exchange micro-batches of {one.micro_batch} and "
                f"{other.micro_batch} samples, and replicas take them in turn: the sizes must be equal"
            )
            return Witness(rule="shape", message=message, stage=target)
    on_devices: dict[tuple[int, ...], int] = {}
    for position, stage in enumerate(plan.stages):
        first = on_devices.setdefault(stage.devices, position)
        if plan.stages[first].turns != stage.turns:
            message = (
                f"stages {first} and {position} are on the same devices with {plan.stages[first].turns} and "
                f"{stage.turns} replicas in turn"
            )
            return Witness(rule="C3", message=message, stage=position)
    return None


def _exchanging(problem: Problem, plan: Plan) -> list[tuple[int, int]]:
    """Pairs of stages (source, target) between which messages go."""
    return sorted({(message.source, message.target) for message in messages(problem.profile.graph, plan)})


def wrong_choice(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator whose alternative is unknown, or made for another tensor-parallel degree.

    The plain way ('') is allowed at any degree: each device then computes the whole operator.
    """
    graph = problem.profile.graph
    for position, stage in enumerate(plan.stages):
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        for name, identifier in zip(stage.operators, stage.choice, strict=False):
            degrees = {a.id: a.tensor_parallel for a in costs[graph.index[name]].alternatives}
            degree = degrees.get(identifier, stage.tensor_parallel if identifier == "" else 0)
            if degree == 0:
                message = f"operator {name!r} has no alternative {identifier!r}"
            elif degree != stage.tensor_parallel:
                message = (
                    f"alternative {identifier!r} of operator {name!r} is for tensor_parallel {degree}, "
                    f"stage {position} has {stage.tensor_parallel}"
                )
            else:
                continue
            return Witness(rule="shape", message=message, stage=position, operator=name)
    return None


def wrong_sharding(problem: Problem, plan: Plan) -> Witness | None:
    """The first operator whose split is wrong.

    A split is wrong when it names an unknown dim, cuts a dim finer than its size, needs more devices than a
    replica has, or comes with an alternative.
    """
    for position, stage in enumerate(plan.stages):
        for name, split in zip(stage.operators, stage.sharding, strict=False):
            message = _split(problem, stage, name, split) or _choice_flaw(stage, name, split)
            if message:
                return Witness(rule="shape", message=f"stage {position}: {message}", stage=position, operator=name)
    return None


def _split(problem: Problem, stage: Stage, name: str, split: dict[str, int]) -> str:
    graph = problem.profile.graph
    sizes = {"batch": -(-stage.micro_batch // stage.sharers)} | graph.operators[graph.index[name]].dims
    for dim, parts in split.items():
        if dim not in sizes:
            return f"operator {name!r} has no dim {dim!r} to split"
        if not 1 <= parts <= sizes[dim]:
            return f"operator {name!r}: dim {dim!r} of size {sizes[dim]} is split into {parts}"
    each = len(stage.devices) // stage.data_parallel
    if prod(split.values()) > each:
        return f"operator {name!r} is split over {prod(split.values())} of {each} devices"
    return ""


def _choice_flaw(stage: Stage, name: str, split: dict[str, int]) -> str:
    """Why an operator may not have both a split and an alternative; '' where it has only one of them.

    An alternative has its own way of splitting.
    """
    chosen = stage.choice[stage.operators.index(name)] if stage.choice else ""
    if chosen and prod(split.values()) > 1:
        return f"operator {name!r} is split and runs by alternative {chosen!r}"
    return ""


def wrong_placement(problem: Problem, plan: Plan) -> Witness | None:
    """The first device used in a way that the plan's placement does not allow.

    Two stages share all of their devices, in one order, or none; with `apart` no devices are shared.
    Where the placement has a rule, it says on which set each stage stands.
    All pipelines use the same device sets. Stages that hold the same operators, one in each pipeline, stand on
    different sets. Copies of the pipelines never share a device.
    """
    del problem
    return (
        _shared_device(plan)
        or _wrong_set(plan)
        or _other_sets(plan)
        or _mirror_in_place(plan)
        or _shared_by_copies(plan)
    )


def _shared_device(plan: Plan) -> Witness | None:
    owner: dict[int, int] = {}
    for position, stage in enumerate(plan.stages):
        repeats = len(set(stage.devices)) < len(stage.devices)
        for device in stage.devices:
            before = owner.setdefault(device, position)
            if repeats and stage.devices.count(device) > 1:
                message = f"stage {position} lists device {device} twice"
            elif before == position or (
                plan.placement != "apart" and plan.stages[before].devices == stage.devices
            ):
                continue
            elif plan.placement != "apart":
                message = f"stages {before} and {position} share device {device} but list different devices"
            else:
                message = f"stages {before} and {position} share device {device}, the plan does not declare it"
            return Witness(rule="C3", message=message, stage=position, device=device)
    return None


def _wrong_set(plan: Plan) -> Witness | None:
    """The first stage on another set than the placement says, or a wrong number of stages for the placement."""
    pipelines = pipelines_of_kind(plan.placement)
    if pipelines not in (None, plan.pipelines):
        message = (
            f"the placement {plan.placement!r} is of {pipelines} pipelines, the plan has {plan.pipelines}"
            if pipelines != 1
            else f"the placement {plan.placement!r} is of one pipeline, the plan has {plan.pipelines}"
        )
        return Witness(rule="C3", message=message)
    if plan.placement == "listed":
        return None
    found = sets_listed([stage.devices for stage in plan.stages])
    try:
        expected = sets_of_stages(plan.placement, max(found) + 1, len(found))
    except InvalidValue as error:
        return Witness(rule="C3", message=str(error))
    for position, (number, wanted) in enumerate(zip(found, expected, strict=True)):
        if number != wanted:
            devices = plan.stages[found.index(wanted)].devices
            message = (
                f"the placement {plan.placement!r} puts stage {position} on set {wanted} (devices {devices}), "
                f"it is on set {number} (devices {plan.stages[position].devices})"
            )
            return Witness(rule="C3", message=message, stage=position, device=plan.stages[position].devices[0])
    return None


def _other_sets(plan: Plan) -> Witness | None:
    """The first stage on a device set that another pipeline does not use."""
    for first in range(0, len(plan.stages), plan.pipeline_length):
        used = {plan.stages[position].devices for position in plan.pipeline_of(first)}
        for position, stage in enumerate(plan.stages):
            if stage.devices not in used:
                message = (
                    f"stage {position} is on devices {stage.devices}, where pipeline "
                    f"{first // plan.pipeline_length} has no stage: pipelines on devices of their own are copies"
                )
                return Witness(rule="C3", message=message, stage=position, device=stage.devices[0])
    return None


def _mirror_in_place(plan: Plan) -> Witness | None:
    """The first stage that shares its devices with a stage that holds the same operators."""
    for position in range(plan.pipeline_length):
        first: dict[tuple[int, ...], int] = {}
        for mirror in plan.mirrors(position):
            devices = plan.stages[mirror].devices
            other = first.setdefault(devices, mirror)
            if other != mirror:
                message = (
                    f"stages {other} and {mirror} hold the same operators in two pipelines, "
                    f"and both are on devices {devices}"
                )
                return Witness(rule="C3", message=message, stage=mirror, device=devices[0])
    return None


def _shared_by_copies(plan: Plan) -> Witness | None:
    used = sorted({device for stage in plan.stages for device in stage.devices})
    seen: set[int] = set()
    for device in devices_of_copies(plan, used):
        if device in seen:
            return Witness(rule="C3", message=f"device {device} is in two copies of the pipeline", device=device)
        seen.add(device)
    return None


def relayed_backwards(problem: Problem, plan: Plan) -> Witness | None:
    """The first pair of stages between which a relayed tensor would go against the order of the list."""
    if plan.routing != "relay":
        return None
    for source, target in sorted(data_edges(problem.profile.graph, plan)):
        if source > target:
            message = f"routing is relay, but stage {source} sends to stage {target}, which is listed before it"
            return Witness(rule="shape", message=message, stage=source)
    return None


def beyond_the_costs(problem: Problem, plan: Plan) -> str:
    """Why the cost model cannot price a well-formed plan; '' when it can."""
    if problem.regime.mode == "async" and plan.pipelines > 1:
        return (
            f"the weights of {plan.pipelines} pipelines are reduced together, and in async nothing says how many "
            "versions of them each one keeps"
        )
    for position, stage in enumerate(plan.stages):
        mirrored = [device for mirror in plan.mirrors(position) for device in plan.stages[mirror].devices]
        types = {problem.cluster.devices[device] for device in devices_of_copies(plan, mirrored)}
        if len(types) > 1:
            return f"stage {position} runs on devices of several types ({', '.join(sorted(types))})"
        if any(parts > 1 for split in stage.sharding for parts in split.values()):
            if with_experts(problem, stage):
                return f"stage {position} splits dims of its operators, and ranks share out experts of others"
            if problem.regime.context_ranks > 1:
                return f"stage {position} splits dims of its operators, and ranks share out its sequences"
            if problem.regime.shards_in_groups:
                return f"stage {position} splits dims of its operators, and groups of ranks share out its weights"
            unsaid = _unsaid(problem, stage)
            if unsaid:
                return f"stage {position} splits dims of its operators, but {unsaid}"
    for source, target in _exchanging(problem, plan) if plan.takes_turns else ():
        try:
            turns_between(plan.stages[source], plan.stages[target])
        except UnsupportedProblem as error:
            return error.message
    return ""


def _unsaid(problem: Problem, stage: Stage) -> str:
    """The first tensor for which an operator does not state how its dims cut it; '' if there is none.

    An operator that states nothing for any tensor is taken to have samples as the first axis of each tensor. Then
    only a split of other dims is undefined.
    """
    graph = problem.profile.graph
    for name, split in zip(stage.operators, stage.sharding, strict=True):
        position = graph.index[name]
        operator = graph.operators[position]
        made = (graph.tensors[tensor].name for tensor in graph.outputs[position])
        for tensor in (*operator.inputs, *made, *operator.parameters):
            open_split = any(dim != "batch" and parts > 1 for dim, parts in split.items())
            if tensor not in operator.axes and (operator.axes or open_split):
                return f"operator {name!r} does not say which of them the axes of {tensor!r} span"
    return ""


RULES: tuple[Callable[[Problem, Plan], Witness | None], ...] = (
    unlike_mirror,
    uncovered_operator,
    wrong_size,
    wrong_choice,
    wrong_experts,
    uneven_groups,
    wrong_sharding,
    leaves_and_returns,
    cyclic_stages,
    wrong_placement,
    relayed_backwards,
    wrong_turns,
)
"""The rules in the order in which they are tried; each may rely on those before it."""


def check_plan(problem: Problem, plan: Plan) -> Verdict:
    """The verdict on a plan: coverage, sizes, choices, C1, C2, C3, routing (GraphPipe section 4, C1-C3).

    Each pipeline of a plan must keep the rules, and all pipelines must hold the same stages.
    The verdict is `unknown` when the plan is well formed but the cost model cannot price it.
    Memory depends on the order of tasks and is judged with a schedule. Pins are judged by `check_pins`.
    """
    for rule in RULES:
        witness = rule(problem, plan)
        if witness is not None:
            return Verdict(status="invalid", witness=witness)
    reason = beyond_the_costs(problem, plan)
    return Verdict(status="unknown", reason=reason) if reason else Verdict(status="valid")
