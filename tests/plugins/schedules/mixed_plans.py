"""Plans by chance for schedulers: on placements by rule, with numbers in flight, ks and order edges."""

from itertools import pairwise
from random import Random

from msgspec.structs import replace

from pipebench.check import check_plan
from pipebench.domain.errors import InvalidValue
from pipebench.domain.placement import BY_RULE, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.bounds.mixed_problems import mixed_plan


def any_plan(random: Random, problem: Problem) -> Plan | None:
    """A valid plan, or none: dealt out, or by a placement; some declare more than stages on devices."""
    made = random.choice([mixed_plan, ruled_plan, ruled_plan])(random, problem)
    plan = None if made is None else _varied(random, made)
    return plan if plan is not None and check_plan(problem, plan).status == "valid" else None


def ruled_plan(random: Random, problem: Problem) -> Plan | None:
    """Stages in a row of one micro-batch size, some listed in another order, on sets of equal size."""
    order = list(problem.profile.graph.topological)
    kind = random.choice([*BY_RULE, "mirrored", "mirrored"])
    pipelines, copies = 2 if kind == "mirrored" else 1, random.choice([1, 1, 1, 2])
    samples, left = divmod(problem.mini_batch, pipelines * copies)
    room = problem.cluster.size // copies
    shapes: list[tuple[int, ...]] = []
    for sets in range(1, room + 1):
        for stages in range(1, len(order) + 1):
            try:
                shapes.append(sets_of_stages(kind, sets, stages * pipelines))
            except InvalidValue:
                continue
    if left or not shapes:
        return None
    numbers = random.choices(shapes, [3 * len(each) for each in shapes])[0]
    width = random.randint(1, room // (max(numbers) + 1))
    replicas = random.choice([1, width])
    micro_batch = random.choice([1, *(size for size in range(1, samples + 1) if samples % size == 0)])
    turns = replicas > micro_batch or random.random() < 0.2
    length = len(numbers) // pipelines
    cuts = sorted(random.sample(range(1, len(order)), length - 1))
    groups = [order[first:end] for first, end in pairwise([0, *cuts, len(order)])]
    if random.random() < 0.2:
        random.shuffle(groups)
    stages_ = tuple(
        Stage(
            operators=tuple(problem.profile.graph.operators[at].name for at in groups[position % length]),
            devices=tuple(range(number * width, (number + 1) * width)),
            data_parallel=replicas,
            tensor_parallel=width // replicas,
            micro_batch=micro_batch,
            replicas="round_robin" if replicas > 1 and turns else "split",
        )
        for position, number in enumerate(numbers)
    )
    routing = random.choice(["direct", "relay"])
    return Plan(stages=stages_, copies=copies, pipelines=pipelines, placement=kind, routing=routing)


def _varied(random: Random, plan: Plan) -> Plan:
    stages, edges = plan.stages, plan.order_edges
    if random.random() < 0.2:
        stages = tuple(replace(stage, k=random.choice([1, 2, 3])) for stage in stages)
    if random.random() < 0.3:
        stages = tuple(replace(each, in_flight=random.choice([0, 1, 2, 3]) * each.micro_batch) for each in stages)
    if plan.pipelines == 1 and len(stages) > 1 and random.random() < 0.2:
        before, after = sorted(random.sample(range(len(stages)), 2))
        edges = ((before, after),)
    return replace(plan, stages=stages, order_edges=edges)
