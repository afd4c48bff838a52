"""A format that a plugin brings is read like the built-in ones."""

import json
from pathlib import Path

import pytest

from pipebench.bench.suites.selection import Selection, select
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.manager import Host
from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install

SOURCE = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Format

PIPEBENCH_API = 1

@hookimpl
def pipebench_formats():
    return [Format(name="layers", summary="one line a layer", load="{module}:read", suffixes=(".layers",))]

def read(data, context):
    from pipebench.domain.graph import Operator, OperatorGraph
    from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
    names = data.decode().split()
    graph = OperatorGraph(name="layers", operators=tuple(Operator(name=n, kind="layer") for n in names))
    costs = tuple(OperatorCosts(operator=n, forward_s=(1.0,), backward_s=(2.0,)) for n in names)
    return Profile(name="layers", graph=graph,
                   costs=(DeviceCosts(device_type="any", micro_batches=(1,), operators=costs),))
"""


def test_show_reads_them(pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "layer-format", SOURCE)
    file = tmp_path / "net.layers"
    file.write_text("a b c")
    done = pipebench("show", str(file), "--json")
    assert done.code == 0, done.err
    assert [op["name"] for op in json.loads(done.out)["graph"]["operators"]] == ["a", "b", "c"]


def test_files_with_its_suffix_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "layer-format", SOURCE)
    file = tmp_path / "net.layers"
    file.write_text("a b c")
    (workload,) = select(Host(), Selection(profiles=(str(file),), memory="1GB", devices=2))
    assert [op.name for op in workload.profile.graph.operators] == ["a", "b", "c"]
    assert workload.mini_batch == 1
    other = tmp_path / "net.unknown"
    other.write_text("a b c")
    with pytest.raises(PipebenchError, match=r"layers: one line a layer \(.layers\)"):
        select(Host(), Selection(profiles=(str(other),), memory="1GB", devices=2))
