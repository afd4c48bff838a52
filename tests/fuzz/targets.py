"""What is fuzzed: each reader with the commands behind it, and how often each takes its turn."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FILE, FIXED, PLAN_ID, WORDS = "FILE", "FIXED/", "PLAN_ID", "WORDS"
"""In a command: the input, a sound file beside it, the start of the plan_id of stores, the input as words."""
Call = Callable[[bytes, Path, Path], None]
"""What is run in place of a command: the input's bytes, its file, the folder of sound files."""
PROBLEM = ("--devices", "2", "--memory", "1GB", "--mini-batch", "8")
SCORED = ("compare", "--plans", f"{FIXED}bare.json", *PROBLEM)
"""A comparison without a search: a finished plan on the problem."""


@dataclass(frozen=True, slots=True)
class Target:
    """kinds: of the seeds that are made wrong. commands: one of them is run, by the draw; or the call.

    weight: turns of a hundred or so. folder: the input replaces one file of the store or history of that name.
    """

    name: str
    kinds: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...] = ()
    call: Call | None = None
    weight: int = 4
    folder: str = ""


def _read_texts(data: bytes, file: Path, fixed: Path) -> None:
    from pipebench.formats.quantities import parse_bandwidth, parse_bytes, parse_seconds
    from pipebench.hooks.syntax import parse_reference, parse_references, split_list, typed_options
    from pipebench_madpipe.plugin import MadPipeOptions
    from tests.fuzz.outcomes import refused

    text = data.decode(errors="replace")
    for read in (parse_bytes, parse_bandwidth, parse_seconds, split_list, parse_reference):
        refused(read, text)
    refused(parse_references, [text, text])
    refused(lambda: typed_options(parse_reference(text), MadPipeOptions))


def _read_program(data: bytes, file: Path, fixed: Path) -> None:
    from pipebench.hooks.context import Context
    from pipebench.hooks.programs.program import find_program, run_program
    from tests.bench.store.made import PROBLEM as MADE

    run_program(find_program(f"cat {file}"), MADE, Context(options=None))


def _read_suite(data: bytes, file: Path, fixed: Path) -> None:
    """All that `compare --suite` does before it runs a trial."""
    from pipebench.bench.suites import Settings, settle
    from pipebench.bench.suites.selection import Selection, chosen_suites, select
    from pipebench.bench.trials.comparison import comparison_request
    from pipebench.hooks.manager import Host

    chosen = Selection(suites=(str(file),))
    settings = settle(chosen_suites(chosen), Settings(planners=("uniform",)))
    host = Host()
    comparison_request(host, lambda: select(host, chosen), settings, (), 1)


def _read_benchmarks(data: bytes, file: Path, fixed: Path) -> None:
    from datetime import UTC, datetime

    from pipebench.track.measurement.benchmark_json import read_benchmarks
    from pipebench.track.nights.conditions import this_machine

    read_benchmarks(file, this_machine(), datetime(2025, 1, 1, 1, tzinfo=UTC))


def _read_runs(data: bytes, file: Path, fixed: Path) -> None:
    """All that `accuracy` does before it predicts a run."""
    from pipebench.bench.accuracy.assumptions import NotExpressed
    from pipebench.bench.accuracy.expression import express
    from pipebench.bench.accuracy.reader import read_runs

    for run in read_runs(str(file)):
        with suppress(NotExpressed):
            express(run)


def _read_measured(data: bytes, file: Path, fixed: Path) -> None:
    """All that `calibrate` does before it predicts a run."""
    from pipebench.bench.accuracy.assumptions import NotExpressed
    from pipebench.bench.accuracy.expression import express
    from pipebench.bench.calibration.sources import measured_runs

    for run in measured_runs([str(file)], "A100-SXM4-80GB"):
        with suppress(NotExpressed):
            express(run)


