"""Figure 4: throughput of enlarged BERT models on 32 devices, by layers, for three widths."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from pipebench.artefacts.findings import Case, judge_cases
from pipebench.artefacts.result_grid import Contender, ResultGrid, result_grid
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Panel, Result
from pipebench_rannc.figures.contenders import (
    BEST,
    DATA_PARALLEL,
    HYBRID,
    MEGATRON,
    MEGATRON_KEPT,
    PAPER,
    RANNCS,
    RECOMPUTED,
    RELEASED,
    TWO_BW,
    rate_curve,
    rate_text,
)

SECTION = "section IV-B, on figure 4"
CONTENDERS = (DATA_PARALLEL, MEGATRON, MEGATRON_KEPT, HYBRID, TWO_BW, *RANNCS)
SIZES = {1024: (24, 48, 96, 144, 192, 256), 1536: (24, 48, 96, 144, 192, 256), 2048: (24, 48, 96, 144, 192, 256)}
SUBSET = {1024: (24, 96), 2048: (24, 48, 96, 256)}
"""2048 x 48 is about the largest model of Megatron-LM, and too large for data parallelism."""
WORDS = 30522

ALL = Claim(
    name="all models",
    statement="GPipe-Hybrid, PipeDream-2BW and RaNNC have a plan for every model",
    quote="GPipe-Hybrid, PipeDream-2BW, and RaNNC successfully trained all of the models we tried",
    where=SECTION,
)
FIVE = Claim(
    name="five times larger",
    statement="The largest model that RaNNC can train has about five times the parameters of Megatron-LM's",
    quote="The largest model that RaNNC could train was five times larger than those Megatron-LM could train",
    where=SECTION,
)
TENSOR = Claim(
    name="tensor parallelism holds larger models than data parallelism",
    statement="The largest model of Megatron-LM is larger than that of data parallelism",
    quote="Megatron-LM could train larger models than data parallelism",
    where=SECTION,
)
FASTER = Claim(
    name="faster than GPipe-Hybrid",
    statement="RaNNC has the higher throughput for every model",
    quote="RaNNC outperformed GPipe-Hybrid in all settings",
    where=SECTION,
)
CLOSER = Claim(
    name="closer for large models",
    statement="RaNNC's lead over GPipe-Hybrid is smaller with more layers, and with wider ones",
    quote="as the hidden layer size and the number of layers increase, the differences in throughputs decrease",
    where=SECTION,
)
ASYNC = Claim(
    name="PipeDream-2BW is a little faster here and there",
    statement="PipeDream-2BW has a higher throughput than RaNNC for some models, by less than 20 %",
    quote="PipeDream-2BW slightly outperformed RaNNC in several settings",
    where=SECTION,
)
LEVEL = Claim(
    name="as fast as Megatron-LM",
    statement="Where Megatron-LM has a plan, its throughput is within 20 % of RaNNC's",
    quote="when it succeeded, the throughput was almost the same level as that of RaNNC",
    where=SECTION,
)
NEAR = 1.2
ABOUT_FIVE = (4.0, 6.5)
AS_RUN = (
    "As in section IV-A Megatron-LM recomputes by layer (recompute full: each device keeps the whole input of "
    "each layer) and does not accumulate, data parallelism accumulates and recomputes nothing, RaNNC recomputes "
    "stages; weights, gradients and Adam in fp32 are 16 bytes a parameter. The largest are of the sizes that ran"
)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One model."""

    hidden: int
    layers: int


Grid = ResultGrid[Place]


