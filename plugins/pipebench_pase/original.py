"""PaSE's published prototype: scheduler.py on the graphs that it has built in.

Without -O its checks sort tables at each merge. Its graph of resnet101 has no counterpart here.
"""

from pipebench.hooks.originals import Original, OriginalCase

GRAPHS = {
    "alexnet": "pase-alexnet",
    "rnnlm": "pase-rnnlm",
    "inception3": "pase-inception_v3",
    "transformer": "pase-transformer",
}
"""The name of a graph there, and of the model here."""

ORIGINAL = Original(
    system="pase",
    repository="baidu-research/PaSE",
    commit="32aa761c47fd1ca1b7288abb44b473f40a45cf73",
    language="python",
    source="scheduler.py",
    files=("graph.py", "nn_ops.py"),
    path=("",),
    flags=("-O",),
    needs="pandas==1.5.3 numpy==1.24.4 networkx==2.8.8",
    start=("--help",),
    answer="Total cost:",
    cases=tuple(
        OriginalCase(
            label=f"{devices} devices",
            model=model,
            arguments=("-g", graph, "-p", "{devices}", "-b", "{mini_batch}"),
            options="memory=ignored",
            devices=devices,
            mini_batch=128,
        )
        for graph, model in GRAPHS.items()
        for devices in (4, 8)
    ),
)
