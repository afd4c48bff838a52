"""The figures of a run, and how to run a failure again."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.cases import Cases
from tests.fuzz.outcomes import LONGEST_S, MOST_BYTES, Outcome
from tests.fuzz.runner import Run

MOST_SHOWN = 3
"""Failures of one kind that are told in full."""


def figures(outcomes: Sequence[Outcome], cases: Cases) -> Iterator[str]:
    """Inputs by target, refused and accepted, the slowest and the largest, failures by kind."""
    by_target: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_target[cases.target_of(outcome.number)].append(outcome)
    width = max(map(len, by_target), default=0)
    yield f"{'target':{width}}   inputs  refused accepted   failed  in all  slowest  largest"
    for name, found in sorted(by_target.items()):
        yield _line(name, found, width)
    yield _line("all", outcomes, width)
    kinds = Counter(outcome.failure for outcome in outcomes if outcome.failure)
    yield f"failures: {sum(kinds.values())} (limits: {LONGEST_S:g} s, {MOST_BYTES / 1e9:.2f} GB)"
    for kind, count in kinds.most_common():
        yield f"  {count:6} {kind}"


def _line(name: str, found: Sequence[Outcome], width: int) -> str:
    refused = sum(outcome.refused for outcome in found)
    failed = sum(bool(outcome.failure) for outcome in found)
    slowest = max((outcome.seconds for outcome in found), default=0.0)
    total = sum(outcome.seconds for outcome in found)
    largest = max((outcome.peak_bytes for outcome in found), default=0)
    counts = f"{len(found):8} {refused:8} {len(found) - refused - failed:8} {failed:8}"
    return f"{name:{width}} {counts} {total:5.0f} s {slowest:6.2f} s {largest / 1e6:5.0f} MB"


def failures(outcomes: Sequence[Outcome], cases: Cases, asked: Run, kept: Path) -> Iterator[str]:
    """Each failure with its command, its input on disk, and how to run it again; MOST_SHOWN of each kind."""
    shown: Counter[str] = Counter()
    for outcome in outcomes:
        shown[outcome.failure] += bool(outcome.failure)
        if not outcome.failure or shown[outcome.failure] > MOST_SHOWN:
            continue
        case = cases.case(outcome.number)
        kept.mkdir(parents=True, exist_ok=True)
        file = kept / f"{outcome.number}{''.join(Path(case.seed.name).suffixes)}"
        file.write_bytes(case.data)
        only = f" --only '{asked.only}'" if asked.only else ""
        yield f"{outcome.failure}: case {outcome.number}, {case.target.name}, {' '.join(case.command)}"
        yield f"  input: {file} ({len(case.data)} bytes, from {case.seed.name})"
        yield f"  again: python -m tests.fuzz 1 --seed {asked.seed} --first {outcome.number}{only}"
        yield "  " + outcome.told.rstrip().replace("\n", "\n  ")