def _read_traced(data: bytes, file: Path, fixed: Path) -> None:
    """A trace that `calibrate` is given for a run."""
    from pipebench.bench.calibration.sources import with_traces
    from tests.bench.accuracy.tables import run

    with_traces([run(id="one")], [f"one={file}"])


def _check_certificate(data: bytes, file: Path, fixed: Path) -> None:
    """A certificate as it is, and its content as under a new seal; against a store that never had its plan."""
    from pipebench.bench.certification import verify
    from pipebench.bench.store.results import open_results
    from pipebench.certificates.check import check_content
    from pipebench.certificates.document import Part, Refused

    verify(str(file), open_results(fixed / "store"))
    with suppress(Refused, ValueError, RecursionError):
        document = json.loads(data)
        check_content(
            Part(document["content"] if isinstance(document, dict) and "content" in document else document, "x")
        )


WRITTEN = (".piper.json", ".tarnawski.json", ".csv", ".txt", ".json")
FRAMEWORKS = ("megatron", "torchtitan", "pipelining", "deepspeed", "pipedream")
TARGETS: tuple[Target, ...] = (
    Target("profile: show", ("profile",), (("show", FILE), ("show", FILE, "--picture", "x.svg")), weight=14),
    Target(
        "profile: convert",
        ("profile",),
        tuple(("convert", FILE, "-o", f"x{end}") for end in WRITTEN),
        weight=8,
    ),
    Target("profile: score", ("profile",), ((*SCORED, "--profile", FILE),), weight=4),
    Target("profile: plan", ("profile",), (("plan", "uniform", "-p", FILE, *PROBLEM),), weight=1),
    Target(
        "plan: show",
        ("plan",),
        (
            ("show", FILE),
            ("show", FILE, "--json"),
            ("show", FILE, "--picture", "x.svg"),
            ("show", FILE, "--picture", "x.json"),
            ("show", FILE, "--graph", "x.svg"),
            ("show", FILE, "--trace", f"{FIXED}trace.json"),
        ),
        weight=14,
    ),
    Target("plan: certify", ("plan",), (("certify", FILE, "-o", "x"),), weight=3),
    Target("certificate: check", ("certificate",), (("certify", "--check", FILE),), weight=2),
    Target("certificate: check under a new seal", ("certificate",), call=_check_certificate, weight=6),
    Target("plan: validate", ("plan",), (("validate", FILE), ("validate", FILE, "--json")), weight=8),
    Target("plan: export", ("plan",), tuple(("export", FILE, "--to", name) for name in FRAMEWORKS), weight=8),
    Target("plan: execute", ("plan",), (("execute", FILE, "--executor", "simulate"),), weight=4),
    Target(
        "plan: compare",
        ("plan", "bare"),
        (("compare", "--plans", FILE, "--profile", f"{FIXED}a-profile.json", *PROBLEM),),
        weight=3,
    ),
    Target(
        "plan: diff",
        ("plan", "bare"),
        (("diff", FILE, f"{FIXED}plan.json"), ("diff", f"{FIXED}plan.json", FILE, "--json")),
        weight=6,
    ),
    Target("trace: show", ("trace",), (("show", f"{FIXED}plan.json", "--trace", FILE), ("show", FILE)), weight=6),
    Target(
        "documents: show",
        ("document", "bare", "plan", "rows"),
        (("show", FILE), ("show", FILE, "--picture", "x.svg"), ("show", FILE, "--json")),
        weight=8,
    ),
    Target(
        "rows: show, report, diff",
        ("rows",),
        (
            ("show", FILE),
            ("show", FILE, "--picture", "x.svg"),
            ("report", FILE, "-o", "x.html"),
            ("report", FILE, "-o", "x.md"),
            ("report", FILE, "-o", "x.csv"),
            ("diff", FILE, f"{FIXED}rows.json"),
            ("attach", f"{FILE}:", f"{FIXED}rank0.json"),
        ),
        weight=10,
    ),
    Target(
        "store: show, report, diff, pack",
        ("store",),
        (
            ("show", FILE),
            ("show", FILE, "--plan", PLAN_ID),
            ("show", FILE, "--picture", "x.svg"),
            ("report", FILE, "-o", "x.html"),
            ("report", FILE, "-o", "x.csv"),
            ("diff", FILE, f"{FIXED}store"),
            ("diff", f"{FIXED}packed.zip", FILE, "--json"),
            ("pack", FILE, "-o", "x.zip"),
        ),
        weight=12,
        folder="store",
    ),
    Target(
        "store: attach",
        ("one",),
        (("attach", FILE, f"{FIXED}rank0.json", f"{FIXED}rank1.json"), ("show", FILE, "--plan", PLAN_ID)),
        weight=3,
        folder="one",
    ),
    Target("store: rerun", ("one",), (("rerun", FILE),), weight=1, folder="one"),
    Target(
        "store: resume",
        ("store",),
        ((*SCORED, "--profile", f"{FIXED}a-profile.json", "--out", FILE),),
        weight=2,
        folder="store",
    ),
    Target(
        "packed store",
        ("packed",),
        (
            ("show", FILE),
            ("show", FILE, "--plan", PLAN_ID),
            ("report", FILE, "-o", "x.html"),
            ("diff", FILE, f"{FIXED}packed.zip"),
        ),
        weight=8,
    ),
    Target(
        "chrome trace: attach",
        ("rank0",),
        (("attach", f"{FIXED}one", FILE, f"{FIXED}rank1.json"),),
        weight=5,
    ),
    Target(
        "chrome trace: attach, without warm-up",
        ("rank1",),
        (("attach", f"{FIXED}one", f"{FIXED}rank0.json", FILE, "--warmup", "0", "-o", "x.json"),),
        weight=5,
    ),
    Target(
        "torch schedule: validate",
        ("schedule",),
        (("validate", FILE), ("validate", FILE, "--plan", f"{FIXED}plan.json"), ("validate", FILE, "--json")),
        weight=8,
    ),
    Target(
        "layout: compare",
        ("layout",),
        (("compare", "--plans", FILE, "--profile", f"{FIXED}language-profile.json", *PROBLEM),),
        weight=5,
    ),
    Target("config: compare", ("config",), ((*SCORED, "--config", FILE),), weight=3),
    Target(
        "cluster: compare",
        ("cluster",),
        ((*SCORED, "--profile", f"{FIXED}a-profile.json", "--cluster", FILE),),
        weight=4,
    ),
    Target("suite", ("suite",), call=_read_suite, weight=6),
    Target("runs", ("runs",), call=_read_runs, weight=6),
    Target("logs", ("log", "runs"), call=_read_measured, weight=5),
    Target("chrome trace: calibrate", ("rank0", "rank1"), call=_read_traced, weight=3),
    Target("logs: attach", ("log",), (("attach", f"{FIXED}one", FILE),), weight=3),
    Target(
        "track",
        ("history", "acknowledged"),
        (
            ("track", "check", "--history", FILE),
            ("track", "report", "--history", FILE),
            ("track", "page", "--history", FILE),
        ),
        weight=4,
        folder="baselines",
    ),
    Target("track: convert", ("earlier",), (("track", "convert", "--history", FILE),), weight=1, folder="earlier"),
    Target("track: benchmarks", ("benchmark",), call=_read_benchmarks, weight=2),
    Target("program output", ("bare", "plan"), call=_read_program, weight=3),
    Target("references and quantities", ("reference", "quantity"), call=_read_texts, weight=6),
    Target(
        "words: draw, info, schema, list",
        ("schedulers", "reference"),
        (
            ("draw", WORDS),
            ("draw", "1f1b", "--forward", WORDS),
            ("draw", "gpipe", "--weight", WORDS, "--transfer", "0.5"),
            ("info", WORDS),
            ("glossary", WORDS),
            ("schema", WORDS),
            ("list", WORDS),
            ("show", WORDS),
            ("diff", WORDS, WORDS),
        ),
        weight=4,
    ),
)
