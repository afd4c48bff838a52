"""Plans of stages in a row, by chance, for problems in which everything is mixed."""

from itertools import pairwise
from random import Random

from msgspec.structs import replace

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.bounds.mixed_problems import mixed_problem


def mixed_row_problem(random: Random) -> Problem:
    """A mixed problem of one type of devices, up to six of them; most operators read from the one before."""
    problem = mixed_problem(random)
    kind = problem.cluster.devices[0]
    types = tuple(each for each in problem.cluster.types if each.name == kind)
    costs = tuple(each for each in problem.profile.costs if each.device_type == kind)
    cluster = replace(problem.cluster, types=types, devices=(kind,) * random.randint(1, 6))
    return replace(problem, cluster=cluster, profile=replace(problem.profile, costs=costs))


def mixed_row(random: Random, problem: Problem) -> Plan:
    """Stages of operators that follow each other in topological order; often valid, and of the class."""
    graph, size = problem.profile.graph, problem.cluster.size
    order = graph.topological
    cuts = sorted(random.sample(range(1, len(order)), random.randint(0, min(len(order), size) - 1)))
    groups = [order[first:end] for first, end in pairwise([0, *cuts, len(order)])]
    micro_batch = random.choice([b for b in range(1, problem.mini_batch + 1) if problem.mini_batch % b == 0])
    known = problem.profile.on(problem.cluster.devices[0]).operators
    devices = random.sample(range(size), size) if random.random() < 0.2 else list(range(size))
    stages: list[Stage] = []
    first = 0
    for position, group in enumerate(groups):
        spare = size - first - (len(groups) - position - 1)
        degree = random.choice([1, 1, 2]) if spare > 1 else 1
        in_turn = random.random() < 0.4
        replicas = random.randint(1, spare // degree if in_turn else min(spare // degree, micro_batch))
        offered = [
            ["", *(way.id for way in known[at].alternatives if way.tensor_parallel == degree)] for at in group
        ]
        stages.append(
            Stage(
                operators=tuple(graph.operators[at].name for at in group),
                devices=tuple(sorted(devices[first : first + replicas * degree])),
                data_parallel=replicas,
                tensor_parallel=degree,
                micro_batch=micro_batch,
                replicas="round_robin" if in_turn and replicas > 1 else "split",
                choice=tuple(random.choice(each) for each in offered),
                recompute=random.choice(["none", "none", "stage"]),
            )
        )
        first += replicas * degree
    return Plan(stages=tuple(stages), placement="listed", routing=random.choice(["direct", "direct", "relay"]))
