"""A plan as PipeDream's graph.txt: the profile with a stage_id on every node."""

from msgspec.structs import replace

from pipebench.domain.problem import Problem
from pipebench.domain.profile import OperatorCosts, Profile
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.requirements import (
    require_one_stage,
    require_whole_experts,
    require_whole_sequences,
)
from pipebench.formats.profiles.parts import only
from pipebench.formats.profiles.pipedream import write

WHO = "PipeDream"
REVISION = "PipeDream 7db6a1c"


def refuse(problem: Problem) -> None:
    """Raises CannotExpress where no plan of the problem can be expressed."""
    require_whole_experts(problem, "PipeDream's files have no word for it")
    require_whole_sequences(problem, "PipeDream's files have no word for it")
    require_one_stage(problem.pins.virtual_stages or 1, WHO)


def text(made: Arrangement) -> str:
    """The file. Raises CannotExpress for stages that share ranks."""
    refuse(made.problem)
    require_one_stage(made.virtual, WHO)
    stage_of = {op: position for position, operators in enumerate(made.stages) for op in operators}
    profile = made.problem.profile
    operators = tuple(
        replace(operator, attributes=operator.attributes | {"stage_id": stage_of[position]})
        for position, operator in enumerate(profile.graph.operators)
    )
    device = made.problem.cluster.devices[0]
    sizes = profile.on(device).micro_batches
    size = made.micro_batch if made.micro_batch in sizes else sizes[0]
    tagged = replace(profile, graph=replace(profile.graph, operators=operators))
    return write(_as_run(only(tagged, device, size), made)).data.decode()


def _as_run(profile: Profile, made: Arrangement) -> Profile:
    """The costs of the alternatives that the plan chose, so that the file says what its stages cost."""
    chosen = {
        name: identifier
        for stage in made.plan.stages
        for name, identifier in zip(stage.operators, stage.choice, strict=False)
    }
    costs = profile.costs[0]

    def run(each: OperatorCosts) -> OperatorCosts:
        identifier = chosen.get(each.operator, "")
        if not identifier:
            return each
        way = each.alternative(identifier)
        return replace(each, forward_s=way.forward_s, backward_s=way.backward_s, weight_gradient_s=())

    return replace(profile, costs=(replace(costs, operators=tuple(map(run, costs.operators))),))
