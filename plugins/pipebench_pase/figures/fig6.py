"""Figure 6: speedups over data parallelism."""

from collections.abc import Iterator, Sequence

from pipebench.artefacts.curves import curve, with_points
from pipebench.artefacts.findings import Case, finding
from pipebench.artefacts.result_grid import Contender, claimed_s, simulated_s
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_pase.figures.cells import (
    DATA_PARALLEL,
    DEVICES,
    FEW,
    MODELS,
    Grid,
    cells,
    lost_lines,
    no_cells,
    read_grid,
)

BASE = Contender("data-parallel", "data parallelism", DATA_PARALLEL, 0)
EXPERT = Contender("expert", "expert", "expert", 1)
WALK = Contender("mcmc", "FlexFlow-like walk", "mcmc[memory=ignored]", 2)
OURS = Contender("pase", "PaSE", "pase[memory=ignored]", 3)
CONTENDERS = (BASE, EXPERT, WALK, OURS)
OVER_DATA_PARALLEL = Claim(
    name="never below data parallelism",
    statement="PaSE's strategy is at least as fast as data parallelism for every model and number of devices",
    quote=(
        "the strategies found using our approach outperform the baseline data parallelism strategy in all the "
        "cases"
    ),
    where="abstract; figure 6",
)
OVER_OTHERS = Claim(
    name="better than experts and FlexFlow",
    statement="PaSE's strategy is at least as fast as the expert's and as the random walk's",
    quote=(
        "our strategies consistently perform better than expert-designed strategies, and the strategies proposed "
        "by FlexFlow"
    ),
    where="section IV-B; figure 6a",
)


class SpeedupsOverDataParallel:
    """hooks.reproduction.Reproduction."""

    claims = (OVER_DATA_PARALLEL, OVER_OTHERS)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """4 and 8 devices; in full up to 64. The user's profiles have no place in the figure."""
        del profiles
        return tuple(cells(CONTENDERS, DEVICES if full else FEW))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Both claims: in the suite's simulation, which decides, and in PaSE's own cost beside it."""
        grid = read_grid(results)
        return [_finding(OVER_DATA_PARALLEL, grid, (BASE,)), _finding(OVER_OTHERS, grid, (EXPERT, WALK))]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each model: simulated speedup over data parallelism by devices; PaSE's own view dashed."""
        grid = read_grid(results)
        panels = tuple(
            Panel(
                title=model,
                x_label="devices",
                y_label="speedup over data parallelism",
                curves=with_points(each for who in CONTENDERS[1:] for each in _curves(grid, model, who)),
            )
            for model in MODELS
        )
        title = "PaSE, figure 6: speedups over data parallelism"
        return Figure(title=title, panels=panels, notes=lost_lines(results))


def _curves(grid: Grid, model: str, who: Contender) -> Iterator[Curve]:
    places = sorted(grid.places(model=model))
    yield curve(who, places, lambda place: place.devices, lambda place: grid.ratio(place, BASE, who, simulated_s))
    yield curve(
        who,
        places,
        lambda place: place.devices,
        lambda place: grid.ratio(place, BASE, who, claimed_s),
        label=f"{who.label}, its own cost",
        kind="estimate",
    )


def _finding(claim: Claim, grid: Grid, others: Sequence[Contender]) -> Finding:
    cases, in_its_terms = [], []
    for place, _ in grid.rows(OURS):
        for other in others:
            simulated = grid.ratio(place, other, OURS, simulated_s)
            claimed = grid.ratio(place, other, OURS, claimed_s)
            if simulated is not None and claimed is not None:
                line = f"{place}: {simulated:.2f} times {other.label}, {claimed:.2f} in its own cost"
                cases.append(Case(line, simulated, simulated >= 1 - 1e-9))
                in_its_terms.append(claimed)
    if not cases:
        return no_cells(claim)
    faster = sum(case.holds for case in cases)
    reason = f"simulated, {faster} of {len(cases)} at least as fast"
    if faster < len(cases):
        reason += (
            f"; in its own cost the least is {min(in_its_terms):.2f}, so the rest is what that cost leaves out or "
            "counts otherwise: latency, links shared inside a node, arithmetic below the peak"
        )
    return finding(claim, cases, reason)
