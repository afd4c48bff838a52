"""Nights of an earlier pipebench: the same history after they were converted, once."""

import hashlib
import math
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from pipebench.bench.store.objects import PLAN
from pipebench.documents.document import encode
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.value import digest
from pipebench.track.judgement.judgement import judge
from pipebench.track.judgement.series import history_series
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.conversion import convert
from pipebench.track.nights.history import History, NightJournal, StoredNight, open_history
from pipebench.track.nights.night import Benchmark, Night
from tests.track.made_nights import MACHINE, OTHER, add_nights, measured, night, paired, subject

EARLIER = Path(__file__).with_name("earlier")
"""Three nights as pipebench 0.2 wrote them, on two classes of machine."""
BASELINES = Path(__file__).parents[2] / "baselines"


def write_earlier(
    folder: Path, machine: MachineClass, nights: Iterable[Night], plans: Iterable[Plan] = ()
) -> None:
    """The whole format: a header, then lines with the SHA-256 of themselves after that of the line before."""
    (folder / "plans").mkdir(parents=True, exist_ok=True)
    for plan in plans:
        (folder / "plans" / f"{digest(plan)}.json").write_bytes(encode(PLAN, plan, indent=1) + b"\n")
    header = {"machine": machine, "made_at": "2026-01-01T02:23:00+00:00"}
    lines = [msgspec.json.encode({"pipebench": "history", "version": 1, "content": header})]
    head = hashlib.sha256(lines[0]).hexdigest()
    for each in nights:
        content = msgspec.json.encode(each)
        last, head = head, hashlib.sha256(head.encode() + b"\n" + content).hexdigest()
        lines.append(msgspec.json.encode({"previous": last, "sha256": head, "night": msgspec.Raw(content)}))
    (folder / f"{machine.name}.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def eventful(machine: MachineClass, seed: int, count: int = 150) -> list[Night]:
    """A step and its end, a drift, a faster planner, a worse plan, more states, benchmarks that are slower."""
    draw = random.Random(seed)

    def level(factor: float) -> float:
        return 5.0 * factor * math.exp(draw.gauss(0.0, 0.02))

    found = []
    for number in range(count):
        levels = {
            "step": 1.2 if 60 <= number < 110 else 1.0,
            "drift": 1.004 ** max(0, number - 70),
            "faster": 0.8 if number >= 90 else 1.0,
            "steady": 1.0,
        }
        states = {"steady": {"work.states": 11 if number >= 40 else 10, "simulated_ns": 1000 + (number >= 80)}}
        subjects = [
            measured(
                level(factor),
                level(factor) if number == 60 else None,
                subject=subject(name),
                exact=states.get(name, {}),
            )
            for name, factor in levels.items()
        ]
        seconds = 3.0 if number >= 100 else 1.0
        benchmarks = (
            Benchmark(name="bare", seconds={"min": seconds, "median": seconds}, counters={"n": 5 + (number > 30)}),
            Benchmark(
                name="beside",
                seconds={"min": 1.0, "median": 1.0},
                paired=paired(level(1.15 if number >= 75 else 1)),
            ),
        )
        found.append(night(number, *subjects, benchmarks=benchmarks, days=number + (seed % 2) / 4))
    return found


def answers(history: History) -> tuple[object, ...]:
    """All that commands show of a history."""
    judgement = judge(history)
    return judgement.events, judgement, history_series(history, judgement.events)


def test_some_hundred_nights_say_the_same_before_and_after(tmp_path: Path) -> None:
    """Before: the nights themselves, in memory. They hold what a history of this kind can hold."""
    nights = {MACHINE: eventful(MACHINE, 0), OTHER: eventful(OTHER, 1, 60)}
    for machine, found in nights.items():
        write_earlier(tmp_path, machine, found)
    assert convert(tmp_path) == 210
    converted = open_history(tmp_path)
    merged = [(machine, each) for machine, found in nights.items() for each in found]
    merged.sort(key=lambda pair: pair[1].at)
    assert [(kept.machine, kept.night) for kept in converted.nights] == merged
    memory = History(tmp_path, tuple(StoredNight.of(machine, each, "") for machine, each in merged))
    events, *rest = answers(converted)
    assert [events, *rest] == list(answers(memory))
    assert isinstance(events, tuple)
    told = {(event.subject.split()[0], event.kind, event.outcome) for event in events}
    assert told >= {
        ("step", "time", "worse"),
        ("step", "time", "better"),
        ("drift", "time", "worse"),
        ("faster", "time", "better"),
        ("steady", "exact", "worse"),
        ("bare", "time", "worse"),
        ("bare", "exact", "worse"),
        ("beside", "time", "worse"),
    }


def test_the_baselines_would_be_converted_to_what_they_are(tmp_path: Path) -> None:
    history = open_history(BASELINES)
    plans = [plan for name in (BASELINES / "objects").rglob("*.json") if (plan := history.plan(name.stem))]
    for machine in history.machines:
        write_earlier(tmp_path, machine, history.of_class(machine), plans)
    convert(tmp_path)
    converted = open_history(tmp_path)
    assert converted.nights == history.nights
    assert all(converted.plan(digest(plan)) == plan for plan in plans)
    lines = [(folder / "nights.jsonl").read_bytes().splitlines() for folder in (tmp_path, BASELINES)]
    assert sorted(lines[0]) == sorted(lines[1])


def test_a_conversion_that_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EARLIER, tmp_path / "once")
    convert(tmp_path / "once")
    shutil.copytree(EARLIER, tmp_path / "twice")
    append, calls = NightJournal.append, []

    def killed(journal: NightJournal, machine: MachineClass, each: Night, plans: Iterable[Plan]) -> None:
        calls.append(each)
        if len(calls) == 3:
            raise KeyboardInterrupt
        append(journal, machine, each, plans)

    with monkeypatch.context() as patch:
        patch.setattr(NightJournal, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            convert(tmp_path / "twice")
    with pytest.raises(PipebenchError, match="earlier pipebench"):
        open_history(tmp_path / "twice")
    convert(tmp_path / "twice")
    moments = [each.finished_at for each in NightJournal.open(tmp_path / "once").rows()]
    assert moments == sorted(moments)
    both = [(tmp_path / name / "nights.jsonl").read_bytes() for name in ("once", "twice")]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"spent_s":10.0', '"spent_s":11.0', "line 2 was edited"),
        ('"pipebench":"history"', '"pipebench":"plan"', "first line is not that of a history"),
        ('"budget_s":60.0', '"moon":60.0', "line 2: .*moon"),
    ],
)
def test_a_file_that_is_wrong_is_said_and_all_stays(tmp_path: Path, before: str, after: str, message: str) -> None:
    shutil.copytree(EARLIER, tmp_path / "history")
    file = next((tmp_path / "history").glob("*-other-*.jsonl"))
    file.write_text(file.read_text().replace(before, after, 1))
    there = sorted(path.name for path in (tmp_path / "history").rglob("*"))
    with pytest.raises(PipebenchError, match=message):
        convert(tmp_path / "history")
    assert sorted(path.name for path in (tmp_path / "history").rglob("*")) == there


def test_an_unfinished_last_line_is_no_night(tmp_path: Path) -> None:
    add_nights(tmp_path / "new", MACHINE, [night(0)])
    write_earlier(tmp_path / "old", MACHINE, [night(0)])
    with open(tmp_path / "old" / f"{MACHINE.name}.jsonl", "ab") as opened:
        opened.write(b'{"previous":"abc')
    assert convert(tmp_path / "old") == 1
    assert open_history(tmp_path / "old").nights == open_history(tmp_path / "new").nights
