"""What asv reports night by night. Runs under an interpreter that has asv; histories on stdin, answers on stdout.

For each threshold, history and judged night: the positions at which asv says that a regression begins.
"""

import json
import sys

import asv  # type: ignore[import-not-found]
from asv.step_detect import detect_regressions, detect_steps  # type: ignore[import-not-found]

request = json.load(sys.stdin)
answers: list[list[list[list[int]]]] = [[] for _ in request["thresholds"]]
for series in request["histories"]:
    for found in answers:
        found.append([])
    for night in range(request["first"], len(series)):
        steps = detect_steps(series[: night + 1], [1] * (night + 1))
        for found, threshold in zip(answers, request["thresholds"], strict=True):
            regressions = detect_regressions(steps, threshold)[2] or []
            found[-1].append([begins for _, begins, _, _ in regressions])
json.dump({"version": asv.__version__, "positions": answers}, sys.stdout)
