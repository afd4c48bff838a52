"""Piper's published program: algo.cpp, whose own `main` runs all experiments of the paper, not one problem."""

from pipebench.hooks.originals import Original, OriginalCase

GIB = 2.0**30
MAIN = """\
int main(int count, char **words) {
    if (count != 6) return 2;
    std::ifstream file(words[1]);
    json document;
    file >> document;
    Instance instance = document.get<Instance>();
    instance.maxDevices = std::stoi(words[2]);
    instance.maxMemoryPerDevice = std::stod(words[3]);
    instance.mbsInBatch = std::stoi(words[4]);
    instance.bandwidth = std::stod(words[5]);
    Graph graph(instance);
    Result found = graph.runDP();
    if (found.stages.empty()) {
        std::cout << "no plan fits" << std::endl;
        return 0;
    }
    std::cout << "slowest stage: " << std::setprecision(17) << graph.getTPSForResult(found) << std::endl;
    return 0;
}
"""


def _case(label: str, devices: int | str, memory_bytes: float | str) -> OriginalCase:
    return OriginalCase(
        label=label,
        inputs="inputs/*.json",
        arguments=("{input}", "{devices}", "{memory}", "{mini_batch}", "{bandwidth}"),
        options="memory=piper,choice=greedy",
        devices=devices,
        memory_bytes=memory_bytes,
        bandwidth_bytes_s="bandwidth",
        mini_batch="mbsInBatch",
    )


ORIGINAL = Original(
    system="piper",
    repository="msr-fiddle/piper",
    commit="d7fc8cf91048f4b71dc2f9182fa14ebf720c016e",
    language="c++",
    source="algo.cpp",
    files=("nlohmann/json.hpp",),
    main=MAIN,
    answer="slowest stage:",
    no_plan="no plan fits",
    cases=(
        _case("as the file says", "maxDevices", "maxMemoryPerDevice"),
        _case("8 x 8 GiB", 8, 8 * GIB),
        _case("8 x 2 GiB", 8, 2 * GIB),
        _case("32 x 2 GiB", 32, 2 * GIB),
        _case("64 x 8 GiB", 64, 8 * GIB),
    ),
)
