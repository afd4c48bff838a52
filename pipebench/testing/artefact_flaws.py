"""What is wrong with a paper's figure before anything of it has run."""

from collections.abc import Iterator
from typing import Any

from pipebench.domain.artefact import Claim, Figure


def artefact_flaws(made: Any) -> Iterator[str]:
    """Without results: claims with quotes, a suite to run, one finding for each claim, a figure."""
    claims = made.claims
    if not claims or not all(isinstance(claim, Claim) for claim in claims):
        yield "it has no claims of the paper"
    parts = {full: len(made.suite(full)) for full in (False, True)}
    if not parts[False]:
        yield "suite(False) has nothing to run"
    if parts[False] > parts[True]:
        yield f"suite(False) has {parts[False]} cells, more than all ({parts[True]})"
    for time in (1, 2):
        found = len(made.judge([]))
        if found != len(claims):
            yield f"judge([]) gives {found} findings for {len(claims)} claims (call {time})"
    if not isinstance(made.series([]), Figure):
        yield "series([]) is no Figure"
