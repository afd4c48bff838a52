"""It tries: it claims that a mini-batch takes less than no time."""

from msgspec.structs import replace
from real_work import plan_of


def plan(problem, context):
    return replace(plan_of(problem, 0), claimed_s=-1.0)