class BertThroughput:
    """hooks.reproduction.Reproduction."""

    claims = (ALL, FIVE, TENSOR, FASTER, CLOSER, ASYNC, LEVEL)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """Every width and number of layers of the paper, or five models; the paper's own files do not exist."""
        del profiles
        return tuple(
            cell(hidden, layers, who)
            for hidden, depths in (SIZES if full else SUBSET).items()
            for layers in depths
            for who in CONTENDERS
        )

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = result_grid(results, Place)
        return [
            judge_cases(ALL, _all(grid), "each of them has a plan for every model"),
            _largest(FIVE, grid, MEGATRON, PAPER, *ABOUT_FIVE),
            _largest(TENSOR, grid, DATA_PARALLEL, MEGATRON, 1.0),
            judge_cases(
                FASTER,
                _pairs(grid, HYBRID, (PAPER, RELEASED, BEST), lambda ratio: ratio > 1),
                "RaNNC's throughput / GPipe-Hybrid's is above 1; beside them the balance, busiest stage / mean",
                "Algorithm 2 takes the first number of stages that fits, GPipe-Hybrid the best of all numbers by "
                "simulation; variant=best tries them all too and is never behind",
            ),
            judge_cases(
                CLOSER, _closing(grid), "lead of RaNNC, best, with the most layers / with the fewest, is below 1"
            ),
            _some_faster(grid),
            judge_cases(
                LEVEL,
                (
                    case
                    for who in (MEGATRON, MEGATRON_KEPT)
                    for case in _pairs(grid, who, (PAPER, BEST), lambda ratio: 1 / NEAR <= ratio <= NEAR)
                ),
                f"RaNNC's throughput / Megatron-LM's is between 1 / {NEAR:g} and {NEAR:g}",
                "Megatron-LM recomputes by layer, and in other cases nothing: the paper does not say which it did "
                "where a model fits without",
            ),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each width: throughput by layers."""
        grid = result_grid(results, Place)
        panels = []
        for hidden in grid.values("hidden"):
            line = sorted(grid.places(hidden=hidden))
            curves = tuple(rate_curve(grid, line, who, lambda place: place.layers) for who in CONTENDERS)
            panels.append(Panel(title=f"hidden {hidden}", x_label="layers", y_label="samples/s", curves=curves))
        return Figure(
            title="RaNNC, figure 4: throughput of enlarged BERT models, fp32",
            panels=tuple(panels),
            notes=grid.lost,
        )


def cell(hidden: int, layers: int, who: Contender) -> Cell:
    """One model on 32 devices of the paper's cluster, 256 samples."""
    return Cell(
        at={"hidden": float(hidden), "layers": float(layers), "series": who.key},
        planner=who.planner,
        model=f"bert[layers={layers},hidden={hidden}]",
        cluster="rannc",
        devices=32,
        mini_batch=256,
        optimizer="adam",
        regime="async" if who is TWO_BW else "sync",
        recompute=RECOMPUTED.get(who.key),
        expected_s=0.3 + layers * (0.08 if who is BEST else 0.025),
    )


def parameters(place: Place) -> float:
    """Of BERT with this (hidden, layers): 12 h^2 + 13 h a layer and the word table, the rest left out."""
    hidden = float(place.hidden)
    return place.layers * (12 * hidden**2 + 13 * hidden) + WORDS * hidden


def _all(grid: Grid) -> Iterator[Case]:
    for who in (HYBRID, TWO_BW, PAPER, RELEASED, BEST):
        tried = list(grid.rows(who))
        have = [place for place, _ in tried if grid.rate(place, who) is not None]
        if tried:
            text = f"{who.label}: {len(have)} of {len(tried)} models"
            yield Case(text, len(have) / len(tried), len(have) == len(tried))


def _largest(
    claim: Claim, grid: Grid, less: Contender, more: Contender, least: float, most: float = float("inf")
) -> Finding:
    """Whether the largest model of `more` over that of `less` is above `least` and at most `most`."""

    def size(who: Contender) -> float:
        return max((parameters(p) for p in grid.places() if grid.rate(p, who) is not None), default=0.0)

    cases = []
    small, large = size(less), size(more)
    if small and large:
        text = f"{more.label} {large / 1e9:.2f} billion, {less.label} {small / 1e9:.2f} billion"
        cases.append(Case(f"{text}: {large / small:.2f} times", large / small, least < large / small <= most))
    rule = f"largest / largest is above {least:g}" + (f" and at most {most:g}" if most < float("inf") else "")
    kept = size(MEGATRON_KEPT)
    otherwise = f". With nothing recomputed Megatron-LM's is {kept / 1e9:.2f} billion" if kept else ""
    return judge_cases(claim, cases, f"{rule}. {AS_RUN}{otherwise}")


def _pairs(
    grid: Grid, base: Contender, others: tuple[Contender, ...], holds: Callable[[float], bool]
) -> Iterator[Case]:
    for place in grid.places():
        for who in others:
            ratio = grid.ratio(place, who, base)
            if ratio is not None:
                text = f"{place.hidden} x {place.layers}: {rate_text(grid, place, who)} / "
                text += f"{rate_text(grid, place, base)} = {ratio:.2f}"
                yield Case(text, ratio, holds(ratio))


def _closing(grid: Grid) -> Iterator[Case]:
    leads = grid.ratios(BEST, HYBRID)
    for hidden in dict.fromkeys(place.hidden for place in leads):
        line = sorted(place for place in leads if place.hidden == hidden)
        if len(line) > 1:
            ratio = leads[line[-1]] / leads[line[0]]
            leads_text = ", ".join(f"{leads[place]:.2f} at {place.layers} layers" for place in line)
            yield Case(f"hidden {hidden}: lead {leads_text}", ratio, ratio < 1)
    widths = sorted({place.hidden for place in leads})
    if len(widths) > 1:
        means = [
            geometric_mean([lead for place, lead in leads.items() if place.hidden == width]) for width in widths
        ]
        leads_text = ", ".join(f"{mean:.2f} at hidden {width}" for mean, width in zip(means, widths, strict=True))
        yield Case(f"mean lead {leads_text}", means[-1] / means[0], means[-1] < means[0])


def _some_faster(grid: Grid) -> Finding:
    ratios = grid.ratios(TWO_BW, PAPER)
    cases = [
        Case(f"{p.hidden} x {p.layers}: PipeDream-2BW / RaNNC as printed = {ratio:.2f}", ratio, ratio < NEAR)
        for p, ratio in ratios.items()
    ]
    finding = judge_cases(
        ASYNC,
        cases,
        f"the ratio is above 1 for some models and below {NEAR:g} for all",
        "It never waits for the pipeline to fill, whatever the model",
    )
    if ratios and max(ratios.values()) <= 1:
        return Finding(
            claim=ASYNC,
            measured=finding.measured,
            value=max(ratios.values()),
            judgement="does not hold",
            reason="PipeDream-2BW is faster for none of the models",
        )
    return finding
