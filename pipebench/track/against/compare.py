"""Two installed sides, run in turns: A-B-B-A, so that a drift of the machine meets both alike."""

import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.track.against.compared import Against, Sums
from pipebench.track.against.run import OtherRow, Run, run_side
from pipebench.track.against.side import Side
from pipebench.track.against.sides import Sides
from pipebench.track.robust import half_width

FEWEST_PAIRS, MOST_PAIRS = 9, 15
PRECISE = 0.015
CALIBRATION = Path("bench/searches/calibration.py")
SAMPLES = 5
"""Warm searches in one process."""

Runner = Callable[[Side, Sequence[str], Path], Run]


def compare_sides(
    sides: Sides,
    arguments: Sequence[str],
    folder: Path,
    budget_s: float,
    told: Callable[[int, int], None] | None = None,
    run: Runner = run_side,
) -> Against:
    """Pairs of runs until every subject is known to 1.5 % or there are 15, or the budget ends.

    arguments: of `pipebench compare`. One run of each side comes first and is not looked at: it compiles kernels.
    told: called with the pairs done and the most there will be. Raises PipebenchError when a side gives no rows.
    """
    began = time.monotonic()
    words = [*arguments, "--repeat", str(SAMPLES)]
    for side in (sides.before, sides.after):
        if not run(side, words, folder).rows:
            raise PipebenchError(f"{side.name}: nothing ran", exit_code=ExitCode.NOTHING_RAN)
    sums = Sums(calibrated=same_calibration(sides))
    notices = []
    for number in range(MOST_PAIRS):
        if told is not None:
            told(number, MOST_PAIRS)
        first, second = (sides.before, sides.after) if number % 2 == 0 else (sides.after, sides.before)
        runs = {side.name: run(side, words, folder) for side in (first, second)}
        sums.add(_rows(runs, sides.before), _rows(runs, sides.after))
        if number + 1 >= FEWEST_PAIRS and all(half_width(logs) < PRECISE for logs in sums.logs.values() if logs):
            break
        spent_s = time.monotonic() - began
        if spent_s + sum(each.wall_s for each in runs.values()) > budget_s and number + 1 < MOST_PAIRS:
            notices.append(f"the budget of {budget_s:g} s ended after {number + 1} pairs")
            break
    return Against(
        distribution=sides.distribution,
        before=sides.before.name,
        after=sides.after.name,
        subjects=sums.subjects(),
        calibrated=same_calibration(sides),
        notices=tuple(notices),
    )


def same_calibration(sides: Sides) -> bool:
    """Whether both sides calibrate with the same code: else their ratios have different units."""
    texts = [_calibration(side) for side in (sides.before, sides.after)]
    return texts[0] == texts[1]


def _calibration(side: Side) -> bytes:
    own = side.file(str(CALIBRATION))
    if own is None:
        spec = find_spec("pipebench.bench.searches.calibration")
        assert spec is not None
        assert spec.origin is not None
        own = Path(spec.origin)
    return own.read_bytes()


def _rows(runs: dict[str, Run], side: Side) -> Sequence[OtherRow]:
    return runs[side.name].rows
