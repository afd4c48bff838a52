"""pipebench certify, as a user types it: from a comparison to checked certificates."""

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench import certification
from pipebench.bench.certification import certify, subjects
from pipebench.bench.store import open_results
from pipebench.certificates.write import Certificate
from pipebench.cli.main import run
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.value import digest
from pipebench.formats.profiles.shipped import profiles_folder
from tests.cli.command_line import CommandLine

ROWS = ("compare", "--planners", "madpipe,uniform", "--profile", "resnet50", "-n", "2", "--memory", "16GB")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two planners in both regimes."""
    path = tmp_path_factory.mktemp("compared") / "store"
    assert run([*ROWS, "--out", str(path)]) == 0
    return path


@pytest.fixture
def store(compared: Path, tmp_path: Path) -> str:
    """A copy of its own."""
    return str(shutil.copytree(compared, tmp_path / "store"))


def test_from_a_comparison_to_checked_certificates(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    folder = tmp_path / "proofs"
    done = pipebench("certify", store, "-o", str(folder))
    assert done.code == 0, done.err
    rows = [row for row in open_results(store).rows if row.plan_id]
    assert sorted(file.stem for file in folder.iterdir()) == sorted(row.key[:12] for row in rows)
    assert f"{len(rows)} certificates in {folder}" in done.err
    printed = " ".join(done.out.split())
    for row in rows:
        shown = (
            rf"{row.key[:12]} (planner )?{re.escape(row.planned_by)} (problem )?resnet50 (regime )?{row.regime} "
        )
        assert re.search(shown, printed)

    done = pipebench("certify", "--check", str(folder), "--against", store)
    assert done.code == 0
    assert len(done.out.splitlines()) == len(rows)
    for row in rows:
        assert f"{row.key[:12]}.json: {row.planned_by} on resnet50, {row.regime}: the plan takes" in done.out
    assert "and fits; no plan of this problem that runs operators whole takes less than" in done.out
    told = json.loads(pipebench("certify", "--check", str(folder), "--json").out)["certificates"]
    by_key = {row.key[:12]: row for row in rows}
    for each in told:
        row = by_key[Path(each["file"]).stem]
        assert each["proven"]
        assert (each["planner"], each["problem"], each["regime"]) == (row.planned_by, "resnet50", row.regime)
        assert (each["time_ns"] / 1e9, each["bound_ns"] / 1e9) == (row.simulated_s, row.bound_s)

    packed = str(tmp_path / "store.zip")
    assert pipebench("pack", store, "-o", packed).code == 0
    one = tmp_path / "one"
    done = pipebench("certify", packed, "--row", rows[0].key[:8], "-o", str(one))
    assert (done.code, f"1 certificate in {one}; " in done.err) == (0, True)
    (file,) = one.iterdir()
    assert file.read_bytes() == (folder / file.name).read_bytes()


def test_a_changed_certificate_is_refused(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    """With its old seal at once; with a new one where the store says another number."""
    from pipebench.certificates.document import written

    folder = tmp_path / "proofs"
    assert pipebench("certify", store, "--planner", "uniform", "-o", str(folder)).code == 0
    file = min(folder.iterdir())
    content = json.loads(file.read_bytes())["content"]
    content["problem"]["devices"][0][0] -= 1
    document = {**json.loads(file.read_bytes()), "content": content}
    file.write_text(json.dumps(document))
    done = pipebench("certify", "--check", str(file))
    assert (done.code, "Traceback" in done.err) == (1, False)
    assert f"{file}: refused: seal: is not that of the content" in done.out
    file.write_bytes(written(content))
    assert pipebench("certify", "--check", str(file)).code == 0  # of a problem with another device it is a proof
    done = pipebench("certify", "--check", str(file), "--against", store)
    assert done.code == 1
    assert "content.problem.devices[0][0] is 15999999999, the store says 16000000000" in done.out


def test_certificates_from_before_stay(
    pipebench: CommandLine, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third is interrupted; then the bound of the others is not computed again, but of a damaged one."""
    folder, made = tmp_path / "proofs", certification.certificate
    computed: list[str] = []

    def counting(problem: Problem, plan: Plan, *rest: Any) -> Certificate:
        computed.append(digest(plan))
        if len(computed) == 3:
            raise KeyboardInterrupt
        return made(problem, plan, *rest)

    monkeypatch.setattr(certification, "certificate", counting)
    done = pipebench("certify", store, "-o", str(folder))
    assert done.code == 130
    assert f"2 certificates in {folder}; the same command goes on after them" in done.err
    kept = sorted(folder.iterdir())
    (damaged, whole), first = kept, [file.read_bytes() for file in kept]
    damaged.write_bytes(first[0].replace(b'"regime":"', b'"regime":"x', 1))
    again = computed[:2]
    computed[:] = [""] * 3
    done = pipebench("certify", store, "-o", str(folder))
    assert done.code == 0
    assert f"certificates in {folder}, 1 of them from before (--fresh writes them anew)" in done.err
    assert len(set(computed[3:]) & set(again)) == 1
    assert [damaged.read_bytes(), whole.read_bytes()] == first
    count = len(list(folder.iterdir()))
    computed[:] = [""] * 3
    told = json.loads(pipebench("certify", store, "-o", str(folder), "--json").out)["certificates"]
    assert (len(computed), sum(each["stood"] for each in told)) == (3, count)
    proven = json.loads(pipebench("certify", "--check", str(folder), "--json").out)["certificates"]
    assert {(each["file"], each["time_ns"], each["bound_ns"]) for each in proven} == {
        (each["file"], each["time_ns"], each["bound_ns"]) for each in told if each["file"]
    }
    assert pipebench("certify", store, "-o", str(folder), "--fresh").code == 0
    assert len(computed) == 3 + count


