"""It tries: another program, started without a fork of its own, searches and is never waited for."""

import os
import sys

from real_work import plan_of, steps

HERE = os.path.dirname(os.path.abspath(__file__))


def plan(problem, context):
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    code = f"import sys; sys.path.insert(0, {HERE!r}); from real_work import grind; import os;"
    code += f"os.write({writing}, str(grind({steps(problem)})).encode())"
    os.posix_spawn(
        sys.executable, [sys.executable, "-S", "-c", code], dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    )
    os.close(writing)
    return plan_of(problem, int(os.read(reading, 64)))
