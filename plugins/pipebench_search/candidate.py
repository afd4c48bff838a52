"""Plans that a search has scored, and which of them it goes on from."""

from dataclasses import dataclass

from pipebench_search.draft import Draft
from pipebench_search.score import Scored

STARTS = 4
"""Plans from which descents start before random moves do: the best, and the best of other shapes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scored plan with its draft, who made the plan that it comes from, and the moves since."""

    scored: Scored
    draft: Draft | None
    source: str
    moves: tuple[str, ...] = ()


def diverse(found: list[Candidate]) -> list[Candidate]:
    """The best, and the best of other shapes; `found` is in order."""
    shapes: dict[object, Candidate] = {}
    for each in found:
        if each.draft is not None:
            parts = each.draft.parts
            shape = len(parts), each.draft.sizes, each.draft.copies, parts[0].micro_batch
            shapes.setdefault(shape, each)
    return list(shapes.values())[:STARTS]
