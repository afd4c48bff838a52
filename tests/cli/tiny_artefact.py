"""An artefact of three cells, one of which names an option that no planner has. Two whose last cell is late."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.artefacts.curves import curve
from pipebench.artefacts.findings import Case, finding
from pipebench.artefacts.result_grid import Contender, result_grid, simulated_s
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Panel, Result, Table
from pipebench.domain.row import Status
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact

CLAIM = Claim(name="two are plenty", statement="Two devices do", quote="two | are plenty", where="section 1")


PLAIN = Contender("pipedream", "all", "pipedream")
DEEP = Contender("pipedream[depth=3]", "none", "pipedream[depth=3]")


@dataclass(frozen=True, slots=True)
class Place:
    network: str
    devices: int


class Tiny:
    """hooks.reproduction.Reproduction."""

    claims = (CLAIM,)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        return tuple(
            Cell(
                at={"network": profile, "devices": float(devices), "series": who.key},
                planner=who.planner,
                profile=profile,
                input_bytes=6e6 if profile != "resnet50" else None,
                cluster="madpipe",
                devices=devices,
                memory="16GB",
                micro_batch=8,
                mini_batch=8,
                expected_s=50.0,
                timeline="the larger one" if devices > 2 else "",
            )
            for profile in ("resnet50", *profiles)
            for devices, who in ((2, PLAIN), (2, DEEP), (4 if full else 3, PLAIN))
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        grid = result_grid(results, Place)
        plans = sum(grid.plan_row(place, who) is not None for place in grid.places() for who in (PLAIN, DEEP))
        return [finding(CLAIM, [Case(f"{plans} plans", float(plans), holds=True)], "they do")]

    def series(self, results: Sequence[Result]) -> Figure:
        grid = result_grid(results, Place)
        line = curve(
            PLAIN, grid.places(), lambda place: place.devices, lambda place: grid.value(place, PLAIN, simulated_s)
        )
        table = Table(
            title="a table", columns=("P", "of all"), rows=tuple((f"{x:g}", "many" * 30) for x, _ in line.points)
        )
        panel = Panel(title="t", x_label="P", y_label="s", curves=(line,))
        return Figure(title="tiny", panels=(panel,), tables=(table,))


class Late(Tiny):
    """The first cell of `Tiny`, and one whose search does not end: a claim says so."""

    expected: tuple[Status, ...] = ("timeout",)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        first = super().suite(full, profiles)[0]
        late = replace(first, planner="cmd:sleep 60", timeout_s=0.5, expected_s=1.0)
        return first, replace(late, at=first.at | {"devices": 4.0}, expected_failures=self.expected)


class TooLate(Late):
    """The same, and nobody expects it."""

    expected = ()


@hookimpl
def pipebench_artefacts() -> tuple[Artefact, ...]:
    return tuple(
        Artefact(name=f"tiny/{name}", summary=summary, load=f"tests.cli.tiny_artefact:{attribute}")
        for name, summary, attribute in (
            ("one", "three cells", "Tiny"),
            ("late", "one search does not end", "Late"),
            ("too-late", "one search does not end", "TooLate"),
        )
    )
