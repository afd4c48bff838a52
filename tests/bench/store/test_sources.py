"""Where source is found, and what is refused."""

import sys
import zipfile
from pathlib import Path

import pytest

from pipebench.bench.store import code_files, reach
from pipebench.bench.store.code_files import files_below, package_of
from pipebench.bench.store.reach import component_code, program_code, script_code
from pipebench.bench.store.sources import HOST_PACKAGES, host_source, program_files
from pipebench.domain.errors import PipebenchError
from tests.bench.store.plugin_made import Plugins


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    return Plugins(tmp_path, monkeypatch)


def source(load: str) -> str:
    return component_code(load).digest


def test_a_module_in_one_file(made: Plugins) -> None:
    file = made.write("alone_module.py")
    made.write("alone_other.py")
    before = source("alone_module:plan")
    made.write("alone_other.py", "x = 1")
    assert source("alone_module:plan") == before
    assert [found.path for found in component_code("alone_module:plan").files] == [str(file)]
    made.write("alone_module.py", "x = 1")
    assert source("alone_module:plan") != before
    assert [found.path for found in package_of("alone_module:plan").files()] == [str(file)]
    assert made.never_imported("alone_module")


def test_a_namespace_package_counts_below_the_namespace(made: Plugins) -> None:
    made.write("shared_space/mine/__init__.py")
    made.write("shared_space/other/__init__.py")
    made.write("shared_space/mine/planner.py")
    before = source("shared_space.mine.planner:plan")
    made.write("shared_space/other/__init__.py", "x = 1")
    assert source("shared_space.mine.planner:plan") == before
    made.write("shared_space/mine/__init__.py", "x = 1")
    assert source("shared_space.mine.planner:plan") != before
    assert made.never_imported("shared_space.mine")


def test_a_namespace_package_all_the_way(made: Plugins) -> None:
    made.write("only_space/deep/planner.py")
    before = source("only_space.deep.planner:plan")
    made.write("only_space/deep/planner.py", "x = 1")
    assert source("only_space.deep.planner:plan") != before


def test_a_zip_on_the_path_counts_as_one(made: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = made.folder / "zipped.zip"

    def write(text: str) -> None:
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("zipped_plugin/__init__.py", "raise SystemExit\n")
            file.writestr("zipped_plugin/planner.py", text)

    write("x = 1")
    monkeypatch.syspath_prepend(str(archive))
    before = source("zipped_plugin.planner:plan")
    write("x = 22")
    assert source("zipped_plugin.planner:plan") != before
    assert made.never_imported("zipped_plugin")


def test_a_link_to_a_folder_is_followed_and_a_loop_ends(made: Plugins) -> None:
    made.write("linking/__init__.py")
    kernel = made.write("elsewhere/kernel.py")
    (made.folder / "linking" / "kernels").symlink_to(kernel.parent)
    (made.folder / "linking" / "loop").symlink_to(made.folder / "linking")
    made.write("linking/planner.py", "from linking.kernels.kernel import x")
    before = source("linking.planner:plan")
    made.write("elsewhere/kernel.py", "x = 1")
    assert source("linking.planner:plan") != before
    files = files_below(str(made.folder / "linking"))
    assert [file.name for file in files] == ["__init__.py", "kernels/kernel.py", "planner.py"]


@pytest.mark.parametrize("load", ["nowhere_at_all.planner:plan", "sys:exit", "marshal:loads", ":plan"])
def test_no_source_is_one_line(load: str) -> None:
    with pytest.raises(PipebenchError, match="cannot be found"):
        source(load)


def test_a_module_made_in_memory_has_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made_in_memory", type(sys)("made_in_memory"))
    with pytest.raises(PipebenchError, match="cannot be found"):
        source("made_in_memory:plan")


def test_an_empty_package_has_no_source(made: Plugins) -> None:
    (made.folder / "empty_space" / "deep").mkdir(parents=True)
    with pytest.raises(PipebenchError, match="cannot be found"):
        source("empty_space.deep:plan")


def test_too_many_files_are_refused(made: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        made.write(f"crowded/file{number}.py")
    made.write("crowded/__init__.py")
    monkeypatch.setattr(code_files, "MOST_FILES", 3)
    with pytest.raises(PipebenchError, match="more than 3 files"):
        source("crowded:plan")


def test_a_file_is_read_again_only_when_it_changed(made: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    made.write("read_once/__init__.py")
    before = source("read_once:plan")
    twice = component_code("read_once:plan")
    reads: list[str] = []
    real = reach.content

    def counted(path: str) -> bytes:
        reads.append(path)
        return real(path)

    monkeypatch.setattr(reach, "content", counted)
    assert component_code("read_once:plan") is twice
    assert source("read_once:plan") == before
    assert reads == []
    made.write("read_once/__init__.py", "x = 1")
    source("read_once:plan")
    assert len(reads) == 1


def test_a_script_counts_with_the_modules_beside_it_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os, helper\ndef plan():\n    from kit.deep import x\n")
    (tmp_path / "helper.py").write_text("import farther\nimport mine\n")
    (tmp_path / "farther.py").write_text("x = 1\n")
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "deep.py").write_text("x = 1\n")
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    script = str(tmp_path / "mine.py")
    names = {Path(file.path).name for file in script_code(script).files}
    assert names == {"mine.py", "helper.py", "farther.py", "deep.py"}
    before = script_code(script).digest
    (tmp_path / "unrelated.py").write_text("x = 2\n")
    assert script_code(script).digest == before
    for name in ("farther.py", "kit/deep.py", "helper.py", "mine.py"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "# edited\n")
        assert script_code(script).digest == before
        (tmp_path / name).write_text((tmp_path / name).read_text() + f"edited = {name!r}\n")
        after = script_code(script).digest
        assert after != before
        before = after


def test_the_same_script_elsewhere_is_the_same(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("def plan(problem, context): ...\n")
    assert script_code(str(tmp_path / "one.py")).digest == script_code(str(tmp_path / "two.py")).digest


def test_a_script_that_is_no_python_still_has_a_hash(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\xff\x00 def (")
    assert script_code(str(tmp_path / "mine.py")).digest
    with pytest.raises(PipebenchError, match="cannot read"):
        script_code(str(tmp_path / "none.py"))


def test_the_words_of_a_command_that_are_files_count(tmp_path: Path) -> None:
    (tmp_path / "a b").write_text("x")
    found = program_files(f"sh -c '{tmp_path}/a b' --with=y nothing")
    assert [file.path for file in found][1:] == [f"{tmp_path}/a b"]
    assert found[0].path.endswith("/sh")


def test_the_host_counts_with_all_that_scores() -> None:
    assert {"costs", "check", "bounds", "simulation", "bench"} <= set(HOST_PACKAGES)
    assert host_source() == host_source()
    assert len(host_source()) == 64


def test_a_command_counts_by_its_files_python_without_comments(tmp_path: Path) -> None:
    planner, table = tmp_path / "planner.py", tmp_path / "table"
    planner.write_text("print(1)\n")
    table.write_text("1")
    command = f"sh {planner} {table}"

    def digest() -> str:
        return program_code(program_files(command)).digest

    before = digest()
    planner.write_text("# prints\nprint( 1 )\n")
    assert digest() == before
    planner.write_text("print(2)\n")
    assert digest() != before
    planner.write_text("print(1)\n")
    table.write_text("# 1")
    assert digest() != before
