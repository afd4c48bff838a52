"""Made checkouts: programs that print what an original would, on inputs of one operator."""

import json
from pathlib import Path

DRIVER = "optimizer/optimizer_graph_hierarchical.py"
GRAPH = "profiler/image_classification/profiles/{name}/graph.txt"
FIGURES = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size=0.0\n"
IMAGES_BYTES = 64 * 3 * 224 * 224 * 4
"""Of the input: 64 images, which is the profiled mini-batch."""
STARTS = "import sys\nif '--help' in sys.argv:\n    sys.exit()\n"


def pipedream(folder: Path, script: str, **times_ms: tuple[float, float]) -> Path:
    """A checkout whose optimizer is `script`. times_ms: forward and backward of the only node of each profile."""
    for name in (DRIVER, "optimizer/utils.py", "graph/graph.py"):
        _write(folder / name, "")
    (folder / DRIVER).write_text(STARTS + script)
    for name, (forward, backward) in times_ms.items():
        given = f"node0 -- Input0 -- {FIGURES.format(0.0, 0.0, float(IMAGES_BYTES))}"
        only = f"node1 -- Linear -- {FIGURES.format(forward, backward, 8.0)}"
        _write(folder / GRAPH.format(name=name), f"{given}{only}\tnode0 -- node1\n")
    return folder


def prints(seconds: str) -> str:
    """A script that prints a value as the original does."""
    return f"print('Time taken by single-stage pipeline: 7')\nprint('Time per stage in pipeline:', {seconds})\n"


ALGO = """\
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>
#include "nlohmann/json.hpp"
struct Instance {{ int maxDevices, mbsInBatch; double maxMemoryPerDevice, bandwidth; }};
struct Result {{ std::vector<int> stages; }};
struct Graph {{
    int devices;
    explicit Graph(const Instance &given) : devices(given.maxDevices) {{}}
    Result runDP() {{ return Result{{{{std::vector<int>(devices > {most} ? 0 : 1)}}}}; }}
    double getTPSForResult(const Result &) {{ return {seconds} / devices; }}
}};
int main() {{ return 3; }}
"""
JSON_HEADER = """\
#include <istream>
struct json {
    template <typename T> T get() const { return T{}; }
};
inline std::istream &operator>>(std::istream &from, json &) { return from; }
"""


def piper(folder: Path, seconds: float, most: int = 10**6) -> Path:
    """A checkout whose program answers `seconds` over the devices; beyond `most` devices no plan."""
    _write(folder / "algo.cpp", ALGO.format(seconds=seconds, most=most))
    _write(folder / "nlohmann" / "json.hpp", JSON_HEADER)
    way = {
        "id": "vanilla",
        "timePerSample": seconds,
        "parameterSize": 0.0,
        "memoryUsageA": 1.0,
        "memoryUsageB": 0.0,
        "syncTimeFw": {},
        "syncTimeBw": {},
    }
    document = {
        "maxDevices": 4,
        "maxMemoryPerDevice": 100.0,
        "bandwidth": 1e9,
        "mbsInBatch": 64,
        "nodes": [{"id": 1, "name": "only", "TMPCs": {"1": [way]}}],
        "edges": [],
    }
    _write(folder / "inputs" / "one.json", json.dumps(document))
    return folder


def partitioning(folder: Path, printed: str) -> Path:
    """A checkout whose program reads an input to its end and prints that load."""
    _write(
        folder / "throughput-dp" / "dp.cpp",
        "#include <iostream>\n#include <iterator>\n#include <string>\n"
        "int main() { std::string all{std::istreambuf_iterator<char>(std::cin), {}};"
        f' std::cout << (all.empty() ? "nothing" : "{{\\"maxLoad\\": {printed},\\n}}"); }}\n',
    )
    _write(folder / "nlohmann" / "json.hpp", "")
    node = {
        "id": 1,
        "supportedOnFpga": 1,
        "cpuLatency": 50.0,
        "fpgaLatency": 3.25,
        "isBackwardNode": 0,
        "size": 10.0,
    }
    document = {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [node], "edges": []}
    _write(folder / "throughput-inputs" / "LayerGraphs" / "one.json", json.dumps(document))
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
