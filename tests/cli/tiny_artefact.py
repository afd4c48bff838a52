"""An artefact of three cells, one of which names an option that no planner has."""

from collections.abc import Sequence

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result, Table
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact

CLAIM = Claim(name="two are plenty", statement="Two devices do", quote="two | are plenty", where="section 1")


class Tiny:
    """hooks.reproduction.Reproduction."""

    claims = (CLAIM,)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        return tuple(
            Cell(
                at={"network": profile, "devices": float(devices), "series": planner},
                planner=planner,
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
            for devices, planner in ((2, "pipedream"), (2, "pipedream[depth=3]"), (4 if full else 3, "pipedream"))
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        done = sum(result.row.status == "ok" for result in results)
        return [Finding(claim=CLAIM, measured=(f"{done} plans",), judgement="holds", reason="they do")]

    def series(self, results: Sequence[Result]) -> Figure:
        points = [(r.cell.at["devices"], r.row.simulated_s) for r in results if r.row.simulated_s is not None]
        curve = Curve(label="all", points=tuple((float(x), y) for x, y in points))
        table = Table(
            title="a table", columns=("P", "of all"), rows=tuple((f"{x:g}", "many" * 30) for x, _ in points)
        )
        panel = Panel(title="t", x_label="P", y_label="s", curves=(curve,))
        return Figure(title="tiny", panels=(panel,), tables=(table,))


@hookimpl
def pipebench_artefacts() -> tuple[Artefact, ...]:
    return (Artefact(name="tiny/one", summary="three cells", load="tests.cli.tiny_artefact:Tiny"),)
