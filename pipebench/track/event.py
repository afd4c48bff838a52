"""Event: a change that the nights show, from its first night to its end."""

from typing import Literal

from pipebench.domain.value import Value, digest
from pipebench.track.exact import Outcome
from pipebench.track.night import Exact

State = Literal["open", "acknowledged", "over", "told"]


class Column(Value, frozen=True, kw_only=True):
    """One exact column before and after."""

    name: str
    before: Exact
    after: Exact


class Event(Value, frozen=True, kw_only=True):
    """identity: how it is acknowledged. kind `exact`: columns changed from one night to the next; `time`: the
    rule told a change of speed, by the factor 1 + change.

    began: the first night with the new values, dated by a fit for times; told: the night that showed it; both as
    recorded_at. before, after: the revisions between which it happened. plans: hashes of the plans, where both
    nights have one. state `open`: worse and neither acknowledged nor over; `told`: not worse. reason: of the
    acknowledgement, or why it is over.
    """

    identity: str
    kind: Literal["exact", "time"]
    planner: str
    subject: str
    outcome: Outcome
    began: str
    told: str
    before: str = ""
    after: str = ""
    machine: str = ""
    columns: tuple[Column, ...] = ()
    plans: tuple[str, str] | None = None
    change: float | None = None
    state: State
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether a check fails because of it."""
        return self.state == "open"


def identity(*parts: object) -> str:
    """Eight letters that stay the same from night to night."""
    return digest([str(part) for part in parts])[:8]
