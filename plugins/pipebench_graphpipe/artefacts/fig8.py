"""Figure 8 and section 7.5: the case study, its two schedules drawn, and where the gain comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.artefacts.findings import Case, named_case
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench_graphpipe.artefacts.cells import (
    BEST,
    BY_COUNT,
    DATA,
    GRAPH,
    GRAPHPIPES,
    PAPER,
    Network,
    Place,
    cells,
    refuse,
)
from pipebench_graphpipe.artefacts.throughputs import (
    COLUMNS,
    Grid,
    judge_cases,
    read_grid,
    throughput_panel,
    throughput_table,
)

STUDY = Network("case-study", "case-study", 8)
DEVICES = 8
SIZES = (1, 2, 4, 8, 16)
MEMORY_GB, TIGHT_GB = 16.0, (0.45, 0.35)
"""On 0.45 GB the sequential planner has to halve its micro-batch, on 0.35 GB both have to."""
MORE_GB = (1.0, 0.7, 0.5, 0.4)
GAIN = Claim(name="20 % in all", statement="GraphPipe's throughput is 20 % above SPP's", where="section 7.5")
STAGES = Claim(
    name="the same eight stages",
    statement="Both planners make eight stages of one device each",
    where="section 7.5",
)
DEPTH = Claim(
    name="half as deep",
    statement="The sequential pipeline is eight stages deep, GraphPipe's four",
    where="section 7.5",
)
SIZE = Claim(
    name="twice the micro-batch",
    statement="GraphPipe's micro-batch is larger than SPP's: 4 for 2 in the paper",
    where="section 7.5",
)
HALVES = Claim(
    name="two gains alike",
    statement="The shorter warm-up and the larger micro-batch gain about 10 % each",
    where="section 7.5",
)
PRESSURE = Claim(
    name="more with less memory", statement="GraphPipe's gain is larger where memory is tight", where="section 7.5"
)
JOIN = (
    "The concatenation belongs to the last stage of one branch, so the other branch leads to it and is one stage "
    "longer: five. The paper counts four and leaves open who owns the concatenation"
)
UNBOUND = (
    "Neither the mini-batch nor a layer's sizes are in the text; with the layers of appendix A.2 memory does not "
    "bind on 16 GB, so that only the filling of the pipeline sets the micro-batches apart; where memory is tight "
    "the deeper pipeline, which keeps more in flight, has to take the smaller micro-batch, as the paper tells"
)
CONTENDERS = (BEST, PAPER, BY_COUNT, GRAPH, DATA)


@dataclass(frozen=True, slots=True)
class Gain:
    """GraphPipe over SPP: in all, at SPP's micro-batch, and by its own micro-batch on top."""

    whole: float
    schedule: float

    @property
    def size(self) -> float:
        """What is left."""
        return self.whole / self.schedule


