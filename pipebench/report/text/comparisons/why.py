"""Why the rows of a problem differ, in lines under its table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipebench.bench.explanation import Aspect, Explainer, Step
from pipebench.documents.document import PlannedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import RegimeMode
from pipebench.domain.row import Row
from pipebench.report.problem_blocks import ProblemBlock, cut_words, is_data_parallel
from pipebench.report.units import rate

MOST_EXPLAINED = 12
"""Problems up to which a comparison says why rows differ: a grid of hundreds has standings."""
MOST_PAIRS = 4
"""Of a regime that are explained; the slowest rows first."""
PlanOf = Callable[[Row], PlannedProblem | None]
"""Finds the plan behind a row, with its problem and schedule; None where there is none."""


def why_lines(block: ProblemBlock, explainer: Explainer, plan_of: PlanOf) -> list[str]:
    """What plans have in common, and what leads from other rows to the best one of each regime.

    plan_of: the plan behind a row, None where it is not known. The changes are made one after the other in one
    order (see `ASPECTS`); each figure is simulated.
    """
    lines = [*_data_parallel(block), *_same_cuts(block)]
    pairs = []
    for first, second in (*_to_the_best(block), *_without_a_flush(block)):
        plans = plan_of(first[1]), plan_of(second[1])
        if plans[0] is not None and plans[1] is not None:
            pairs.append(_Pair(first, second, plans[0], plans[1]))
    found = explainer.explain([(pair.planned, pair.other) for pair in pairs])
    for pair, steps in zip(pairs, found, strict=True):
        if steps:
            lines.append(f"  {pair.between}: {'; '.join(pair.words(step) for step in steps)}")
        elif pair.first[1].plan_id == pair.second[1].plan_id:
            lines.append(f"  {pair.between}: the same plan in the same order")
    return lines


Named = tuple[str, Row]


def _solved(block: ProblemBlock, mode: RegimeMode) -> list[Named]:
    rows = ((each.name, each.rows.get(mode)) for each in block.contenders)
    return [(name, row) for name, row in rows if row is not None and row.status == "ok" and row.plan_id]


def _to_the_best(block: ProblemBlock) -> Iterator[tuple[Named, Named]]:
    """In each regime the slowest rows, each with the fastest of all, be it the yardstick."""
    for mode in block.regimes:
        solved = sorted(_solved(block, mode), key=lambda each: -(each[1].throughput or 0.0))
        for other in reversed(solved[1:][-MOST_PAIRS:]):
            yield other, solved[0]


def _without_a_flush(block: ProblemBlock) -> Iterator[tuple[Named, Named]]:
    """The best contender without a flush: its plan with one, then without."""
    best = block.best.get("async")
    for each in block.contenders:
        both = [each.rows.get(mode) for mode in ("sync", "async")]
        if best is not None and both[1] is not None and both[1].plan_id == best.plan_id and both[0] is not None:
            if both[0].status == "ok":
                yield (each.name, both[0]), (each.name, both[1])
            return


def _data_parallel(block: ProblemBlock) -> Iterator[str]:
    """Whose plans are data parallelism; in which regime, where those of the other one are not."""
    alike: dict[str, list[str]] = {}
    for each in block.contenders:
        planned = [row for row in each.rows.values() if row.plan_id]
        is_so = [row for row in planned if is_data_parallel(row)]
        if is_so and not each.yardstick:
            where = f" in {is_so[0].regime}" if len(is_so) < len(planned) else ""
            alike.setdefault(where, []).append(each.name)
    for where, names in alike.items():
        yield f"  {', '.join(names)}: the plan{where} is data parallelism"


def _same_cuts(block: ProblemBlock) -> Iterator[str]:
    """Contenders whose stages hold the same operators in some regime; one stage for all needs no word."""
    cuts: dict[str, dict[str, None]] = {}
    for each in block.contenders:
        for row in each.rows.values():
            if row.cut_id and (row.stages or 0) > 1 and not each.yardstick:
                cuts.setdefault(row.cut_id, {})[each.name] = None
    for names in dict.fromkeys(tuple(names) for names in cuts.values() if len(names) > 1):
        yield f"  {', '.join(names)}: cut at the same operators"


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two rows with the plans behind them."""

    first: Named
    second: Named
    planned: PlannedProblem
    other: PlannedProblem

    @property
    def between(self) -> str:
        """From whom to whom, or of whom in both regimes."""
        (name, row), (other, best) = self.first, self.second
        return f"{name} to {other}, {row.regime}" if row.regime == best.regime else f"{name}, sync to async"

    def words(self, step: Step) -> str:
        """What was changed, and samples/s before and after."""
        changed = " and ".join(map(self._change, step.aspects))
        before, after = (rate(self.first[1].mini_batch / taken_s) for taken_s in (step.before_s, step.after_s))
        return f"{changed}: {before} to {after}"

    def _change(self, aspect: Aspect) -> str:
        """One change, from what to what where that is short."""
        first, second = self.first[1], self.second[1]
        if aspect == "cut":
            one, other = cut_words(first), cut_words(second)
            return (
                f"cut ({one} to {other})" if one != other else "cut (other operators in stages of the same shape)"
            )
        if aspect == "replicas" and first.replicas == second.replicas:
            one, other = _shared(self.planned.plan), _shared(self.other.plan)
            return f"replicas {one} to {other}" if one and other and one != other else "devices"
        if aspect == "order":
            one, other = ("chain" if row.width == 1 else "graph of stages" for row in (first, second))
            return f"{one} to {other}" if one != other else "order of stages"
        if aspect == "micro-batch":
            one, other = _sizes(first), _sizes(second)
            return f"micro-batch {one} to {other}" if one != other else "micro-batches of single stages"
        if aspect == "flush":
            return "no flush" if second.regime == "async" else "flush"
        if aspect == "scheduler":
            one, other = first.scheduler, second.scheduler
            return f"scheduler {one} to {other}" if one != other else "order of tasks"
        return aspect


def _shared(plan: Plan) -> str:
    """How replicas share micro-batches; empty where stages differ, or each has one replica."""
    modes = {stage.replicas for stage in plan.stages if stage.data_parallel > 1}
    return modes.pop().replace("_", "-") if len(modes) == 1 else ""


def _sizes(row: Row) -> str:
    sizes = sorted(set(row.micro_batch))
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}"
