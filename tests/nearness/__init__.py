"""How near the best known plans are to the proven bounds, on problems of every kind.

python -m tests.nearness RESULTS [--cells 120] [--seed 0] [--limit 20] [--dags 50] [--shard K/N] [--for SECONDS]
                          [--apart | --few | --blocks N]

The suites `quick`, `branches` and a sample of `chains`, language models on 8 to 64 devices, and random graphs with
hardly more memory than the least. RESULTS is a file of one JSON object a problem. A problem that stands there is
not run again, so that a long run can be made in pieces, and by several processes. The tables are of all that stand
there.

--apart: the workloads alone, with a flush, cells of `chains` first: each as it is, with links that take no time,
with memory for all, and with both.

--blocks: problems on few devices, their operators joined to N blocks: the best of all plans beside the bound, both
of the blocks.

--few: cells of `chains` with a flush on two and three devices alone: what `best` finds, beside all rows of few
stages.
"""
