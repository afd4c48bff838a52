"""Keys: what changes them, and what does not."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from pipebench.bench.components import ready_planner
from pipebench.bench.store import StoredRow, TrialInputs, keys, trial_key
from pipebench.bench.store.keys import ComponentInputs, trial_inputs
from pipebench.bench.store.stored_rows import planner_kind, script_text, stored_row, workload_of
from pipebench.bench.trials.trial import Trial
from pipebench.costs.version import MODEL_VERSION
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.descriptors import Capabilities
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.bench import ready
from tests.bench.store.made import PROBLEM, inputs, stored
from tests.bench.store.plugin_made import Plugins

NUMBERS = iter(range(10**6))


class Made(Plugins):
    """Two planners, two schedulers and an executor, each in a package of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self.number = next(NUMBERS)  # the import system remembers packages by name
        self.mine = self._package("mine")
        self.other = self._package("other")
        self.simulator = self._package("simulator")
        self.first = self._package("first")
        self.second = self._package("second")
        self.planner("mine", f"mine{self.number}.planner:plan")
        self.planner("other", f"other{self.number}.planner:plan")
        self.executor("simulate", f"simulator{self.number}.planner:plan")
        self.scheduler("1f1b", f"first{self.number}.planner:plan")
        self.scheduler("second", f"second{self.number}.planner:plan")

    def _package(self, name: str) -> Path:
        self.write(f"{name}{self.number}/__init__.py")
        return self.write(f"{name}{self.number}/planner.py", f"NAME = {name + '!'!r}")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(tmp_path, monkeypatch)


def trial(host: Host, text: str = "mine", **fields: Any) -> Trial:
    return Trial(ready.workload(PROBLEM), "sync", ready_planner(host, parse_reference(text)), **fields)


def key(host: Host, text: str = "mine", **fields: Any) -> str:
    return trial_key(trial_inputs(host, trial(host, text, **fields), PROBLEM.problem_id))


def edit(file: Path, text: str) -> None:
    """Something more that runs when the file is loaded."""
    file.write_text(file.read_text() + f"print('edited', '{text}')\n")


def comment(file: Path) -> None:
    """A docstring, a comment, an attribute's text and other line breaks: nothing that runs."""
    file.write_text(f'"""What it is."""\n# a comment\n\n{file.read_text()}\n\n"a text"\npass\n')


def test_the_key_of_these_inputs_never_changes() -> None:
    """A refactor that changes this makes every store on earth run everything again."""
    frozen = TrialInputs(
        problem_id="p" * 64,
        regime="async",
        planning="sync",
        planner=ComponentInputs(name="mine", options={"depth": 2, "share": 0.5, "on": True}, source="a" * 64),
        scheduler=ComponentInputs(name="1f1b*", options={}, source="b" * 64),
        executors=(ComponentInputs(name="simulate", options={}, source="c" * 64),),
        called={"schedulers/1f1b": "d" * 64, "executors/simulate": "c" * 64},
        seed=7,
        repeat=3,
        repetition=2,
        timeout_s=60.0,
        memory_bytes=8 * 10**9,
        model=7,
        versions={"python": "3.11", "numpy": "2.1.0"},
        host="e" * 64,
    )
    assert trial_key(frozen) == "e68ca9f5cd88ec33d8c137f4229c9b6048bbabaf11584aa9495135904bd2566b"


def test_the_order_of_names_does_not_matter() -> None:
    forwards = inputs(planner=ComponentInputs(name="mine", options={"a": 1, "b": 2.0}, source="s"))
    backwards = inputs(planner=ComponentInputs(name="mine", options={"b": 2, "a": 1.0}, source="s"))
    assert trial_key(forwards) == trial_key(backwards)
    assert trial_key(inputs(versions={"a": "1", "b": "2"})) == trial_key(inputs(versions={"b": "2", "a": "1"}))


