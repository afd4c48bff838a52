"""An export as people read it: what the block is worth, before the block."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pipebench.bench.exports.export import Export, Refusal
from pipebench.bench.exports.tolerance import Turn
from pipebench.costs.shapes.transformer import STACKED
from pipebench.defaults import BEST
from pipebench.documents.units import quantity
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import StepCosts
from pipebench.formats.frameworks import megatron
from pipebench.formats.frameworks.targets import Target
from pipebench.report.units import gigabytes, percent, seconds


def export_lines(made: Export) -> Iterator[str]:
    """One statement a line."""
    arrangement, prediction = made.made, made.prediction
    problem = arrangement.problem
    where = f"{problem.profile.name} on {quantity(problem.cluster.accelerators, 'GPU')} of {problem.cluster.name}"
    yield f"{where}; checked against {made.target.revision}"
    yield (
        f"TP {arrangement.tensor_parallel}, PP {arrangement.pipeline}, virtual stages {arrangement.virtual}, DP "
        f"{arrangement.data_parallel}, micro-batch {arrangement.micro_batch} a replica, global batch "
        f"{problem.mini_batch}, recompute {arrangement.recompute}"
        f"{f', CP {arrangement.context_ranks}' if arrangement.context_ranks > 1 else ''}"
    )
    if made.target.name == "megatron":
        yield from megatron.comments(arrangement)
    yield f"predicted {seconds(prediction.seconds)} for {problem.mini_batch} samples under {prediction.scheduler}"
    if made.split is not None:
        yield (
            f"the plan's own order, {made.split.scheduler}, takes {seconds(made.split.seconds)} and splits "
            f"backwards; this one does not (to keep it: plan with --scheduler {made.split.scheduler} --export "
            f"{made.target.name})"
        )
    yield _price(made.target, problem.regime.step)
    yield _against_uniform(made)
    if prediction.fits:
        yield f"memory: {gigabytes(prediction.free_bytes)} free on the fullest device ({prediction.verdict.fit})"
    else:
        yield f"DOES NOT FIT: {gigabytes(-prediction.free_bytes)} too much on the fullest device"
    yield from dict.fromkeys(_turn(made, turn) for turn in made.turns)
    yield "predicted from a profile by the simulator; nothing was run"


def refusal_lines(refusal: Refusal) -> Iterator[str]:
    """Why not, and what comes nearest at what cost."""
    yield f"{refusal.target.name} cannot express this plan: {refusal.reason}"
    found = refusal.nearest
    if found is None:
        yield "no plan like it that it can express was found"
        return
    stages = found.plan.stages
    degrees = f"TP {stages[0].tensor_parallel}, DP {stages[0].data_parallel}, {len(stages)} stages"
    beside = ""
    takes = found.prediction.seconds
    if refusal.seconds:
        more = takes / refusal.seconds - 1
        how = "slower" if more > 0 else "faster"
        beside = f", {percent(abs(more))} {how} than this plan's {seconds(refusal.seconds)}"
    yield (f"the nearest that it can: {degrees}, micro-batch {stages[0].micro_batch}: {seconds(takes)}{beside}")


def refusal_hint(refusal: Refusal, kept: Path | None) -> str | None:
    """What to type for a plan that the framework can express. kept: where the nearest plan goes.

    `best` finds one where there is one.
    """
    ways = [refusal.remedy] if refusal.remedy else []
    if refusal.nearest is not None:
        ways.append(f"plan with {BEST}, which keeps to what {refusal.target.name} can express")
        if kept is not None:
            ways.append(f"take the nearest, which is in {kept}")
    return ", or ".join(ways) or None


def as_plain(made: Export) -> dict[str, object]:
    """For --json."""
    launch = None if made.target.launch is None else made.target.launch(made.made)
    return {
        "target": made.target.name,
        "revision": made.target.revision,
        "text": made.text,
        "schedule": None if made.schedule is None else made.schedule.decode(),
        "scheduler": made.prediction.scheduler,
        "predicted_s": made.prediction.seconds,
        "uniform_s": None if made.uniform is None else made.uniform.seconds,
        "uniform_fits": None if made.uniform is None else made.uniform.fits,
        "fits": made.prediction.fits,
        "free_bytes": made.prediction.free_bytes,
        "launch": None if launch is None else asdict(launch),
        "turns": [
            {"item": turn.item, "factor": turn.factor, "limit": turn.limit, "finished": turn.finished}
            for turn in made.turns
        ],
    }


def _price(target: Target, step: StepCosts | None) -> str:
    """Whose step the prediction is of, and what to do where it is another framework's than the block's."""
    if step is None:
        return "priced without a framework's step (--framework)"
    if not target.frameworks or target.priced_by(step):
        return f"priced as {step.framework} runs it"
    others = " or ".join(f"--framework {name}" for name in target.frameworks)
    return f"PRICED AS {step.framework} RUNS IT, not as {target.name} does: plan with {others}"


def _against_uniform(made: Export) -> str:
    uniform = made.uniform
    if uniform is None:
        return "the uniform split: there is none, fewer layers than stages"
    gain = uniform.seconds / made.prediction.seconds - 1
    fit = "" if uniform.fits else ", and it does not fit"
    even = ""
    layers = sum(operator.kind in STACKED for operator in made.made.graph.operators)
    if layers and layers % len(made.made.stages):
        even = f" ({layers} layers on {len(made.made.stages)} stages: as equal as can be)"
    if uniform.seconds == made.prediction.seconds:
        return f"the uniform split takes the same{even}{fit}"
    beside = f"{percent(abs(gain))} {'faster' if gain > 0 else 'slower'}"
    return f"the uniform split takes {seconds(uniform.seconds)}: this is {beside}{even}{fit}"


def _turn(made: Export, turn: Turn) -> str:
    if not turn.finished and turn.limit == 1:
        alone = any(each.item == turn.item and (each.finished or each.limit != 1) for each in made.turns)
        what = "how wrong its time may be"
        if alone:
            what = "how much longer it may take" if turn.upwards else "how much less time it may take"
        return f"{turn.item}: {what} was not searched, the simulation takes too long"
    if not turn.finished:
        way = "up" if turn.upwards else "down"
        return f"{turn.item}: no other cut wins {way} to {turn.limit:.3g} x its time; not searched further"
    if turn.factor is None:
        return (
            f"{turn.item}: no other cut wins down to nothing"
            if turn.limit == 0
            else (f"{turn.item}: no other cut wins up to {turn.limit:.3g} x its time")
        )
    assert turn.rival is not None
    if turn.factor == 1:
        by = f"{percent(1 - turn.rival_s / made.prediction.seconds)} " if turn.rival_s else ""
        return f"the same degrees with other cuts are {by}faster: {_rival_text(made.target, made, turn)}"
    return f"{turn.item}: at {turn.factor:.3g} x its time another wins: {_rival_text(made.target, made, turn)}"


def _rival_text(target: Target, made: Export, turn: Turn) -> str:
    assert turn.rival is not None
    try:
        return megatron.layout_text(target.can_express(made.made.problem, turn.rival))
    except PipebenchError:
        return "operators a stage " + ", ".join(str(len(stage.operators)) for stage in turn.rival.stages)
