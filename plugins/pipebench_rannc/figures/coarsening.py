"""Section IV-C: the stage search on blocks, and on atomic subcomponents themselves."""

from collections.abc import Sequence

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_rannc.figures.contenders import Contender
from pipebench_rannc.figures.measured import Case, Measured, judged, measured

SECTION = "section IV-C"
HIDDEN = 1024
STAGES = 4
"""Pinned, so that both searches do the whole of Algorithm 1: one stage, which fits the smaller models, is none."""
SUBSET = (4, 8, 24, 48, 256)
FULL = (4, 8, 16, 24, 48, 96, 144, 192, 256)
BLOCKS = Contender("blocks", "32 blocks", "rannc[variant=paper,prune=none]", 0)
ATOMS = Contender("atoms", "no blocks", "rannc[variant=paper,prune=none,blocks=0]", 1)
LIMIT_S = 60.0

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


class Coarsening:
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
                expected_s=min(LIMIT_S, 2 + layers * (0.05 if who is BLOCKS else 1.0)),
            )
            for layers in (FULL if full else SUBSET)
            for who in (BLOCKS, ATOMS)
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        found = measured(results, "layers")
        return [
            judged(ATOMIC, _atoms(found), "the number of atoms with 256 layers is within 10 % of 15,000"),
            judged(REDUCED, _reduced(found), f"search time without blocks / with them is at least {TEN:g}"),
            judged(
                NEVER, _ends(found), f"no plan in {LIMIT_S:g} s, or tables that no machine holds, above 48 layers"
            ),
            _slower(found),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """Search time by layers."""
        found = measured(results, "layers")
        curves = []
        for who in (BLOCKS, ATOMS):
            points = [(float(p[0]), t) for p in sorted(found.rows) if (t := _seconds(found, p, who)) is not None]
            missing = tuple(
                float(p[0])
                for p in sorted(found.rows)
                if who.key in found.rows[p] and _seconds(found, p, who) is None
            )
            curves.append(Curve(label=who.label, colour=who.colour, points=tuple(points), infeasible=missing))
        panel = Panel(title="search time", x_label="layers", y_label="seconds", curves=tuple(curves))
        title = "RaNNC, section IV-C: search time with and without blocks, BERT of width 1024"
        return Figure(title=title, panels=(panel,), notes=found.lost)


def _seconds(found: Measured, place: tuple[str | float, ...], who: Contender) -> float | None:
    row = found.rows[place].get(who.key)
    return row.search_wall_s if row is not None and row.status == "ok" else None


def _atoms(found: Measured) -> list[Case]:
    cases = []
    for place, rows in found.rows.items():
        count = rows[BLOCKS.key].counters.get("atoms") if place[0] == 256 and BLOCKS.key in rows else None
        if count is not None:
            cases.append(Case(f"{count} atomic subcomponents", float(count), abs(count - 15000) <= 1500))
    return cases


def _reduced(found: Measured) -> list[Case]:
    cases = []
    for place in sorted(found.rows):
        short, long = _seconds(found, place, BLOCKS), _seconds(found, place, ATOMS)
        if short and long and place[0] == 24:
            words = f"{place[0]:g} layers: {long:.3g} s without blocks, {short:.3g} s with them"
            cases.append(Case(f"{words}: {long / short:.1f} times", long / short, long / short >= TEN))
    return cases


def _ends(found: Measured) -> list[Case]:
    cases = []
    for place in sorted(found.rows):
        row = found.rows[place].get(ATOMS.key)
        if row is not None and float(place[0]) > 48:
            ended = row.status == "ok"
            text = f"{place[0]:g} layers: {row.status}" + ("" if ended else f", {row.reason}")
            cases.append(Case(text, float(ended), not ended))
    return cases


def _slower(found: Measured) -> Finding:
    lines = []
    ratios = []
    for place in sorted(found.rows):
        fast, slow = found.throughput(place, BLOCKS), found.throughput(place, ATOMS)
        if fast and slow:
            ratios.append(slow / fast)
            lines.append(f"{place[0]:g} layers: {slow:.4g}/s without blocks / {fast:.4g}/s = {slow / fast:.2f}")
    return Finding(
        claim=SLOWER,
        measured=tuple(lines),
        value=min(ratios, default=None),
        judgement="claim only",
        reason="the paper blames its estimate, which sums over atoms and so overestimates; the suite's times are "
        "such sums with and without blocks, so that this cause is not there",
    )
