"""Which stage of one plan is which stage of the other."""

from pipebench.bench.difference.assignment import heaviest_matching
from pipebench.domain.plan import Plan
from pipebench.domain.value import digest


def match_stages(before: Plan, after: Plan) -> dict[int, int]:
    """Stage of `before` to stage of `after`: as many operators as possible stay where they are.

    Of matchings that keep equally many, one in which most devices stay, and of those one in which positions
    move least. Stages without a common operator are never matched. Read backwards it is the matching of
    (after, before).
    """
    # Equally good matchings may remain; which of the two plans goes first must not choose between them.
    if digest(before) > digest(after):
        return {left: right for right, left in match_stages(after, before).items()}
    homes: dict[str, list[int]] = {}
    for position, stage in enumerate(after.stages):
        for name in stage.operators:
            homes.setdefault(name, []).append(position)
    common: dict[tuple[int, int], int] = {}
    for position, stage in enumerate(before.stages):
        for name in stage.operators:
            for home in homes.get(name, ()):
                common[position, home] = common.get((position, home), 0) + 1
    most = max(len(before.stages), len(after.stages))
    devices = max(len(stage.devices) for stage in (*before.stages, *after.stages))
    device_unit = most * most + 1
    operator_unit = device_unit * (most * devices + 1)
    return heaviest_matching(
        {
            (left, right): operators * operator_unit
            + len(set(before.stages[left].devices) & set(after.stages[right].devices)) * device_unit
            + most
            - abs(left - right)
            for (left, right), operators in common.items()
        }
    )
