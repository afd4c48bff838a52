"""It tries: it writes the report of its search itself, to every pipe that its process has, and leaves."""

import os
import stat

import msgspec
from real_work import solve


def plan(problem, context):
    from pipebench.bench.searches.isolation.wire import frame
    from pipebench.bench.searches.request import SearchReport

    result = solve(problem)
    if len(result.plan.stages) == 1:
        return result
    fields = {
        "status": "found",
        "result": result,
        "plan": result.plan,
        "schedule": context.schedule("1f1b", problem, result.plan),
        "scheduler": "1f1b",
        "cold_cpu_s": 2e-9,
        "cold_s": 2e-9,
        "samples": [{"cpu_s": 2e-9, "wall_s": 2e-9}],
    }
    known = {name: value for name, value in fields.items() if name in SearchReport.__struct_fields__}
    forged = frame(msgspec.msgpack.encode(msgspec.convert(msgspec.to_builtins(known), SearchReport)))
    for descriptor in range(3, 64):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, forged)
        except OSError:
            continue
    os._exit(0)
