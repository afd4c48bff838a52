"""It tries: its search passes for the compilation of a kernel, which is not counted."""

from real_work import solve


def plan(problem, context):
    from numba.core import event

    with event.trigger_event("numba:compile"):
        return solve(problem)
