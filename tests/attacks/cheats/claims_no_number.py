"""It tries: it claims a time that is no number, past the check of the value."""

import msgspec
from real_work import plan_of


def plan(problem, context):
    result = plan_of(problem, 0)
    msgspec.structs.force_setattr(result, "claimed_s", float("nan"))
    return result
