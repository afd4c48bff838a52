"""Table I: how long the searches take, by ordering and against the random walk."""

from collections.abc import Mapping, Sequence

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench.domain.row import Row
from pipebench_pase.figures.cells import DEVICES, FEW, MODELS, Place, Series, cells, lost, rows_of

BREADTH = Series("breadth-first", "breadth-first", "pase[ordering=breadth-first]", 0)
WALK = Series("mcmc", "FlexFlow-like walk", "mcmc", 1)
OURS = Series("pase", "GenerateSeq", "pase", 2)
SERIES = (BREADTH, WALK, OURS)
PATHS, DENSE = ("alexnet", "rnnlm"), ("inception_v3", "transformer")
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


class Table1:
    """hooks.reproduction.Reproduction."""

    claims = (PATH_GRAPHS, BLOW_UP, FASTER, MINUTES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """4 and 8 devices; in full up to 64. The user's profiles have no place in the table."""
        del profiles
        return tuple(cells(SERIES, DEVICES if full else FEW, repeat=1))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """The four claims, by the searches' CPU seconds."""
        rows = rows_of(results)
        return [_path_graphs(rows), _blow_up(rows), _faster(rows), _minutes(rows)]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each model: seconds by devices; what was refused stands as infeasible."""
        rows = rows_of(results)
        panels = tuple(
            Panel(
                title=model,
                x_label="devices",
                y_label="search time (CPU s)",
                curves=tuple(curve for each in SERIES if (curve := _curve(rows, model, each)) is not None),
            )
            for model in MODELS
        )
        return Figure(title="PaSE, table I: search times", panels=panels, notes=lost(rows, (BREADTH.key,)))


def _curve(rows: Mapping[Place, Row], model: str, series: Series) -> Curve | None:
    own = {place.devices: row for place, row in rows.items() if (place.model, place.series) == (model, series.key)}
    if not own:
        return None
    points = tuple((float(p), row.search_cpu_s) for p, row in sorted(own.items()) if row.search_cpu_s is not None)
    refused = tuple(float(p) for p, row in sorted(own.items()) if row.status != "ok")
    return Curve(label=series.label, colour=series.colour, points=points, infeasible=refused)


def _seconds(row: Row | None) -> float | None:
    return row.search_cpu_s if row is not None and row.status == "ok" else None


def _both(rows: Mapping[Place, Row], models: Sequence[str], other: Series) -> list[tuple[Place, Row, Row]]:
    """Where both the search and the other one have a plan and a time."""
    found = []
    for place, row in rows.items():
        against = rows.get(place._replace(series=other.key))
        if place.series != OURS.key or place.model not in models or against is None:
            continue
        if _seconds(row) is not None and _seconds(against) is not None:
            found.append((place, row, against))
    return found


def _path_graphs(rows: Mapping[Place, Row]) -> Finding:
    pairs = _both(rows, PATHS, BREADTH)
    if not pairs:
        return nothing(PATH_GRAPHS)
    lines, ratios, equal = [], [], True
    for place, ours, breadth in pairs:
        mine, theirs = _seconds(ours) or 0.0, _seconds(breadth) or 0.0
        ratios.append(max(mine, theirs) / max(min(mine, theirs), 1e-9))
        same = breadth.claimed_native == ours.claimed_native
        equal = equal and same
        cost = "the same cost" if same else "another cost"
        lines.append(f"{place.model} on {place.devices}: {theirs:.3g} s and {mine:.3g} s, {cost}")
    holds = equal and max(ratios) <= SIMILAR
    return Finding(
        claim=PATH_GRAPHS,
        measured=tuple(lines),
        value=max(ratios),
        judgement="holds" if holds else "does not hold",
        reason=f"equal costs, and the larger time over the smaller at most {SIMILAR:g} (here in milliseconds)",
    )


def _blow_up(rows: Mapping[Place, Row]) -> Finding:
    own = {p: row for p, row in rows.items() if p.series == BREADTH.key and p.model in DENSE}
    if not own:
        return nothing(BLOW_UP)
    refused = [row.status == "unsupported" for row in own.values()]
    return Finding(
        claim=BLOW_UP,
        measured=tuple(f"{p.model} on {p.devices}: {row.reason or row.status}" for p, row in own.items()),
        value=float(sum(refused)),
        judgement="holds" if all(refused) else "depends" if any(refused) else "does not hold",
        reason="the tables are counted before the search; those above table_gb are refused",
    )


def _faster(rows: Mapping[Place, Row]) -> Finding:
    pairs = _both(rows, tuple(MODELS), WALK)
    if not pairs:
        return nothing(FASTER)
    lines, speedups, holds = [], [], []
    for place, ours, walk in pairs:
        mine, theirs = _seconds(ours) or 0.0, _seconds(walk) or 0.0
        speedups.append(theirs / max(mine, 1e-9))
        worse = (walk.claimed_native or 0.0) / (ours.claimed_native or 1.0)
        holds.append(speedups[-1] > 1 and worse >= 1 - 1e-9)
        lines.append(
            f"{place.model} on {place.devices}: {mine:.3g} s against {theirs:.3g} s; cost {worse:.3f} times"
        )
    return Finding(
        claim=FASTER,
        measured=tuple(lines),
        value=min(speedups),
        judgement="holds" if all(holds) else "depends" if any(holds) else "does not hold",
        reason="less CPU time in every cell; the walk here costs strategies by tables, FlexFlow simulates each",
    )


def _minutes(rows: Mapping[Place, Row]) -> Finding:
    lines, shares = [], []
    for place, row in rows.items():
        if place.series == OURS.key and _seconds(row) is not None:
            mine, paper = _seconds(row) or 0.0, PAPER_S[place.model][place.devices]
            shares.append(mine / paper)
            lines.append(f"{place.model} on {place.devices}: {mine:.3g} s, the paper {paper:g} s")
    if not lines:
        return nothing(MINUTES)
    return Finding(
        claim=MINUTES,
        measured=tuple(lines),
        value=max(shares),
        judgement="holds" if max(shares) <= 1 else "does not hold",
        reason="CPU seconds here over the paper's, the largest, at most 1; another machine",
    )


def nothing(claim: Claim) -> Finding:
    """No cells to judge by."""
    return Finding(claim=claim, judgement="claim only", reason="no cells with what is compared")
