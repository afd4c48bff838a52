"""Help and list load no numerical library and no algorithm: asserted on sys.modules, never on time."""

import subprocess
import sys

import pytest

HEAVY = {"numpy", "networkx", "pulp", "numba", "highspy", "torch", "rich"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["compare", "--help"],
        ["list"],
        ["list", "schedulers"],
        ["list", "clusters"],
        ["list", "profiles"],
        ["list", "suites"],
        ["info", "madpipe"],
        ["plugin"],
        ["plugin", "list"],
        ["plugin", "check", "--help"],
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    code = (
        "import sys; from pipebench.cli.main import run; code = run(sys.argv[1:]);"
        "print('LOADED', *sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.partition("LOADED ")[2].split())
    assert "pipebench.cli.main" in loaded
    assert not HEAVY & loaded
    plugin_modules = {name for name in loaded if name.startswith("pipebench_")}
    light = (".plugin", "options", ".deviations")
    assert all(name.endswith(light) or "." not in name for name in plugin_modules), plugin_modules
    assert not any(name.startswith(("pipebench.algorithms", "pipebench.simulation")) for name in loaded)
