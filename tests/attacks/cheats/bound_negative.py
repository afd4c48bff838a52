"""It tries: a proven bound below zero."""

from msgspec.structs import replace
from real_work import plan_of


def plan(problem, context):
    return replace(plan_of(problem, 0), lower_bound_s=-5.0, bound_scope="all plans")
