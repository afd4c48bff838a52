"""It tries: a child searches and nobody waits for it; the number comes through a pipe."""

import os

from real_work import plan_of, search


def plan(problem, context):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, str(search(problem)).encode())
        os._exit(0)
    return plan_of(problem, int(os.read(reading, 64)))
