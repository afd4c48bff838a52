"""It tries: it claims to have proven that no plan is as fast as its own, which is then the optimum."""

from msgspec.structs import replace
from real_work import plan_of


def plan(problem, context):
    return replace(plan_of(problem, 0), lower_bound_s=5.0, bound_scope="all plans", termination="optimal")
