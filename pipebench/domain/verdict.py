"""Verdict: is it valid, and if not the smallest witness."""

from typing import Literal

from msgspec.structs import replace

from pipebench.domain.value import Value, require

Rule = Literal["coverage", "C1", "C2", "C3", "C4", "memory", "resource", "dependency", "shape"]
Fit = Literal["fits", "tight", "does not fit"]


class Witness(Value, frozen=True, kw_only=True):
    """Why a plan, schedule or trace is invalid: the rule and where it breaks.

    coverage: each operator in exactly one stage, each task exactly once. C1 convex stages, C2 acyclic edges,
    C3 devices a partition, C4 order of tasks. dependency: an operation before one that it needs. resource: two
    operations at a time on one device or link. shape: wrong sizes or names, more in flight than declared.
    bytes_over: for memory, how much more than the device has.
    """

    rule: Rule
    message: str
    stage: int | None = None
    operator: str | None = None
    device: int | None = None
    micro_batch: int | None = None
    instant_ns: int | None = None
    bytes_over: int | None = None


class Verdict(Value, frozen=True, kw_only=True):
    """`valid`, `invalid` with a witness, or `unknown` with a reason; memory beside it.

    peak_bytes: for each device that the plan uses (id to bytes), the most it holds at any instant.
    """

    status: Literal["valid", "invalid", "unknown"]
    witness: Witness | None = None
    reason: str = ""
    fit: Fit | None = None
    peak_bytes: dict[int, int] = {}

    def __post_init__(self) -> None:
        require((self.status == "invalid") == (self.witness is not None), "an invalid verdict has a witness")


def with_witness(verdict: Verdict, witness: Witness | None) -> Verdict:
    """The verdict made invalid by a witness that was found besides; one that is invalid already stays as it is."""
    if witness is None or verdict.status == "invalid":
        return verdict
    return replace(verdict, status="invalid", witness=witness, reason="")
