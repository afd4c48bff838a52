"""What a stranger's file may run: installed components, and nothing else unless the user trusts the file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.stores import edit_rows, plan_with_model, stranger_row, stranger_store
from tests.cli.command_line import CommandLine

HARMFUL = "open({marker!r}, 'w').close()\ndef plan(problem, context): raise ValueError('no plan')\n"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that exists once a stranger's code has run."""
    return tmp_path / "PWNED"


def harmful_script(folder: Path, marker: Path) -> Path:
    """A planner that leaves the marker when it is imported."""
    file = folder / "mine.py"
    file.write_text(HARMFUL.format(marker=str(marker)))
    return file


@pytest.mark.parametrize("kind", ["program", "script"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_stored_row_runs_no_program_and_no_file(
    pipebench: CommandLine, tmp_path: Path, marker: Path, kind: str, packed: bool
) -> None:
    planner = f"cmd:sh -c 'id > {marker}; false'" if kind == "program" else str(harmful_script(tmp_path, marker))
    results = stranger_store(tmp_path / "stranger", stranger_row(1, planner, kind))
    if packed:
        shutil.make_archive(str(tmp_path / "stranger"), "zip", results)
        (tmp_path / "stranger.zip").rename(tmp_path / "packed.zip")
        results = tmp_path / "packed.zip"
    done = pipebench("rerun", str(results))
    assert done.code == 5
    assert not marker.exists()
    said = " ".join(done.out.split())
    assert str(results) in said
    assert (f"sh -c 'id > {marker}; false'" if kind == "program" else planner) in said
    assert "--trust" in said


def test_a_trusted_store_says_what_it_runs_before_it_runs(
    pipebench: CommandLine, tmp_path: Path, marker: Path
) -> None:
    script = harmful_script(tmp_path, marker)
    store = stranger_store(tmp_path / "store", stranger_row(1, str(script), "script"))
    done = pipebench("rerun", str(store), "--trust")
    assert f"trusted: {store} runs the Python file {script}" in done.err
    assert "SHA-256" in done.err
    assert done.code == 1
    assert "status: ok → crashed" in done.out  # it ran, and failed


@pytest.mark.parametrize("field", ["planner", "scheduler"])
def test_what_is_shown_is_what_runs(pipebench: CommandLine, tmp_path: Path, marker: Path, field: str) -> None:
    """The row shows one component, the line around it names another: the line is damaged, for every command."""
    store = stranger_store(tmp_path / "store", stranger_row(1, "uniform", "plugin"))
    other = f"cmd:sh -c 'id > {marker}; false'" if field == "planner" else "gpipe"
    edit_rows(store, lambda line: line.update({field: other, "planner_kind": "program"}))
    for words in (("show", str(store)), ("rerun", str(store), "--trust")):
        done = pipebench(*words)
        assert "line 1 is damaged" in done.err
        assert "would run" in done.err
        assert "uniform" not in done.out
    assert done.code == 4
    assert not marker.exists()


def test_options_of_an_installed_component_name_no_code_either(
    pipebench: CommandLine, tmp_path: Path, marker: Path
) -> None:
    hidden = f"pipedream[order=cmd:touch {marker}]"
    store = stranger_store(tmp_path / "store", stranger_row(1, hidden, "plugin"))
    done = pipebench("rerun", str(store))
    assert done.code == 5
    assert f"the program touch {marker}" in " ".join(done.out.split())


SUITE = """
name = "strange"
summary = "from a stranger"
planners = [{planners}]
[[workloads]]
model = "tiny-mmt"
devices = 2
memory = "16GB"
mini_batch = 4
"""


def test_a_suite_from_a_file_runs_installed_planners_only(
    pipebench: CommandLine, tmp_path: Path, marker: Path
) -> None:
    harmful_script(tmp_path, marker)
    suite = tmp_path / "strange.toml"
    suite.write_text(SUITE.format(planners=f'"cmd:sh -c \'id > {marker}\'", "./mine.py"'))
    for words in (("compare",), ("track", "record", "--history", str(tmp_path / "nights"))):
        done = pipebench(*words, "--suite", str(suite))
        assert done.code == 2
        assert not marker.exists()
        assert f"{suite} would run here: the program sh -c 'id > {marker}'; the Python file {tmp_path}" in done.err
        assert "--trust" in done.err


def test_planners_that_are_typed_stand_in_for_those_of_the_suite(
    pipebench: CommandLine, tmp_path: Path, marker: Path
) -> None:
    suite = tmp_path / "strange.toml"
    suite.write_text(SUITE.format(planners=f"\"cmd:sh -c 'id > {marker}'\""))
    done = pipebench("compare", "--suite", str(suite), "--planners", "uniform")
    assert done.code == 0
    assert not marker.exists()


def test_suites_that_ship_need_no_word() -> None:
    from pipebench.bench.suites import Settings, load_suites, settle, suite_names

    for name in suite_names():
        settle(load_suites([name]), Settings())


def test_a_plan_file_imports_nothing(
    pipebench: CommandLine, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`execute` once imported subprocess and called getoutput with an argument of the file."""
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    plan = plan_with_model(tmp_path / "plan.json", "subprocess:getoutput[cmd=touch PWNED]")
    done = pipebench("execute", str(plan))
    assert done.code == 2
    assert f"{plan} would run here: subprocess:getoutput[cmd=touch PWNED], imported and called" in done.err
    assert "--trust" in done.err
    assert "torch[model=" in done.err
    assert not marker.exists()
    assert sys.path == before


@pytest.mark.parametrize("command", [("execute",), ("export", "--to", "megatron"), ("compare", "--plans")])
def test_the_scheduler_of_a_plan_file_names_no_code(
    pipebench: CommandLine, tmp_path: Path, marker: Path, command: tuple[str, ...]
) -> None:
    from msgspec.structs import replace

    from pipebench.formats.documents import read_plan, write_document

    file = plan_with_model(tmp_path / "plan.json", "bert")
    planned = replace(read_plan(file), scheduler=f"1f1b[via=cmd:touch {marker}]")
    write_document(file, "plan", planned)
    done = pipebench(*command, str(file))
    assert done.code == 2
    assert f"{file} would run here: the program touch {marker}" in done.err


@pytest.mark.parametrize(
    ("model", "typed", "built"),
    [
        ("bert", "", "bert"),
        ("torchvision:resnet50[image_size=64]", "", "torchvision:resnet50[image_size=64]"),
        ("transformers:gpt2[n_layer=2,use_cache=false]", "", "transformers:gpt2[n_layer=2,use_cache=false]"),
        ("./mine.py:build[layers=2]", "./mine.py:build", "./mine.py:build[layers=2]"),
        ("mine:build", "./other.py:build", "./other.py:build"),
        ("", "", ""),
    ],
)
def test_models_of_the_catalogue_and_typed_ones_are_built(model: str, typed: str, built: str) -> None:
    assert build(model, typed) == built


@pytest.mark.parametrize(
    "model",
    [
        "subprocess:getoutput[cmd=id]",
        "mine:build",
        "./mine.py:build",
        "torchvision:vgg1",
        "transformers:Trainer",
        "bert[attn_implementation=stranger/kernel]",
        "resnet50[weights=1]",
        "resnet50[pretrained=true]",
        "no-such-model",
    ],
)
def test_other_models_of_a_profile_are_refused(model: str) -> None:
    from pipebench.hooks.trust import UntrustedName

    with pytest.raises(UntrustedName, match="imported and called"):
        build(model, "")
    assert build(model, "", frozenset([model])) == model


def test_typed_models_take_no_texts_out_of_a_profile() -> None:
    from pipebench.hooks.trust import UntrustedName

    with pytest.raises(UntrustedName):
        build("./mine.py:build[path=/etc/passwd]", "./mine.py:build")


def build(model: str, typed: str, trusted: frozenset[str] = frozenset()) -> str:
    """What the executor `torch` would build for a profile that names this model."""
    from msgspec.structs import replace

    from pipebench.domain.profile import Provenance
    from pipebench_torch.modules.names import model_to_build
    from tests.bench.store.made import PROBLEM

    return model_to_build(replace(PROBLEM.profile, provenance=Provenance(model=model)), typed, trusted)


def test_modules_in_the_current_folder_are_never_imported(tmp_path: Path, marker: Path) -> None:
    """Neither by the command, nor by its fork server, nor by the workers of --jobs and their helpers."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("click", "json", "numpy", "rich", "joblib", "pipebench_models"):
        text = f"open({f'{marker}-{name}'!r}, 'w').close()\nraise ImportError({name!r})\n"
        (here / f"{name}.py").write_text(text)
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "plugins")])}
    words = ["compare", "--planners", "uniform", "--models", "tiny-mmt", "--devices", "2", "--memory", "16GB"]
    done = subprocess.run(
        [sys.executable, "-m", "pipebench", *words, "--mini-batch", "4", "--rounds", "2", "--jobs", "2"],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("PWNED")] == []
    assert done.returncode == 0, done.stderr
    assert "uniform" in done.stdout


def test_a_module_beside_the_user_is_named_as_a_file(
    pipebench: CommandLine, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="needs the torch extra")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange_model.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    words = ("profile", "strange_model:build", "--profiler", "torch", "--device", "cpu", "-o", "p.json")
    done = pipebench(*words)
    assert done.code == 2
    assert "./strange_model.py:build" in done.err
    assert not marker.exists()
    assert "no attribute 'build'" in pipebench("profile", "./strange_model.py:build", *words[2:]).err