@pytest.mark.parametrize(
    "changed",
    [
        {"problem_id": "0" * 64},
        {"regime": "async"},
        {"planner": ComponentInputs(name="mine", options={"depth": 3, "greedy": True}, source="a" * 64)},
        {"planner": ComponentInputs(name="mine", options={"depth": 2, "greedy": True}, source="0" * 64)},
        {"scheduler": ComponentInputs(name="1f1b", source="a" * 64)},
        {"executors": ()},
        {"called": {}},
        {"seed": 5},
        {"repeat": 2},
        {"repetition": 1},
        {"timeout_s": 299.0},
        {"memory_bytes": 1},
        {"planning": "async"},
        {"model": 2},
        {"versions": {"python": "3.11", "numpy": "2.1"}},
    ],
)
def test_every_input_changes_the_key(changed: dict[str, Any]) -> None:
    assert trial_key(inputs(**changed)) != trial_key(inputs())


def test_a_yardstick_is_another_trial(made: Made) -> None:
    """So that a planner that is named later has a row of its own."""
    host = made.host()
    assert key(host, yardstick=True) != key(host)


def test_the_source_of_the_suite_is_told_and_is_no_input() -> None:
    assert trial_key(inputs(host="0" * 64)) == trial_key(inputs())


def test_no_code_of_a_component_runs(made: Made) -> None:
    key(made.host(), scheduler="second")
    assert all(made.never_imported(f"{name}{made.number}") for name in ("mine", "first", "second", "simulator"))


def test_an_edited_planner_has_another_key_and_the_others_keep_theirs(made: Made) -> None:
    host = made.host()
    mine, other = key(host, "mine"), key(host, "other")
    edit(made.mine, "better")
    assert key(host, "mine") != mine
    assert key(host, "other") == other


def test_comments_docstrings_and_formatting_are_no_content(made: Made) -> None:
    made.mine.write_text('def plan(problem, context):\n    """It plans."""\n    return [1, 2]\n')
    host, before = made.host(), key(made.host())
    for text in (
        "def plan(problem, context):\n    return [1, 2]\n",
        '# mine\ndef plan(\n    problem, context\n):\n    "Better."\n    pass\n    return [1,  # one\n    2,]\n',
    ):
        made.mine.write_text(text)
        assert key(host) == before
    for file in (made.first, made.simulator):
        comment(file)
    assert key(host) == before
    made.mine.write_text("def plan(problem, context):\n    return [1, 3]\n")
    assert key(host) != before


def test_the_key_follows_the_content_and_not_the_time(made: Made) -> None:
    host, before = made.host(), made.mine.read_text()
    first = key(host)
    made.mine.write_text(before + "DEPTH = 3")
    assert key(host) != first
    made.mine.write_text(before)
    os.utime(made.mine, (1, 1))
    assert key(host) == first


def test_modules_that_the_planner_imports_count(made: Made) -> None:
    number = made.number
    kernel = made.write(f"mine{number}/deep/kernel.py", "STEP = 1")
    made.write(f"mine{number}/deep/__init__.py")
    unused = made.write(f"mine{number}/unused.py", "STEP = 1")
    made.mine.write_text(f"def plan():\n    from mine{number}.deep.kernel import STEP\n    return STEP\n")
    host = made.host()
    before = key(host)
    edit(unused, "x")
    made.write(f"mine{number}/notes.txt")
    assert key(host) == before
    edit(kernel, "x")
    after = key(host)
    assert after != before
    made.write(f"mine{number}/native.so")
    assert key(host) != after


def test_schedulers_and_executors_that_take_part_count(made: Made) -> None:
    host = made.host()
    plain, chosen = key(host), key(host, scheduler="second")
    assert plain != chosen
    edit(made.second, "x")  # the suite tries it too where nobody names one
    assert key(host) != plain
    assert key(host, scheduler="second") != chosen
    plain, chosen = key(host), key(host, scheduler="second")
    edit(made.first, "x")
    assert key(host) != plain
    assert key(host, scheduler="second") == chosen
    plain = key(host)
    edit(made.simulator, "x")
    assert key(host) != plain


def test_a_component_that_the_planner_declares_to_call_counts(made: Made) -> None:
    made.calls("planners", "mine", "other", "second")
    host = made.host()
    before = key(host)
    edit(made.other, "x")
    after = key(host)
    assert after != before
    edit(made.second, "x")
    assert key(host) != after


