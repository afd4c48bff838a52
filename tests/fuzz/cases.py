"""Case number N of a run: its target, its input and its command, all from the number and the run's seed."""

import random
import shutil
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pipebench.domain.value import digest
from tests.bench.store.made import PLAN
from tests.fuzz.mutate_archives import mutate_gzip, mutate_lines_of_json, mutate_zip
from tests.fuzz.mutate_bytes import mutate_bytes
from tests.fuzz.mutate_json import mutate_json
from tests.fuzz.mutate_lines import mutate_table, mutate_toml, mutate_words
from tests.fuzz.seeds import Seed
from tests.fuzz.targets import FILE, FIXED, PLAN_ID, TARGETS, WORDS, Target


@dataclass(frozen=True, slots=True)
class Case:
    """One input. command: empty where the target calls a function."""

    number: int
    target: Target
    seed: Seed
    data: bytes
    command: tuple[str, ...]


class Cases:
    """The cases of one run. run_seed: of all draws. only: a part of a target's name, to look at it alone."""

    def __init__(self, seeds: list[Seed], run_seed: int, only: str = "") -> None:
        self._run_seed = run_seed
        by_kind: dict[str, list[Seed]] = defaultdict(list)
        for seed in seeds:
            by_kind[seed.kind].append(seed)
        self._seeds = {target.name: [s for kind in target.kinds for s in by_kind[kind]] for target in TARGETS}
        chosen = [target for target in TARGETS if only in target.name]
        turns = [target for target in chosen for _ in range(target.weight)]
        random.Random(0).shuffle(turns)
        self._turns = turns

    def target_of(self, number: int) -> str:
        """The name of the target of the case of that number."""
        return self._turns[number % len(self._turns)].name

    def case(self, number: int) -> Case:
        """The case of that number."""
        draw = random.Random(f"{self._run_seed}:{number}")
        target = self._turns[number % len(self._turns)]
        seeds = self._seeds[target.name]
        seed, other = draw.choice(seeds), draw.choice(seeds)
        data = _mutated(seed, other.data, draw)
        command = draw.choice(target.commands) if target.commands else ()
        return Case(number, target, seed, data, command)


def _mutated(seed: Seed, other: bytes, draw: random.Random) -> bytes:
    if seed.shape == "zip":
        return mutate_zip(seed.data, other, draw)
    if draw.random() < 0.2:
        return mutate_bytes(seed.data, other, draw)
    if seed.shape == "json":
        return mutate_json(seed.data, draw)
    if seed.shape == "jsonl":
        return mutate_lines_of_json(seed.data, other, draw)
    if seed.shape == "toml":
        return mutate_toml(seed.data, draw)
    if seed.shape == "table":
        return mutate_table(seed.data, draw)
    if seed.shape == "words":
        return mutate_words(seed.data, draw)
    if seed.shape == "gzip":
        return mutate_gzip(seed.data, other, draw, lambda inside: mutate_json(inside, draw))
    return mutate_bytes(seed.data, other, draw)


def placed(case: Case, fixed: Path, folder: Path) -> tuple[Path, list[str]]:
    """Write the input into the folder. Returns its file and the words of its command."""
    end = "".join(Path(case.seed.name).suffixes)
    file = folder / f"input{end}"
    named = str(file)
    if case.target.folder:
        named = str(folder / case.target.folder)
        shutil.rmtree(named, ignore_errors=True)
        shutil.copytree(fixed / case.target.folder, named)
        file = Path(named) / (case.seed.place or case.seed.name)
    file.write_bytes(case.data)
    named += case.seed.options
    plan_id = digest(PLAN)[:12]
    words = case.data.decode(errors="replace") if WORDS in case.command else ""
    meant = {FILE: named, FIXED: f"{fixed}/", PLAN_ID: plan_id, WORDS: words}
    return file, [reduce(lambda text, name: text.replace(name, meant[name]), meant, word) for word in case.command]
