"""The checker of certificates: what one proves, from its own numbers, or where it breaks.

It imports nothing of planners, bounds, costs and simulation: the standard library, and the files beside it,
`document.py`, `problem_premises.py`, `plan_premises.py`, `plan_check.py`, `bound_kinds.py`, `bound_check.py`,
`group_check.py`, `group_boxes.py`, `group_rows.py` and `layer_check.py`. All numbers are whole. Without the rest
of the suite: `python -m pipebench.certificates.check FILE…`.
"""

import sys
from dataclasses import dataclass

from pipebench.certificates.bound_kinds import ALL, check_bound, require_agreement
from pipebench.certificates.document import Part, Refused, opened, read
from pipebench.certificates.plan_check import check_plan
from pipebench.certificates.plan_premises import read_plan
from pipebench.certificates.problem_premises import read_problem

ABOUT = "row", "planner", "scheduler", "model", "cluster", "problem_id", "plan_id", "schedule_id", "made_by"
"""What a certificate says of where it comes from: texts that prove nothing."""


@dataclass(frozen=True)
class Proven:
    """What a certificate proves.

    time_ns: of one mini-batch under the plan, which fits. tight: in part where memory is to stay free.
    bound_ns: that no plan of the problem beats. over: of which plans. regime: of the problem, sync or async.
    about: where the certificate comes from, as it says.
    """

    time_ns: int
    bound_ns: int
    over: str
    tight: bool
    regime: str
    about: dict[str, str]


def check(data: bytes) -> Proven:
    """What the bytes of a certificate prove. Raises Refused, which names the place."""
    return check_content(opened(data))


def check_content(content: Part) -> Proven:
    """What the content of a certificate proves, whatever its seal. Raises Refused."""
    about = content.part("about")
    said = {name: about.text(name) for name in ABOUT}
    about.end()
    problem = read_problem(content.part("problem"))
    plan = read_plan(problem, content.part("plan"))
    proof = check_plan(problem, plan, content.part("schedule"))
    bound_part = content.part("bound")
    over = bound_part.text("over")
    if over == ALL and not any(stage.splits for stage in plan.stages):
        raise Refused(bound_part.at("over"), f"is {ALL!r}, and the plan splits no operator")
    bound_ns = check_bound(problem, bound_part)
    require_agreement(problem, plan, bound_part)
    claims = content.part("claims")
    _require_claim(claims, "time_ns", proof.time_ns)
    _require_claim(claims, "bound_ns", bound_ns)
    if bound_ns > proof.time_ns:
        raise Refused("content.bound", f"{bound_ns} ns are more than the plan takes, {proof.time_ns} ns")
    peaks = claims.rows("peak_bytes", int, int)
    if peaks != [[device, peak] for device, peak in sorted(proof.peak_bytes.items())]:
        raise Refused(claims.at("peak_bytes"), "are not those of the schedule")
    tight = _fits(proof.peak_bytes, problem.devices)
    if claims.text("fit", ("fits", "tight")) != ("tight" if tight else "fits"):
        raise Refused(claims.at("fit"), "is not what the memory of the devices says")
    claims.end()
    content.end()
    return Proven(proof.time_ns, bound_ns, over, tight, "sync" if problem.flushes else "async", said)


def _require_claim(claims: Part, name: str, found: int) -> None:
    claimed = claims.number(name)
    if claimed != found:
        raise Refused(claims.at(name), f"is {claimed}, the tables and the schedule say {found}")


def _fits(peaks: dict[int, int], devices: list[list[int]]) -> bool:
    """Whether some device uses what is to stay free. Raises Refused where one holds more than it has."""
    for device, peak in peaks.items():
        if peak > devices[device][0]:
            words = f"device {device} holds {peak} bytes, it has {devices[device][0]}"
            raise Refused("content.schedule", words)
    return any(peak > devices[device][0] - devices[device][1] for device, peak in peaks.items())


def main(paths: list[str]) -> int:
    """Check files and print a line for each; 0 where all prove what they say."""
    refused = 0
    for path in paths:
        try:
            found = check(read(path))
            print(f"{path}: takes {found.time_ns} ns and fits; no plan takes less than {found.bound_ns} ns")
        except (Refused, OSError) as error:
            refused += 1
            print(f"{path}: refused: {error}".encode("ascii", "backslashreplace").decode())
    return 1 if refused or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
