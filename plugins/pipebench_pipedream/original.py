"""PipeDream's published optimizer: optimizer_graph_hierarchical.py on its profiles.

Cuts are free unless it is given a compression ratio; it looks at memory only when asked.
"""

from pipebench.hooks.originals import Original, OriginalCase

PROFILES = "profiler/*/profiles/*/graph.txt"
NO_LIMIT = 2.0**61
"""Bytes of a device where memory is not looked at."""


def _case(label: str, arguments: tuple[str, ...], options: str, memory_bytes: float = NO_LIMIT) -> OriginalCase:
    return OriginalCase(
        label=label,
        inputs=PROFILES,
        arguments=("-n", "{devices}", "-f", "{input}", "-b", "{bandwidth}", *arguments),
        options=",".join(filter(None, ("cost=released", options))),
        mode="async",
        devices=8,
        memory_bytes=memory_bytes,
        bandwidth_bytes_s=1e9,
    )


ORIGINAL = Original(
    system="pipedream",
    repository="msr-fiddle/pipedream",
    commit="7db6a1c3e64996d5b319faec6ca38cb31bfea1c4",
    language="python",
    source="optimizer/optimizer_graph_hierarchical.py",
    files=("optimizer/utils.py", "graph/graph.py"),
    path=("", "optimizer"),
    needs="graphviz numpy",
    start=("--help",),
    answer="Time per stage in pipeline:",
    cases=(
        _case("", (), ""),
        _case("cuts charged", ("--activation_compression_ratio", "1"), "communication=charged"),
        _case("no replicas", ("--straight_pipeline",), "replication=none"),
        _case("16 GB", ("-s", "{memory}", "--use_memory_constraint"), "", 16e9),
    ),
)
