"""What Apache Otava reports night by night. Runs under an interpreter that has it; histories on stdin, answers on
stdout.

For each threshold (the largest p), history and judged night: the positions at which Otava says that values rise.
"""

import json
import sys
from importlib.metadata import version

from otava.analysis import compute_change_points  # type: ignore[import-not-found]

request = json.load(sys.stdin)
answers: list[list[list[list[int]]]] = []
for threshold in request["thresholds"]:
    answers.append([])
    for series in request["histories"]:
        nights = []
        for night in range(request["first"], len(series)):
            found, _ = compute_change_points(list(series[: night + 1]), max_pvalue=threshold)
            nights.append([int(point.index) for point in found if point.stats.mean_2 > point.stats.mean_1])
        answers[-1].append(nights)
json.dump({"version": version("apache-otava"), "positions": answers}, sys.stdout)
