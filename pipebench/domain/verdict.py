"""Verdict: is it valid, and if not the smallest witness."""

from typing import Literal

from msgspec.structs import replace

from pipebench.domain.value import Value, require

Rule = Literal["coverage", "C1", "C2", "C3", "C4", "memory", "resource", "dependency", "shape"]
Fit = Literal["fits", "tight", "does not fit"]


class Witness(Value, frozen=True, kw_only=True):
    """Why a plan, schedule or trace is invalid: the rule and where it is broken.

    rule: the broken rule.
    - coverage: each operator is in exactly one stage, each task runs exactly once.
    - C1: stages are convex. C2: edges have no cycle. C3: devices are a partition. C4: order of tasks.
    - dependency: no operation before one that it needs.
    - resource: one operation at a time on a device or link.
    - shape: sizes and names, and no more in flight than declared.
    bytes_over: for memory, by how much the device is exceeded.
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
    """The verdict made invalid by another witness. A verdict that is invalid already stays as it is."""
    if witness is None or verdict.status == "invalid":
        return verdict
    return replace(verdict, status="invalid", witness=witness, reason="")
