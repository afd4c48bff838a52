"""It tries: a trace hook steps through its search, so that a debugger's frame does the work."""

import sys

from real_work import plan_of, search


def plan(problem, context):
    found = []

    def hook(frame, event, argument):
        if not found:
            found.append(0)
            found[0] = search(problem)

    sys.settrace(hook)
    try:
        return plan_of(problem, _number(found))
    finally:
        sys.settrace(None)


def _number(found):
    return found[0]
