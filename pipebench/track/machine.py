"""The class of a machine: nights of one class may be compared by time."""

import re

from pipebench.bench.environment import environment
from pipebench.domain.value import Value, digest

FACTS = ("system", "machine", "cpu", "cpus")
"""Of a row's environment. Python and packages are not among them: they start a new segment of a history."""
SLUG_LETTERS = 40


class MachineClass(Value, frozen=True, kw_only=True):
    """What makes machines alike: operating system, architecture, CPU model, number of CPUs."""

    system: str
    machine: str
    cpu: str
    cpus: str

    @property
    def name(self) -> str:
        """Readable, and its own: the file of the class is named so."""
        words = f"{self.system} {self.machine} {self.cpu} {self.cpus}cpu".lower()
        slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:SLUG_LETTERS].strip("-")
        return f"{slug}-{digest(self)[:8]}"

    @property
    def words(self) -> str:
        """As people say it."""
        return f"{self.cpus} x {self.cpu or 'unknown CPU'}, {self.machine}, {self.system}"


def this_machine() -> MachineClass:
    """The class of the machine that this runs on."""
    found = environment()
    return MachineClass(**{name: found.get(name, "") for name in FACTS})
