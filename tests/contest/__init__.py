"""Planner `best` against every planner with five times its time, on problems that are drawn from what ships.

python -m tests.contest RESULTS [--problems 30] [--seed 0] [--limit 300] [--share 5] [--for SECONDS]

RESULTS is a file of one JSON object a problem. A problem that stands there is not run again, so that a long
contest can be run in pieces; the table is that of all that stand there.
"""
