"""Figure 7, right: throughput by the micro-batch size, which is given to every planner."""

from collections.abc import Sequence
from itertools import pairwise

from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench_graphpipe.artefacts.cells import MMT, MMT_2, cells, refuse
from pipebench_graphpipe.artefacts.charts import COLUMNS, about, throughput_panel, throughput_table
from pipebench_graphpipe.artefacts.contenders import BEST, BY_COUNT, BY_TARGET, DATA, GRAPH, PAPER, Contender
from pipebench_graphpipe.artefacts.fig6 import pairs
from pipebench_graphpipe.artefacts.judging import Case, judged, plotted_only
from pipebench_graphpipe.artefacts.measured import Measured, listed, measured

MINI_BATCH, DEVICES = 128, 8
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
ALWAYS = Claim(
    name="always ahead",
    statement="At every micro-batch size GraphPipe's throughput is above the sequential planner's",
    where="section 7.3",
)
BY_DEPTH = Claim(
    name="the gap is the depth",
    statement="At one micro-batch size the gap is that of the depths: GraphPipe's pipeline is the shallower one",
    where="section 7.3",
)
GROWS = Claim(
    name="larger micro-batches, larger gap",
    statement="The ratio of throughputs never falls when the micro-batch grows: there are fewer to fill with",
    where="sections 2 and 7.3 (warm-up and cool-down weigh more when there are fewer micro-batches)",
)
CURVES = Claim(name="the curves", statement="Throughputs as in figure 7, right", where="figure 7, right")
WHOLE = (
    "At the largest sizes both planners give up stages for replicas, each at its own size, down to one stage; the "
    "ratio moves with these steps"
)
CONTENDERS = (BEST, PAPER, BY_COUNT, BY_TARGET, GRAPH, DATA)


class Fig7right:
    """hooks.reproduction.Reproduction."""

    claims = (ALWAYS, BY_DEPTH, GROWS, CURVES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """8 devices, mini-batch 128; two and four branches: the section has both numbers."""
        refuse(profiles, "the Multi-Modal Transformer")
        sizes = SIZES if full else SIZES[:-1]
        return tuple(cells((MMT_2, MMT), (DEVICES,), CONTENDERS, mini_batch=MINI_BATCH, micro_batches=sizes))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        found = measured(results)
        return [
            judged(ALWAYS, _ahead(found), "a ratio above 1 at every size", WHOLE),
            judged(BY_DEPTH, _shallower(found), "a smaller depth at every size", WHOLE),
            judged(GROWS, _grows(found), "no step to a larger size lowers the ratio", WHOLE),
            plotted_only(CURVES),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each number of branches."""
        found = measured(results)
        panels = [
            throughput_panel(found, network, found.places(network=network), "micro_batch", CONTENDERS)
            for network in found.values("network")
        ]
        ratios = (("GP/PD", BEST, BY_COUNT), ("paper/PD", PAPER, BY_COUNT), ("GP/PD+G", BEST, GRAPH))
        table = throughput_table(found, COLUMNS, found.places(), CONTENDERS, ratios)
        title = "GraphPipe, figure 7 right: simulated throughput by micro-batch size, 8 devices, mini-batch 128"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=found.lost)


def _named(found: Measured) -> list[tuple[str, Contender, Contender, str]]:
    return [
        (f"{name}, {network}", fast, slow, network)
        for name, fast, slow in pairs()
        for network in found.values("network")
    ]


def _ahead(found: Measured) -> list[Case]:
    cases = []
    for name, fast, slow, network in _named(found):
        places = found.places(network=network)
        ratios = {place: r for place in places if (r := found.ratio(place, fast, slow)) is not None}
        if ratios:
            behind = [about(place) for place, ratio in ratios.items() if ratio <= 1]
            text = listed(list(ratios.values())) + (f" (not {'; '.join(behind)})" if behind else "")
            cases.append(Case(name, text, min(ratios.values()), not behind))
    return cases


def _shallower(found: Measured) -> list[Case]:
    cases = []
    for name, fast, slow, network in _named(found):
        both = found.both(fast, slow, found.places(network=network))
        depths = [(one.depth or 0, other.depth or 0) for _, one, other in both]
        if depths:
            text = ", ".join(f"{depth} for {deep}" for depth, deep in depths)
            least = min(deep - depth for depth, deep in depths)
            cases.append(Case(name, text, least, least > 0))
    return cases


def _grows(found: Measured) -> list[Case]:
    cases = []
    for name, fast, slow, network in _named(found):
        places = found.places(network=network)
        known = [ratio for place in places if (ratio := found.ratio(place, fast, slow)) is not None]
        if len(known) > 1:
            least = min(after - before for before, after in pairwise(known))
            cases.append(Case(name, listed(known), least, least >= 0))
    return cases
