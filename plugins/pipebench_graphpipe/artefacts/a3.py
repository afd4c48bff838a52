"""Appendix A.3: on a sequential Transformer all planners shall do alike."""

from collections.abc import Iterator, Sequence

from pipebench.artefacts.findings import Case, named_case
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result, Table
from pipebench_graphpipe.artefacts.cells import (
    BEST,
    BY_COUNT,
    BY_TARGET,
    CHAIN,
    DATA,
    DEVICES,
    EVERYONE,
    GRAPHPIPES,
    PAPER,
    PIPER,
    cells,
    refuse,
)
from pipebench_graphpipe.artefacts.throughputs import (
    COLUMNS,
    Grid,
    judge_cases,
    read_grid,
    text_of,
    throughput_panel,
    throughput_table,
)

PRINTED = {
    "piper": (113.94, 187.92, 286.83, 609.76),
    "k": (113.2, 190.1, 277.0, 592.4),
    "paper": (113.6, 189.5, 287.52, 608.82),
}
"""Appendix A.3, samples a second on 4, 8, 16 and 32 devices."""
ALIKE, SAME_RATE = 0.03, 0.1
MATCHES = Claim(
    name="nothing is lost",
    statement="On the sequential Transformer GraphPipe's throughput is that of the baselines, within 3 % (the "
    "paper's spread)",
    where="appendix A.3, section 7",
)
RATES = Claim(
    name="the printed rates",
    statement="GraphPipe's throughputs on 4, 8, 16 and 32 devices are those printed, within 10 %",
    where="appendix A.3",
)
ELSEWHERE = (
    "Variant best may be faster: data parallelism with gradient accumulation is among its candidates, and beats "
    "every pipeline here. Piper lets replicas take micro-batches in turn and balances by its own stage time"
)
CANNOT = (
    "The printed rates need more than the fp32 peak of a V100 on the configuration of appendix A.2 (113.6 samples "
    "a second on 4 devices is 18 TFLOP/s each): tensor cores, or a smaller model, are not in the text"
)


class SequentialTransformer:
    """hooks.reproduction.Reproduction."""

    claims = (MATCHES, RATES)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """4 to 32 devices; in full with the counts between that divide 96 operators."""
        refuse(profiles, "the sequential Transformer")
        return tuple(cells((CHAIN,), (4, 6, 8, 12, 16, 24, 32) if full else DEVICES, EVERYONE))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Both claims."""
        grid = read_grid(results)
        return [
            judge_cases(MATCHES, _alike(grid), f"every ratio within {ALIKE:.0%} of 1", ELSEWHERE),
            judge_cases(RATES, _rates(grid), f"every ratio within {SAME_RATE:.0%} of 1", CANNOT),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """Throughput by devices, and the printed values beside ours."""
        grid = read_grid(results)
        panel = throughput_panel(grid, CHAIN.key, grid.places(), "devices", EVERYONE)
        ratios = (("GP/PD", BEST, BY_COUNT), ("paper/PD", PAPER, BY_COUNT), ("GP/DP", BEST, DATA))
        table = throughput_table(grid, COLUMNS, grid.places(), EVERYONE, ratios)
        title = "GraphPipe, appendix A.3: simulated throughput of a sequential Transformer"
        return Figure(title=title, panels=(panel,), tables=(table, _printed_table(grid)), notes=grid.lost)


def _alike(grid: Grid) -> Iterator[Case]:
    for fast in GRAPHPIPES:
        for slow in (BY_COUNT, BY_TARGET, PIPER):
            ratios = list(grid.ratios(fast, slow).values())
            if ratios:
                off = max(abs(ratio - 1) for ratio in ratios)
                yield named_case(f"{fast.label} / {slow.label}", text_of(ratios), -off, off <= ALIKE)


def _rates(grid: Grid) -> Iterator[Case]:
    for fast in GRAPHPIPES:
        ratios = [
            rate / PRINTED["paper"][DEVICES.index(place.devices)]
            for place in grid.places()
            if place.devices in DEVICES and (rate := grid.rate(place, fast))
        ]
        if ratios:
            off = max(abs(ratio - 1) for ratio in ratios)
            yield named_case(f"{fast.label} / printed", text_of(ratios), -off, off <= SAME_RATE)


def _printed_table(grid: Grid) -> Table:
    rows = []
    for place in grid.places():
        if place.devices in DEVICES:
            at = DEVICES.index(place.devices)
            own = [grid.rate(place, who) for who in (PIPER, BY_COUNT, PAPER)]
            texts = ["-" if rate is None else f"{rate:.1f}" for rate in own]
            paper = [f"{PRINTED[key][at]:.1f}" for key in ("piper", "k", "paper")]
            rows.append((str(place.devices), paper[0], texts[0], paper[1], texts[1], paper[2], texts[2]))
    columns = ("devices", "Piper: paper's", "ours", "PipeDream: paper's", "ours", "GraphPipe: paper's", "ours")
    return Table(title="Samples a second as printed, and ours (variant paper)", columns=columns, rows=tuple(rows))
