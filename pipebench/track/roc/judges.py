"""Who judges a history: this suite's rule, or another tool in an environment of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipebench.domain.errors import PipebenchError
from pipebench.track.roc.histories import BEFORE
from pipebench.track.rule.rule import WINDOW, RatioPoint, readings

Tool = Literal["pipebench", "asv", "otava"]
THRESHOLDS: dict[Tool, tuple[float, ...]] = {
    "pipebench": (0.8, 1.0, 1.25, 1.6),
    "asv": (0.02, 0.05, 0.10),
    "otava": (0.01, 0.001, 0.0001),
}
"""What is turned at each: the caution of `readings`; the least relative size of a regression; the largest p."""
DEFAULTS: dict[Tool, float] = {"pipebench": 1.0, "asv": 0.05, "otava": 0.001}
SAME = 10
"""Positions closer than these nights are one change."""
INSTALL: dict[Tool, str] = {"asv": "asv", "otava": "apache-otava"}
"""The other tools, and what pip calls them."""


@dataclass(frozen=True, slots=True)
class Judge:
    """python: the interpreter of another tool, which is asked about the nights from the change on."""

    tool: Tool
    python: str = ""

    @property
    def first(self) -> int:
        """The first night that is judged."""
        return BEFORE if self.python else WINDOW

    def told(self, histories: Sequence[Sequence[RatioPoint]]) -> list[list[list[int]]]:
        """For each threshold and history the nights in which something was told to be slower.

        Each night is judged by what was known that night. Raises PipebenchError where the other tool does not run.
        """
        if self.tool == "pipebench":
            return [[_slower(points, threshold) for points in histories] for threshold in THRESHOLDS[self.tool]]
        answer = self._answer([[point.ratio for point in points] for points in histories])
        return [
            [[night for night in first_told(nights, BEFORE - 1) if night >= BEFORE] for nights in found]
            for found in answer["positions"]
        ]

    def version(self) -> str:
        """Of the other tool, which is asked about nothing. Raises PipebenchError where it does not run."""
        return str(self._answer([])["version"])

    def _answer(self, histories: list[list[float]]) -> dict[str, list[list[list[list[int]]]]]:
        request = {"histories": histories, "first": BEFORE - 1, "thresholds": THRESHOLDS[self.tool]}
        script = Path(__file__).with_name(f"{self.tool}_rule.py")
        command = [self.python, "-I", str(script)]
        try:
            done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
        except OSError as error:
            raise PipebenchError(
                f"--{self.tool}: {self.python!r} cannot be run: {os.strerror(error.errno or 0)}",
                "name the Python of an environment, such as .venv/bin/python",
            ) from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise PipebenchError(
                f"--{self.tool}: {self.python} does not run {self.tool}: {last}",
                f"make an environment of its own: {Path(sys.executable).name} -m venv other && "
                f"other/bin/pip install {INSTALL[self.tool]}",
            )
        answer: dict[str, list[list[list[list[int]]]]] = json.loads(done.stdout)
        return answer


def _slower(points: Sequence[RatioPoint], caution: float) -> list[int]:
    return [night for night, found in enumerate(readings(points, caution)) if found.alarm and found.change > 0]


def first_told(nights: Sequence[Sequence[int]], first: int) -> list[int]:
    """The nights in which a position was new: not near one that an earlier night had.

    nights: positions reported in each night, of which the first is called `first`.
    """
    known: list[int] = []
    found = []
    for night, positions in enumerate(nights, start=first):
        new = [place for place in positions if all(abs(place - other) > SAME for other in known)]
        if new:
            found.append(night)
        known += [place for place in positions if place not in known]
    return found
