"""Table I: how long the searches take, by ordering and against the random walk."""

from collections.abc import Iterator, Sequence

from pipebench.artefacts.curves import curve
from pipebench.artefacts.findings import Case, finding, judgement
from pipebench.artefacts.result_grid import Contender, search_cpu_s
from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench.domain.row import Row, Status
from pipebench_pase.figures.cells import DEVICES, FEW, MODELS, Grid, Place, cells, lost_lines, no_cells, read_grid

BREADTH = Contender("breadth-first", "breadth-first", "pase[memory=ignored,ordering=breadth-first]", 0)
WALK = Contender("mcmc", "FlexFlow-like walk", "mcmc[memory=ignored]", 1)
OURS = Contender("pase", "GenerateSeq", "pase[memory=ignored]", 2)
CONTENDERS = (BREADTH, WALK, OURS)
PATHS, DENSE = ("alexnet", "rnnlm"), ("inception_v3", "transformer")
REFUSED: dict[tuple[str, str], tuple[Status, ...]] = {(model, BREADTH.key): ("unsupported",) for model in DENSE}
"""The paper's breadth-first ordering runs out of memory on these."""
PAPER_S: dict[str, dict[int, float]] = {
    "alexnet": {4: 0.226, 8: 0.253, 16: 0.295, 32: 0.361, 64: 0.475},
    "inception_v3": {4: 14.398, 8: 20.018, 16: 39.791, 32: 86.039, 64: 196.253},
    "rnnlm": {4: 0.057, 8: 0.086, 16: 0.069, 32: 0.131, 64: 0.215},
    "transformer": {4: 9.752, 8: 28.798, 16: 130.882, 32: 553.022, 64: 1883.187},
}
"""Seconds of the paper's own search, on a Xeon E5 (SandyBridge)."""
SIMILAR = 2.0
WHERE = "section IV-A, table I"
PATH_GRAPHS = Claim(
    name="path graphs need no order",
    statement="On AlexNet and RNNLM both orderings find the same cost, in times within a factor of two",
    quote="both BF and GenerateSeq ordering are able to efficiently compute the best strategy in similar time",
    where=WHERE,
)
BLOW_UP = Claim(
    name="breadth-first blows up",
    statement="On Inception v3 and the Transformer breadth-first needs more memory than there is",
    quote="As with InceptionV3, BF ordering fails to find the best strategy for Transformer",
    where=WHERE,
)
FASTER = Claim(
    name="faster than FlexFlow",
    statement="The search takes less time than the random walk, and finds nothing worse",
    quote="our method is able to find an efficient strategy for various DNNs much faster than FlexFlow",
    where="section VI",
)
MINUTES = Claim(
    name="within a few minutes",
    statement="Every warm search ends in the time that the paper's took",
    quote="within a reasonable time in practice",
    where="abstract; times of table I",
)


class SearchTimesByOrdering:
    """hooks.reproduction.Reproduction."""

    claims = (PATH_GRAPHS, BLOW_UP, FASTER, MINUTES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """4 and 8 devices; in full up to 64. The user's profiles have no place in the table."""
        del profiles
        return tuple(cells(CONTENDERS, DEVICES if full else FEW, repeat=1, failures=REFUSED))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """The four claims, by the searches' CPU seconds."""
        grid = read_grid(results)
        return [_path_graphs(grid), _blow_up(grid), _faster(grid), _minutes(grid)]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each model: seconds by devices; what was refused stands as infeasible."""
        grid = read_grid(results)
        panels = tuple(
            Panel(
                title=model,
                x_label="devices",
                y_label="search time (CPU s)",
                curves=tuple(each for who in CONTENDERS for each in _curves(grid, model, who)),
            )
            for model in MODELS
        )
        return Figure(title="PaSE, table I: search times", panels=panels, notes=lost_lines(results, (BREADTH,)))


def _curves(grid: Grid, model: str, who: Contender) -> Iterator[Curve]:
    """One curve where the contender was run."""
    rows = {place: row for place, row in grid.rows(who) if place.model == model}
    if rows:
        yield curve(
            who,
            sorted(rows),
            lambda place: place.devices,
            lambda place: rows[place].search_cpu_s,
            lambda place: rows[place].status != "ok",
        )


def _both(grid: Grid, models: Sequence[str], other: Contender) -> Iterator[tuple[Place, Row, float, Row, float]]:
    """Where both PaSE and the other one have a plan and a time: each one's row and CPU seconds."""
    places = [place for place, _ in grid.rows(OURS) if place.model in models]
    for place, ours, against in grid.both(OURS, other, places):
        if ours.search_cpu_s is not None and against.search_cpu_s is not None:
            yield place, ours, ours.search_cpu_s, against, against.search_cpu_s


def _path_graphs(grid: Grid) -> Finding:
    lines, ratios, equal = [], [], True
    for place, ours, own_s, breadth, other_s in _both(grid, PATHS, BREADTH):
        ratios.append(max(own_s, other_s) / max(min(own_s, other_s), 1e-9))
        same = breadth.claimed_native == ours.claimed_native
        equal = equal and same
        cost = "the same cost" if same else "another cost"
        lines.append(f"{place}: {other_s:.3g} s and {own_s:.3g} s, {cost}")
    if not lines:
        return no_cells(PATH_GRAPHS)
    return Finding(
        claim=PATH_GRAPHS,
        measured=tuple(lines),
        value=max(ratios),
        judgement=judgement([equal and max(ratios) <= SIMILAR]),
        reason=f"equal costs, and the larger time over the smaller at most {SIMILAR:g} (here in milliseconds)",
    )


def _blow_up(grid: Grid) -> Finding:
    cases = []
    for place, row in grid.rows(BREADTH):
        if place.model in DENSE:
            refused = row.status == "unsupported"
            cases.append(Case(f"{place}: {row.reason or row.status}", float(refused), refused))
    if not cases:
        return no_cells(BLOW_UP)
    reason = "the tables are counted before the search; those above table_gb are refused"
    return finding(BLOW_UP, cases, reason, value=sum(case.value for case in cases))


def _faster(grid: Grid) -> Finding:
    cases = []
    for place, ours, own_s, walk, other_s in _both(grid, tuple(MODELS), WALK):
        speedup = other_s / max(own_s, 1e-9)
        worse = (walk.claimed_native or 0.0) / (ours.claimed_native or 1.0)
        line = f"{place}: {own_s:.3g} s against {other_s:.3g} s; cost {worse:.3f} times"
        cases.append(Case(line, speedup, speedup > 1 and worse >= 1 - 1e-9))
    if not cases:
        return no_cells(FASTER)
    reason = "less CPU time in every cell; the walk here costs strategies by tables, FlexFlow simulates each"
    return finding(FASTER, cases, reason, value=min(case.value for case in cases))


def _minutes(grid: Grid) -> Finding:
    lines, shares = [], []
    for place, _ in grid.rows(OURS):
        own_s, paper_s = grid.value(place, OURS, search_cpu_s), PAPER_S[place.model][place.devices]
        if own_s is not None:
            shares.append(own_s / paper_s)
            lines.append(f"{place}: {own_s:.3g} s, the paper {paper_s:g} s")
    if not lines:
        return no_cells(MINUTES)
    return Finding(
        claim=MINUTES,
        measured=tuple(lines),
        value=max(shares),
        judgement=judgement([max(shares) <= 1]),
        reason="CPU seconds here over the paper's, the largest, at most 1; another machine",
    )
