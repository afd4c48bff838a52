"""The graph of groups stays acyclic and in order, whatever is joined."""

from itertools import combinations
from random import Random

import pytest

from pipebench.algorithms.blocks.quotient import Quotient
from tests.algorithms.convexity import Convexity


def test_groups_that_would_wait_for_each_other_are_not_joined() -> None:
    """0 and 1 both lead to 2 and 3. {0, 2} is convex and so is {1, 3}, but each would wait for the other."""
    tensors = [frozenset({0}), frozenset({1})]
    quotient = Quotient([{2: tensors[0], 3: tensors[0]}, {2: tensors[1], 3: tensors[1]}, {}, {}])
    assert quotient.between(1, 3) is not None
    quotient.join(0, 2)
    assert quotient.between(1, 3) is None


@pytest.mark.parametrize("seed", range(60))
def test_any_joins_leave_an_order(seed: int) -> None:
    chance = Random(seed)
    count = chance.randint(2, 14)
    after = [
        {j: frozenset({i}) for j in range(i + 1, count) if chance.random() < chance.choice([0.15, 0.4])}
        for i in range(count)
    ]
    quotient = Quotient(after)
    members = {group: {group} for group in range(count)}
    convexity = Convexity([sorted(each) for each in after])
    for _ in range(3 * count):
        edges = [(v, w) for v in members for w in quotient.after[v]]
        if not edges:
            break
        v, w = chance.choice(edges)
        allowed = quotient.between(v, w) is not None
        assert allowed == (not around(quotient, v, w))
        if allowed:
            kept = quotient.join(v, w)
            gone = w if kept == v else v
            members[kept] |= members.pop(gone)
        if chance.random() < 0.2:
            quotient.settle()
        assert all(quotient.place[a] < quotient.place[b] for a in members for b in quotient.after[a])
        assert all(convexity.is_convex(sorted(each)) for each in members.values())
        for one, other in combinations(sorted(members), 2):
            crossing = {i for i in members[one] for j in after[i] if j in members[other]}
            assert set(quotient.after[one].get(other, frozenset())) == crossing


def around(quotient: Quotient, first: int, second: int) -> bool:
    """Whether a path leads from one group to the other through a third."""
    stack = [group for group in quotient.after[first] if group != second]
    seen = set(stack)
    while stack:
        for group in quotient.after[stack.pop()]:
            if group == second:
                return True
            if group not in seen:
                seen.add(group)
                stack.append(group)
    return False