def test_a_certificate_under_another_name_is_refused(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    """The plan and the bound are the store's, what is said of them is not."""
    from pipebench.certificates.document import written

    folder = tmp_path / "proofs"
    assert pipebench("certify", store, "--planner", "uniform", "-o", str(folder)).code == 0
    file = min(folder.iterdir())
    content = json.loads(file.read_bytes())["content"]
    plan_id = content["about"]["plan_id"]
    for changes, said in (
        ({"planner": "mine"}, 'content.about.planner is "mine", the store says "uniform"'),
        ({"model": "gpt"}, 'content.about.model is "gpt", the store says "resnet50"'),
        ({"row": "0"}, 'content.about.row is "0", the store has no such row of this plan'),
        ({"row": plan_id, "planner": "mine"}, 'content.about.planner is "mine", the store says "uniform"'),
    ):
        file.write_bytes(written({**content, "about": content["about"] | changes}))
        done = pipebench("certify", "--check", str(file), "--against", store)
        assert (done.code, said in done.out) == (1, True), (changes, done.out)


def test_a_plan_file(pipebench: CommandLine, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    words = ("plan", "uniform", "--profile", "resnet50", "-n", "2", "--memory", "16GB", "--regime", "sync")
    assert pipebench(*words, "-o", plan).code == 0
    assert pipebench("certify", plan, "-o", str(tmp_path / "proofs")).code == 0
    assert pipebench("certify", "--check", str(tmp_path / "proofs")).code == 0


def test_a_plan_file_against_a_store_with_its_plan(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    plan, folder = str(tmp_path / "plan.json"), str(tmp_path / "proofs")
    words = ("plan", "uniform", "--profile", "resnet50", "-n", "2", "--memory", "16GB", "--regime", "sync")
    assert pipebench(*words, "-o", plan).code == 0
    assert pipebench("certify", plan, "-o", folder).code == 0
    assert pipebench("certify", "--check", folder, "--against", store).code == 0


def test_another_document_is_named_and_the_command_that_takes_it(
    pipebench: CommandLine, store: str, tmp_path: Path
) -> None:
    packed = str(tmp_path / "store.zip")
    assert pipebench("pack", store, "-o", packed).code == 0
    profile = str(profiles_folder() / "resnet50.json")
    for file, said in ((profile, "a profile, not a certificate"), (packed, "a packed store, not a certificate")):
        done = pipebench("certify", "--check", file)
        assert done.code == 1
        assert said in done.out
        assert "pipebench show" in done.out or "certify STORE" in done.out


def test_mistakes_are_one_line(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    for words, code, said in (
        (("certify", store), 2, "name one with -o"),
        (("certify", store, "-o", out, "--against", store), 2, "--against goes with --check"),
        (("certify", "--check", store, "-o", out), 2, "leave out --row, --planner, -o and --fresh"),
        (("certify", store, "--row", "zz", "-o", out), 4, "has no such row"),
        (("certify", str(tmp_path / "none"), "-o", out), 2, "none"),
        (("certify", "--check", str(tmp_path)), 2, "has no certificates"),
    ):
        done = pipebench(*words)
        assert (done.code, done.out) == (code, ""), words
        assert said in done.err
        assert len(done.err.splitlines()) == 1


def test_rows_without_plans_say_what_to_do(pipebench: CommandLine, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    rows.write_text(pipebench(*ROWS, "--json").out)
    done = pipebench("certify", str(rows), "-o", str(tmp_path / "out"))
    assert done.code == 2
    assert "run `compare --out STORE` and certify the store" in done.err


def test_a_store_whose_plan_is_gone(pipebench: CommandLine, store: str, tmp_path: Path) -> None:
    row = next(row for row in open_results(store).rows if row.plan_id)
    shutil.rmtree(next(Path(store).rglob(f"{row.schedule_id}.json")).parent)
    done = pipebench("certify", store, "--row", row.key, "-o", str(tmp_path / "out"))
    assert done.code == 4
    assert "not certified" in done.out
    assert "has no schedule" in done.out


def test_figures_that_look_alike_are_told_apart(store: str, tmp_path: Path) -> None:
    (subject, *_) = subjects(store)
    assert subject.row is not None
    assert subject.row.bound_s is not None
    older = replace(subject.row, bound_s=subject.row.bound_s + 7e-9)
    done = certify(dataclasses.replace(subject, row=older), tmp_path)
    before, after = re.findall(r"(\d+) ns", done.reason)
    assert int(before) - int(after) == 7


@pytest.mark.parametrize("verb", [["show"], ["certify", "-o", "made"]])
def test_a_certificate_in_the_place_of_results_is_known(
    pipebench: CommandLine, store: str, tmp_path: Path, verb: list[str]
) -> None:
    pipebench("certify", store, "-o", str(tmp_path))
    file = next(iter(tmp_path.glob("*.json")))
    done = pipebench(*verb, str(file))
    assert done.code == 2
    assert done.err == f"pipebench: {file} is a certificate (check it: pipebench certify --check FILE)\n"