class CaseStudy:
    """hooks.reproduction.Reproduction."""

    claims = (GAIN, STAGES, DEPTH, SIZE, HALVES, PRESSURE)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """Micro-batch free and fixed, with ample and tight memory; 8 samples a device, in full 16 as well."""
        refuse(profiles, "the model of the case study")
        networks = (STUDY, Network(STUDY.key, STUDY.model, 16)) if full else (STUDY,)
        trials: list[Cell] = []
        for memory in (MEMORY_GB, *(MORE_GB if full else ()), *TIGHT_GB):
            for network in networks:
                trials += cells(
                    (network,),
                    (DEVICES,),
                    (PAPER, BY_COUNT),
                    memory_gb=memory,
                    timelines=_has_timeline(memory, network),
                )
                trials += cells((network,), (DEVICES,), (BEST, GRAPH, DATA), memory_gb=memory)
                trials += cells(
                    (network,), (DEVICES,), (BEST, PAPER, BY_COUNT), micro_batches=SIZES, memory_gb=memory
                )
        return tuple(trials)

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        grid = read_grid(results)
        return [
            judge_cases(
                GAIN,
                [named_case(name, f"{g.whole:.2f}", g.whole, 1.15 <= g.whole < 1.25) for name, g in _gains(grid)],
                "20 % to the nearest tenth",
                UNBOUND,
            ),
            judge_cases(STAGES, _stages(grid), "eight stages, one device each, on both sides"),
            judge_cases(DEPTH, _depths(grid), "depths 8 and 4", JOIN),
            judge_cases(SIZE, _sizes(grid), "a larger size", UNBOUND),
            judge_cases(
                HALVES,
                [
                    named_case(
                        name,
                        f"{g.schedule:.3f} by the schedule, {g.size:.3f} by the size",
                        min(g.schedule, g.size),
                        all(1.05 <= gain < 1.15 for gain in (g.schedule, g.size)),
                    )
                    for name, g in _gains(grid)
                ],
                "both 10 % to the nearest tenth",
                UNBOUND,
            ),
            judge_cases(PRESSURE, _pressure(grid), "a larger ratio with the least memory than with the most"),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """Throughput by micro-batch at each memory; the table has the free choices too."""
        grid = read_grid(results)
        panels = [
            throughput_panel(
                grid,
                f"{memory:g} GB, mini-batch {mini_batch}",
                [p for p in grid.places(memory_gb=memory, mini_batch=mini_batch) if p.micro_batch],
                "micro_batch",
                (*GRAPHPIPES, BY_COUNT),
            )
            for mini_batch in grid.values("mini_batch")
            for memory in grid.values("memory_gb")
        ]
        ratios = (("GP/PD", BEST, BY_COUNT), ("paper/PD", PAPER, BY_COUNT), ("GP/PD+G", BEST, GRAPH))
        table = throughput_table(grid, COLUMNS, grid.places(), CONTENDERS, ratios)
        title = "GraphPipe, section 7.5: the case study by micro-batch size and memory"
        return Figure(title=title, panels=tuple(panels), tables=(table,), notes=grid.lost)


def _has_timeline(memory_gb: float, network: Network) -> bool:
    return memory_gb == MEMORY_GB and network is STUDY


def _free_sizes(grid: Grid) -> list[Place]:
    return grid.places(micro_batch=0)


def _pairs(grid: Grid) -> Iterator[tuple[str, Place, Contender]]:
    for place in _free_sizes(grid):
        for fast in GRAPHPIPES:
            if grid.ratio(place, fast, BY_COUNT) is not None:
                yield f"{fast.label}, {place.memory_gb:g} GB, mini-batch {place.mini_batch}", place, fast


def _gains(grid: Grid) -> Iterator[tuple[str, Gain]]:
    for name, place, fast in _pairs(grid):
        whole = grid.ratio(place, fast, BY_COUNT)
        chosen = grid.plan_row(place, BY_COUNT)
        assert chosen is not None
        same = [
            other
            for other in grid.places(memory_gb=place.memory_gb, mini_batch=place.mini_batch)
            if other.micro_batch == max(chosen.micro_batch)
        ]
        at_its_size = grid.rate(same[0], fast) if same else None
        sequential = chosen.throughput
        if whole and at_its_size and sequential:
            yield name, Gain(whole, at_its_size / sequential)


def _stages(grid: Grid) -> Iterator[Case]:
    for name, place, fast in _pairs(grid):
        rows = [grid.plan_row(place, fast), grid.plan_row(place, BY_COUNT)]
        counts = [(row.stages or 0, max(row.replicas)) for row in rows if row is not None]
        text = " and ".join(f"{stages} stages of up to {most} devices" for stages, most in counts)
        yield named_case(name, text, min(stages for stages, _ in counts), counts == [(8, 1), (8, 1)])


def _depths(grid: Grid) -> Iterator[Case]:
    for name, place, fast in _pairs(grid):
        deep, flat = grid.plan_row(place, BY_COUNT), grid.plan_row(place, fast)
        assert deep is not None
        assert flat is not None
        depths = deep.depth, flat.depth
        yield named_case(name, f"{deep.depth} and {flat.depth}", -(flat.depth or 0), depths == (8, 4))


def _sizes(grid: Grid) -> Iterator[Case]:
    for name, place, fast in _pairs(grid):
        rows = [grid.plan_row(place, fast), grid.plan_row(place, BY_COUNT)]
        own, other = (max(row.micro_batch) for row in rows if row is not None)
        yield named_case(name, f"{own} for {other}", own / other, own > other)


def _pressure(grid: Grid) -> Iterator[Case]:
    for mini_batch in dict.fromkeys(place.mini_batch for place in _free_sizes(grid)):
        places = sorted(grid.places(micro_batch=0, mini_batch=mini_batch), key=lambda place: place.memory_gb)
        for fast in GRAPHPIPES:
            known = [
                (place.memory_gb, ratio) for place, ratio in grid.ratios(fast, BY_COUNT, places=places).items()
            ]
            if len(known) > 1:
                text = ", ".join(f"{ratio:.3f} at {memory:g} GB" for memory, ratio in known)
                change = known[0][1] - known[-1][1]
                yield named_case(f"{fast.label}, mini-batch {mini_batch}", text, change, change > 0)