def test_a_name_in_the_code_is_no_call(made: Made) -> None:
    made.mine.write_text('HELPER = "other"\n')
    host = made.host()
    before = key(host)
    edit(made.other, "x")
    assert key(host) == before


def test_what_a_callee_declares_is_followed(made: Made) -> None:
    made.calls("planners", "mine", "other")
    made.calls("planners", "other", "second")
    host = made.host()
    before = key(host)
    edit(made.second, "x")
    assert key(host) != before


def test_a_component_named_in_an_option_counts(made: Made) -> None:
    host = made.host()
    before = key(host, "mine[helper=second]")
    edit(made.second, "x")
    assert key(host, "mine[helper=second]") != before
    before = key(host, scheduler="second[helper=other]")
    edit(made.other, "x")
    assert key(host, scheduler="second[helper=other]") != before


def test_the_simulator_counts_for_planners_that_ask_it(made: Made) -> None:
    host = made.host()
    before = key(host, executors=())
    edit(made.simulator, "x")
    assert key(host, executors=()) != before


def test_a_broken_component_that_is_named_is_no_obstacle(made: Made) -> None:
    made.calls("planners", "mine", "broken")
    made.planner("broken", "nowhere_to_be_found.planner:plan")
    assert key(made.host())
    with pytest.raises(PipebenchError, match="source of 'nowhere_to_be_found"):
        key(made.host(), "broken")


def test_defaults_written_out_are_the_same_trial(made: Made) -> None:
    host = made.host()
    assert key(host, "mine[depth=2]") == key(host, "mine") == key(host, "mine[helper=,depth=2]")
    assert key(host, "mine[depth=3]") != key(host, "mine")


@pytest.mark.parametrize(
    "fields",
    [{"repeat": 4}, {"repetition": 1}, {"seed": 1}, {"timeout_s": 1.0}, {"memory_bytes": 0}, {"executors": ()}],
)
def test_limits_and_settings_count(made: Made, fields: dict[str, Any]) -> None:
    assert key(made.host(), **fields) != key(made.host())


def test_versions_of_what_a_planner_imports_are_kept(made: Made) -> None:
    host = made.host()
    found = trial_inputs(host, trial(host), PROBLEM.problem_id).versions
    assert set(found) == {"python"}
    assert found["python"].count(".") == 1
    made.mine.write_text("import os\nimport msgspec\nimport pytest.raises\ndef plan(): import highspy\n")
    found = trial_inputs(host, trial(host), PROBLEM.problem_id).versions
    assert found["pytest"] == pytest.__version__
    assert set(found) == {"python", "pytest", "highspy"}


