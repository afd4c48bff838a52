"""Section IV-C: the stage search on blocks, and on atomic subcomponents themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.artefacts.curves import curve
from pipebench.artefacts.findings import Case, judge_cases
from pipebench.artefacts.result_grid import Contender, ResultGrid, result_grid
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench.domain.row import Row, Status

SECTION = "section IV-C"
HIDDEN = 1024
STAGES = 4
"""Pinned, so that both searches do the whole of Algorithm 1: one stage, which fits the smaller models, is none."""
SUBSET = (4, 8, 24, 48, 256)
FULL = (4, 8, 16, 24, 48, 96, 144, 192, 256)
BLOCKS = Contender("blocks", "32 blocks", "rannc[variant=paper,prune=none]", 0)
ATOMS = Contender("atoms", "no blocks", "rannc[variant=paper,prune=none,blocks=0]", 1)
LIMIT_S = 60.0
MOST_LAYERS = 48
"""The largest model that the paper searched without blocks: from here on the memory of the machine decides."""

ENDLESS: tuple[Status, ...] = ("timeout", "memory", "unsupported")

ATOMIC = Claim(
    name="15,000 atoms",
    statement="BERT with 256 layers has about 15,000 atomic subcomponents",
    quote="approximately 15,000 atomic subcomponents are identified in an enlarged BERT model that has 256 layers",
    where="section III-B",
)
NEVER = Claim(
    name="without blocks the search does not end",
    statement="Without blocks, models of more than 48 layers get no plan: the search takes too long",
    quote="Given more layers, the search algorithms in the device allocation step did not finish in 24 hours",
    where=SECTION,
)
SLOWER = Claim(
    name="without blocks plans are slower",
    statement="Plans made without blocks run 33 % slower",
    quote="resulting throughputs were 33 percent slower than without using the coarse-grained blocks",
    where=SECTION,
)
REDUCED = Claim(
    name="blocks reduce the search",
    statement="The whole search takes at least ten times less with 32 blocks, their making included, at 24 layers",
    quote="The search space for model partitioning can be drastically reduced by considering only combinations of "
    "coarse-grained blocks",
    where="section I",
)
TEN = 10.0


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One model."""

    layers: int


Grid = ResultGrid[Place]


class SearchOnBlocks:
    """hooks.reproduction.Reproduction."""

    claims = (ATOMIC, REDUCED, NEVER, SLOWER)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """BERT of width 1024 in four stages a copy, searched with and without blocks."""
        del profiles
        return tuple(
            Cell(
                at={"layers": float(layers), "series": who.key},
                planner=who.planner,
                model=f"bert[layers={layers},hidden={HIDDEN}]",
                cluster="rannc",
                devices=32,
                mini_batch=256,
                pp=STAGES,
                optimizer="adam",
                repeat=1,
                timeout_s=LIMIT_S * (10 if full else 1),
                expected_failures=ENDLESS if who is ATOMS and layers >= MOST_LAYERS else (),
                expected_s=1 + (0.05 * layers if who is BLOCKS else min(0.8 * layers, 40.0)),
            )
            for layers in (FULL if full else SUBSET)
            for who in (BLOCKS, ATOMS)
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = result_grid(results, Place)
        return [
            judge_cases(ATOMIC, _atoms(grid), "the number of atoms with 256 layers is within 10 % of 15,000"),
            judge_cases(
                REDUCED, _speedup_cases(grid), f"search time without blocks / with them is at least {TEN:g}"
            ),
            judge_cases(
                NEVER,
                _ends(grid),
                f"no plan in the time limit, or tables that no machine holds, above {MOST_LAYERS} layers",
            ),
            _slower(grid),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """Search time by layers."""
        grid = result_grid(results, Place)
        curves = tuple(_curve(grid, who) for who in (BLOCKS, ATOMS))
        panel = Panel(title="search time", x_label="layers", y_label="seconds", curves=curves)
        title = "RaNNC, section IV-C: search time with and without blocks, BERT of width 1024"
        return Figure(title=title, panels=(panel,), notes=grid.lost)


def _search_s(row: Row) -> float | None:
    return row.search_wall_s


def _curve(grid: Grid, who: Contender) -> Curve:
    return curve(
        who,
        sorted(grid.places()),
        lambda place: place.layers,
        lambda place: grid.value(place, who, _search_s),
        lambda place: grid.lacks(place, who, _search_s),
    )


def _atoms(grid: Grid) -> Iterator[Case]:
    for place, row in grid.rows(BLOCKS):
        count = row.counters.get("atoms")
        if place.layers == 256 and count is not None:
            yield Case(f"{count} atomic subcomponents", float(count), abs(count - 15000) <= 1500)


def _speedup_cases(grid: Grid) -> Iterator[Case]:
    for place in grid.places(layers=24):
        short, long = grid.value(place, BLOCKS, _search_s), grid.value(place, ATOMS, _search_s)
        if short and long:
            words = f"{place.layers} layers: {long:.3g} s without blocks, {short:.3g} s with them"
            yield Case(f"{words}: {long / short:.1f} times", long / short, long / short >= TEN)


def _ends(grid: Grid) -> Iterator[Case]:
    for place in sorted(grid.places()):
        row = grid.row(place, ATOMS)
        if row is not None and place.layers > MOST_LAYERS:
            ended = row.status == "ok"
            text = f"{place.layers} layers: {row.status}" + ("" if ended else f", {row.reason}")
            yield Case(text, float(ended), not ended)


def _slower(grid: Grid) -> Finding:
    ratios = grid.ratios(ATOMS, BLOCKS, places=sorted(grid.places()))
    lines = [
        f"{place.layers} layers: {grid.rate(place, ATOMS):.4g}/s without blocks / "
        f"{grid.rate(place, BLOCKS):.4g}/s = {ratio:.2f}"
        for place, ratio in ratios.items()
    ]
    return Finding(
        claim=SLOWER,
        measured=tuple(lines),
        value=min(ratios.values(), default=None),
        judgement="claim only",
        reason="the paper blames its estimate, which sums over atoms and so overestimates; the suite's times are "
        "such sums with and without blocks, so that this cause is not there",
    )
