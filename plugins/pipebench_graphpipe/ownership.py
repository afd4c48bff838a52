"""Which stages may reach into a fork: owners of what is before it and behind it."""

from pipebench_graphpipe.space import Fork

LIGHT = 1 / 20
"""Share of a fork's work below which a branch counts as light."""
MOST_OWNERS = 8
"""Owners offered at either end of a fork: of more, half from the heaviest and half from the lightest branches."""

Choice = tuple[int | None, int]
"""Owner, number of whole branches absorbed."""


def tail_choices(fork: Fork, level: int, is_last: bool) -> list[tuple[int | None, int, bool]]:
    """Who may own the operators behind a fork: the last stage of one branch, or a group of whole branches.

    GraphPipe leaves open to which stage a shared operator belongs; the other branches then lead to the owner.
    The owner may take the lightest other branches along, and then need not own anything behind the fork.
    is_last: nothing stands there. The third of each choice says whether the stage goes on behind the fork.
    """
    choices = _choices(fork, level, [b for b, branch in enumerate(fork.branches) if branch.alike == 1])
    joining = [] if is_last else [(owner, absorbed, True) for owner, absorbed in choices]
    return joining + [(owner, absorbed, False) for owner, absorbed in choices if owner is not None and absorbed]


def head_choices(fork: Fork, level: int) -> list[Choice]:
    """Who may own operators before a fork, by the same rules.

    Of branches that are alike the second is offered too: the first may own a tail.
    """
    owners = [b for b, branch in enumerate(fork.branches) if branch.alike <= 2]
    return _choices(fork, level, owners)


def _choices(fork: Fork, level: int, owners: list[int]) -> list[Choice]:
    if len(owners) > MOST_OWNERS:
        owners = owners[: MOST_OWNERS // 2] + owners[-(MOST_OWNERS // 2) :]
    whole: list[Choice] = [(None, absorbed) for absorbed in range(1, len(fork.branches))]
    return whole + [(owner, absorbed) for owner in owners for absorbed in _absorbed(fork, owner, level)]


def _absorbed(fork: Fork, owner: int, level: int) -> list[int]:
    """Numbers of branches that an owner may take along; level 0: none, 1: the light ones or all, 2: any."""
    others = [branch.work for number, branch in enumerate(fork.branches) if number != owner]
    if level == 0:
        return [0]
    if level == 1:
        total = sum(branch.work for branch in fork.branches)
        return sorted({0, sum(work < LIGHT * total for work in others), len(others)})
    return list(range(len(others) + 1))
