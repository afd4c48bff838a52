"""May search times of these rows be compared? Only where one kind of machine ran one trial at a time."""

from collections.abc import Iterable

from pipebench.bench.environment import PACKAGES
from pipebench.domain.row import Row

MACHINE_CLASS = ("machine", "system", "cpu", "cpus", "python", *(name for name in PACKAGES if name != "pipebench"))
"""What must be equal in row.environment; the planner's own version is not the machine's business."""


def search_refusal(rows: Iterable[Row]) -> str:
    """Why search times must not be compared, in one line; '' when they may."""
    found = list(rows)
    parallel = sum(row.parallel for row in found)
    if parallel:
        return f"{parallel} of {len(found)} rows ran in parallel with others"
    for name in MACHINE_CLASS:
        values = _values(found, name)
        if len(values) > 1:
            return f"rows come from different machines: {name} is {' and '.join(values)}"
    return ""


def suite_notice(rows: Iterable[Row]) -> str:
    """A line when rows were scored by different versions of the suite, whose models may differ; else ''."""
    values = _values(rows, "pipebench")
    return (
        f"rows were scored by pipebench {' and '.join(values)}, whose models may differ" if len(values) > 1 else ""
    )


def _values(rows: Iterable[Row], name: str) -> list[str]:
    found = {row.environment.get(name, "not recorded") for row in rows}
    return [repr(value) if " " in value else value for value in sorted(found)]
