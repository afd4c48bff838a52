"""400 wrong inputs: each is accepted or refused in one line, soon and in little memory; and the fuzzer."""

import random
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from pipebench.domain.errors import PipebenchError
from tests.fuzz.cases import Case, Cases
from tests.fuzz.mutate_archives import mutate_zip, write_zip
from tests.fuzz.mutate_json import mutate_json
from tests.fuzz.mutate_lines import mutate_table, mutate_toml
from tests.fuzz.outcomes import LONGEST_S, MOST_BYTES, Outcome, judged
from tests.fuzz.report import failures, figures
from tests.fuzz.runner import Run, run
from tests.fuzz.seeds import Seed, Workshop
from tests.fuzz.targets import TARGETS
from tests.fuzz.worker import run_case
from tests.nightly import mostly_at_night

INPUTS, PART, RUN_SEED = 400, 200, 18


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fixed"


@pytest.fixture(scope="module")
def seeds(fixed: Path) -> list[Seed]:
    return Workshop(fixed).seeds()


@pytest.mark.timeout(900)  # some 30 s of CPU, on a machine with other work
@pytest.mark.parametrize("first", mostly_at_night(range(0, INPUTS, PART), [0]))
def test_no_input_breaks_a_command(fixed: Path, seeds: list[Seed], tmp_path: Path, first: int) -> None:
    asked = Run(PART, RUN_SEED, first)
    outcomes = run(asked, fixed)
    cases = Cases(seeds, RUN_SEED)
    assert len(outcomes) == PART
    told = [*failures(outcomes, cases, asked, tmp_path), *figures(outcomes, cases)]
    assert not any(outcome.failure for outcome in outcomes), "\n".join(told)
    accepted = {cases.target_of(outcome.number) for outcome in outcomes if not outcome.refused}
    assert len(accepted) > 0.6 * len(TARGETS)  # the inputs reach what lies behind the readers


def test_every_target_accepts_a_sound_input(
    fixed: Path, seeds: list[Seed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where the lock of timed trials stands
    refused = []
    for target in TARGETS:
        tried = (
            run_case(Case(0, target, seed, seed.data, command), fixed, tmp_path)
            for seed in seeds
            if seed.kind in target.kinds
            for command in target.commands or ((),)
        )
        if all(error is not None for error in tried):
            refused.append(target.name)
    assert refused == ["plan: execute"]  # no executor that measures is there without torch


def test_inputs_follow_from_the_seed(seeds: list[Seed]) -> None:
    first, again, other = Cases(seeds, 1), Cases(seeds, 1), Cases(seeds, 2)
    inputs = [first.case(number).data for number in range(100)]
    assert inputs == [again.case(number).data for number in range(100)]
    assert inputs != [other.case(number).data for number in range(100)]
    assert len(set(inputs)) > 80


@pytest.mark.parametrize(
    ("error", "refused", "failure"),
    [
        (None, False, ""),
        (PipebenchError("no"), True, ""),
        (click.UsageError("no"), True, ""),
        (PipebenchError(" "), True, "a refusal without a word"),
        (MemoryError(), False, "MemoryError in ?"),
        (KeyError("x"), False, "KeyError in ?"),
    ],
)
def test_what_an_error_means(error: Exception | None, refused: bool, failure: str) -> None:
    verdict = judged(error)
    assert (verdict.refused, verdict.failure) == (refused, failure)


def test_a_traceback_is_named_by_its_place() -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(b"{")
    assert judged(caught.value).failure.startswith("DecodeError in test_fuzz.py:test_a_traceback")


def test_a_worker_that_hangs_or_dies_costs_one_input(tmp_path: Path) -> None:
    """The worker of this test sleeps in case 2, dies in case 5, is slow in 6 and large in 7."""
    asked = Run(9, module="tests.fuzz.faulty_worker", patience_s=1.0)
    outcomes = run(asked, tmp_path)
    kinds = {outcome.number: outcome.failure for outcome in outcomes if outcome.failure}
    assert [outcome.number for outcome in outcomes] == list(range(9))
    assert kinds == {
        2: "hang",
        5: "death of the process",
        6: "took too long",
        7: "took too much memory",
    }


def test_the_figures_name_every_failure(seeds: list[Seed], tmp_path: Path) -> None:
    cases = Cases(seeds, 3)
    asked = Run(3, 3)
    outcomes = [Outcome(number=0), Outcome(number=1, refused=True), Outcome(number=2, failure="hang", told="x")]
    told = "\n".join([*failures(outcomes, cases, asked, tmp_path), *figures(outcomes, cases)])
    assert "python -m tests.fuzz 1 --seed 3 --first 2" in told
    assert "failures: 1" in told
    (kept,) = tmp_path.iterdir()
    assert kept.read_bytes() == cases.case(2).data


def _drawn(count: int = 60) -> Iterator[random.Random]:
    return (random.Random(number) for number in range(count))


def test_mutators_change_what_they_get() -> None:
    document = b'{"a": [1, 2.5, "x", {"b": true}], "c": null}'
    assert len({mutate_json(document, draw) for draw in _drawn()}) > 50
    assert len({mutate_table(b"a,b\n1,2\n3,4\n", draw) for draw in _drawn()}) > 40
    assert len({mutate_toml(b"a = 1\n[b]\nc = 2\n", draw) for draw in _drawn()}) > 30
    packed = write_zip([("store.json", document), ("rows.jsonl", document + b"\n")])
    assert len({mutate_zip(packed, packed, draw) for draw in _drawn()}) > 40


def test_limits() -> None:
    assert (LONGEST_S, MOST_BYTES) == (10.0, 2**30)
