"""Figure 6: periods over memory for ResNet-50, the estimate of the first phase and the schedule."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import geometric_mean

from pipebench.domain.artefact import Cell, Claim, Curve, Figure, Finding, Panel, Result
from pipebench_madpipe.figures.contenders import BASELINES, CONTENDERS, MADPIPES, PAPER, Contender
from pipebench_madpipe.figures.grid import BANDWIDTH_GB_S, DEVICES, MEMORY_GB, Grid
from pipebench_madpipe.figures.points import Point, Points, points_of
from pipebench_madpipe.figures.ratios import LARGER, Case, cases, every_pair, judged

SECTION = "section 5.2, on figure 6"
ROUTINELY = Claim(
    name="routinely 20 % larger",
    statement="In half of the cells or more, PipeDream's period is at least 1.2 times MadPipe's",
    quote="The period achieved by PipeDream is routinely 20% larger than what MadPipe can provide",
    where=SECTION,
)
TWICE = Claim(
    name="up to two or three times",
    statement="In some cell PipeDream's period is at least twice MadPipe's",
    quote="in some cases the solution of PipeDream is up to two or even three times slower",
    where=SECTION,
)
OPTIMISTIC = Claim(
    name="PipeDream's estimate is optimistic",
    statement="PipeDream's schedule takes at least 1.2 times its estimate (geometric mean)",
    quote=(
        "the partitioning produced by PipeDream is very optimistic and expects to achieve a very small period, "
        "but then turns out infeasible, resulting in a very high overhead"
    ),
    where=SECTION,
)
HIGHER = Claim(
    name="MadPipe expects more and gets less",
    statement="MadPipe's estimate is above PipeDream's, its schedule below (geometric means)",
    quote=(
        "the partitioning obtained by the first step of MadPipe has a higher period because it considers more "
        "memory constraints, but it overall results in a more efficient schedule"
    ),
    where=SECTION,
)
NON_INCREASING = Claim(
    name="estimates never rise with memory",
    statement="No estimate is larger with more memory",
    quote="the period of the partitionings (the dashed lines) are non-increasing with M",
    where=SECTION,
)
ERRATIC = Claim(
    name="PipeDream's schedules are the more erratic",
    statement="With more memory PipeDream's period rises more often than MadPipe's",
    quote="This erratic behavior is nevertheless much more visible for PipeDream.",
    where=SECTION,
)
SUBSET = Grid(("resnet50",), (2, 4, 8), (4, 6, 8, 10, 12, 16))
FULL = Grid(("resnet50",), DEVICES, MEMORY_GB, BANDWIDTH_GB_S)


class Fig6:
    """hooks.reproduction.Reproduction."""

    claims = (ROUTINELY, TWICE, OPTIMISTIC, HIGHER, NON_INCREASING, ERRATIC)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """ResNet-50, and the user's profiles."""
        return tuple((FULL if full else SUBSET).cells(profiles))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Every claim, in order."""
        points = points_of(results)
        pairs = every_pair(points, points.outcomes)
        return [
            judged(
                ROUTINELY,
                cases(pairs, lambda p: p.larger / len(p.values), lambda p: 2 * p.larger >= len(p.values)),
                f"routinely is taken as half of the cells at {LARGER:g} or more",
            ),
            judged(
                TWICE,
                cases(pairs, lambda p: max(p.values), lambda p: max(p.values) >= 2.0),
                "the largest ratio is 2 or more",
            ),
            judged(OPTIMISTIC, _optimism(points), f"schedule / estimate is {LARGER:g} or more"),
            judged(
                HIGHER, _expectations(points), "estimates above 1, schedules below 1, both MadPipe / PipeDream"
            ),
            judged(NON_INCREASING, _rising_estimates(points), "no step of memory raises an estimate"),
            judged(ERRATIC, _erratic(points), "more of PipeDream's steps of memory raise its period"),
        ]

    def series(self, results: Sequence[Result]) -> Figure:
        """A panel for each network, bandwidth and number of devices; dashed: estimates."""
        points = points_of(results)
        groups = points.places("network", "bandwidth_gb_s", "devices")
        panels = [
            Panel(
                title=f"{network}, P = {devices}, {bandwidth:g} GB/s",
                x_label="memory of a device (GB)",
                y_label="period (ms)",
                curves=tuple(
                    _curves(points, points.along(network=network, bandwidth_gb_s=bandwidth, devices=devices))
                ),
            )
            for network, bandwidth, devices in groups
        ]
        title = "MadPipe, figure 6: period of the estimate (dashed) and of the schedule (solid)"
        return Figure(title=title, panels=tuple(panels), notes=points.lost)


def _lines(points: Points) -> Iterator[list[Point]]:
    for network, bandwidth, devices in points.places("network", "bandwidth_gb_s", "devices"):
        yield points.along(network=network, bandwidth_gb_s=bandwidth, devices=devices)


def _curves(points: Points, along: list[Point]) -> Iterator[Curve]:
    for contender in CONTENDERS:
        ran = [p for p in along if contender.key in points.outcomes[p]]
        periods = [(p.memory_gb, period) for p in ran if (period := points.period(p, contender.key)) is not None]
        expected = [(p.memory_gb, e) for p in ran if (e := estimate(points, p, contender)) is not None]
        if contender.estimated and expected:
            yield Curve(
                label=f"{contender.label}: estimate",
                kind="estimate",
                colour=contender.colour,
                points=tuple((x, 1e3 * y) for x, y in expected),
            )
        if ran:
            yield Curve(
                label=contender.label,
                colour=contender.colour,
                points=tuple((x, 1e3 * y) for x, y in periods),
                infeasible=tuple(p.memory_gb for p in ran if points.infeasible(p, contender.key)),
            )


def estimate(points: Points, point: Point, contender: Contender) -> float | None:
    """Seconds that the first phase of a contender expected there."""
    outcome = points.outcomes[point].get(contender.key)
    return outcome.estimate_s if outcome else None


def _optimism(points: Points) -> list[Case]:
    found = []
    for contender in BASELINES:
        both = [
            period / expected
            for p in points.outcomes
            if (period := points.period(p, contender.key)) is not None
            and (expected := estimate(points, p, contender)) is not None
        ]
        lost = sum(
            points.infeasible(p, contender.key) and estimate(points, p, contender) is not None
            for p in points.outcomes
        )
        if both:
            mean = geometric_mean(both)
            text = f"{contender.label}: {mean:.2f} ({len(both)} cells; {lost} more cannot be scheduled at all)"
            found.append(Case(contender.label, text, mean, mean >= LARGER))
    return found


def _expectations(points: Points) -> list[Case]:
    found = []
    for slow in BASELINES:
        expected, achieved = [], []
        for p in points.outcomes:
            high, low = estimate(points, p, PAPER), estimate(points, p, slow)
            ours, theirs = points.period(p, PAPER.key), points.period(p, slow.key)
            if high is not None and low is not None:
                expected.append(high / low)
            if ours is not None and theirs is not None:
                achieved.append(ours / theirs)
        if expected and achieved:
            above, below = geometric_mean(expected), geometric_mean(achieved)
            text = f"{PAPER.label} / {slow.label}: estimates {above:.2f}, schedules {below:.2f}"
            found.append(Case(slow.label, text, 1 / below, above > 1 > below))
    return found


def _steps(points: Points, contender: Contender, scheduled: bool) -> tuple[int, int]:
    """How many steps to more memory there are, and how many of them raise the value."""
    steps = rises = 0
    for along in _lines(points):
        values = [points.period(p, contender.key) if scheduled else estimate(points, p, contender) for p in along]
        known = [value for value in values if value is not None]
        steps += max(0, len(known) - 1)
        rises += sum(after > before * (1 + 1e-9) for before, after in pairwise(known))
    return steps, rises


def _rising_estimates(points: Points) -> list[Case]:
    found = []
    for contender in (*BASELINES, PAPER):
        steps, rises = _steps(points, contender, scheduled=False)
        if steps:
            text = f"{contender.label}: {rises} of {steps} steps rise"
            found.append(Case(contender.label, text, -rises, rises == 0))
    return found


def _erratic(points: Points) -> list[Case]:
    found = []
    for fast in MADPIPES:
        all_steps, own = _steps(points, fast, scheduled=True)
        for slow in BASELINES:
            steps, rises = _steps(points, slow, scheduled=True)
            if steps and all_steps:
                text = f"{slow.label}: {rises} of {steps} steps rise, {fast.label}: {own} of {all_steps}"
                more = rises / steps - own / all_steps
                found.append(Case(f"{slow.label} / {fast.label}", text, more, more > 0))
    return found
