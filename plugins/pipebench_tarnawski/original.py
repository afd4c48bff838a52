"""The published program of Tarnawski et al.: throughput-dp/dp.cpp on its inputs."""

from pipebench.hooks.originals import Original, OriginalCase


def _case(label: str, arguments: tuple[str, ...], options: str, may_differ: str = "") -> OriginalCase:
    return OriginalCase(
        label=label,
        inputs="throughput-inputs/*/*.json",
        arguments=arguments,
        stdin=True,
        options=options,
        devices="maxFPGAs",
        hosts="maxCPUs",
        memory_bytes="maxSizePerFPGA",
        may_differ=may_differ,
    )


ORIGINAL = Original(
    system="dnn-partitioning",
    repository="msr-fiddle/dnn-partitioning",
    commit="b207b6ad27a1407d321f1e028cea96d7f2c90e3e",
    language="c++",
    source="throughput-dp/dp.cpp",
    files=("nlohmann/json.hpp",),
    answer='"maxLoad":',
    cases=(
        _case("", (), "memory=released"),
        _case(
            "linearized",
            ("-linearize",),
            "memory=released,linearize=true",
            "each cuts a depth-first order of its own; the original's hangs on a hash table",
        ),
    ),
)