def test_the_model_that_scores_counts_by_its_version(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(made.host())
    monkeypatch.setattr(keys, "host_source", lambda: "0" * 64)
    assert key(made.host()) == before
    monkeypatch.setattr(keys, "MODEL_VERSION", MODEL_VERSION + 1)
    assert key(made.host()) != before


def test_an_adapted_plan_depends_on_who_orders_it(made: Made) -> None:
    made.planner("away", f"other{made.number}.planner:plan", capabilities=Capabilities(regimes=("async",)))
    host = made.host()
    found = trial_inputs(host, trial(host, "away", scheduler="second"), PROBLEM.problem_id)
    assert (found.regime, found.planning) == ("sync", "async")
    assert "schedulers/1f1b" not in found.called
    found = trial_inputs(host, trial(host, "away"), PROBLEM.problem_id)
    assert {"schedulers/1f1b", "schedulers/second"} <= set(found.called)
    found = trial_inputs(host, trial(host, "away", offered=("second",)), PROBLEM.problem_id)
    assert ("schedulers/1f1b" in found.called, "schedulers/second" in found.called) == (False, True)


def test_a_planner_without_source_needs_one(made: Made) -> None:
    plan = Trial(ready.workload(PROBLEM), "sync", ready.planner(lambda: None, "plan.json"))
    with pytest.raises(ValueError, match="planner_source"):
        trial_inputs(made.host(), plan, PROBLEM.problem_id)
    one, two = (trial_inputs(made.host(), plan, PROBLEM.problem_id, source) for source in ("1", "2"))
    assert trial_key(one) != trial_key(two)
    assert planner_kind(plan) == "plan"
    assert script_text(plan) is None


def test_a_script_is_known_by_its_text(made: Made, tmp_path: Path) -> None:
    host, script = made.host(), tmp_path / "mine.py"
    script.write_text("def plan(problem, context): ...\n")
    before = trial(host, str(script))
    assert planner_kind(before) == "script"
    assert script_text(before) == b"def plan(problem, context): ...\n"
    first = key(host, str(script))
    comment(script)
    assert key(host, str(script)) == first
    edit(script, "x")
    assert key(host, str(script)) != first


def test_a_file_that_an_option_names_counts_by_what_is_in_it(made: Made, tmp_path: Path) -> None:
    """Where the component says that the option names files; elsewhere the key stays that of older stores."""
    file = tmp_path / "weights"
    file.write_text("1\n")
    label = f"named[helper={file}]"
    made.planner("named", f"mine{made.number}.planner:plan", paths=("helper",))
    host = made.host()
    for text in (label, f"named[helper={file}:build]"):
        first = key(host, text)
        edit(file, "2")
        assert key(host, text) != first
    assert key(host, f"mine[helper={file}]") == key(host, f"mine[helper={file}]")
    assert trial_inputs(host, trial(host, "named"), PROBLEM.problem_id).planner.files == {}
    plain = trial_inputs(host, trial(host, f"mine[helper={file}]"), PROBLEM.problem_id)
    assert plain.planner.files == {}
    assert "files" not in plain.identity_content()["planner"]


def test_programs_are_known_by_their_file_and_words(made: Made, tmp_path: Path) -> None:
    host, program = made.host(), tmp_path / "run.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert planner_kind(trial(host, f"cmd:{program}")) == "program"
    first = key(host, f"cmd:{program}")
    assert key(host, f"cmd:{program} --fast") != first
    edit(program, "x")
    assert key(host, f"cmd:{program}") != first
    through = key(host, f"cmd:sh {program} --fast")
    edit(program, "y")
    assert key(host, f"cmd:sh {program} --fast") != through
    missing = trial(host, f"cmd:{program}")
    program.unlink()
    with pytest.raises(PipebenchError, match="there is no"):
        trial_inputs(host, missing, PROBLEM.problem_id)


def test_a_stored_row_says_how_to_run_its_trial_again(made: Made) -> None:
    host = made.host()
    asked = trial(host, "mine[depth=3]", scheduler="second", seed=5, repeat=2)
    row = structs.replace(stored(1, key="").row, planner="mine[depth=3]", scheduler="second")
    found = trial_inputs(host, asked, PROBLEM.problem_id)
    line = stored_row(asked, found, row, 0)
    assert isinstance(line, StoredRow)
    assert line.key == line.row.key == trial_key(found)
    assert (line.planner, line.scheduler, line.executors) == ("mine[depth=3]", "second", ("simulate",))
    assert line.planner_kind == "plugin"
    again = Trial(
        replace(workload_of(line.row, PROBLEM), model="test"),
        line.row.regime,
        ready_planner(host, parse_reference(line.planner)),
        line.scheduler,
        executors=line.executors,
        repeat=line.inputs.repeat,
        timeout_s=line.inputs.timeout_s,
        memory_bytes=line.inputs.memory_bytes,
        seed=line.inputs.seed,
    )
    assert again.workload.problem("sync") == PROBLEM
    assert trial_key(trial_inputs(host, again, PROBLEM.problem_id)) == line.key


def test_keys_of_the_shipped_planners_read_each_source_once(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    trials = [
        Trial(ready.workload(PROBLEM), "sync", ready_planner(host, parse_reference(n)))
        for n in host.slot("planners")
    ]
    found = {trial_key(trial_inputs(host, each, PROBLEM.problem_id)) for each in trials}
    assert len(found) == len(trials)

    def read_again(file: object, *_: object, **__: object) -> None:
        pytest.fail(f"{file} is read again")

    monkeypatch.setattr("io.open", read_again)
    monkeypatch.setattr("builtins.open", read_again)
    assert {trial_key(trial_inputs(host, each, PROBLEM.problem_id)) for each in trials} == found
