"""Random problems for rannc: graphs with constants that several operators read, and tied weights."""

from random import Random

from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile
from tests.builders import cluster


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    most: int = 9,
    devices: int = 4,
    mini_batch: int = 8,
    memory: int = 10**9,
    constants: bool = True,
) -> Problem:
    """A graph in which operator i reads some of those before it; constants read constants only."""
    chance = Random(draw(st.integers(0, 2**32)))

    def amount() -> int:
        return chance.randint(0, 50)

    count = draw(st.integers(1, most))
    constant = [constants and chance.random() < 0.3 for _ in range(count)]
    if all(constant):
        constant[-1] = False
    readable = [[j for j in range(i) if constant[j] or not constant[i]] for i in range(count)]
    reads = [chance.sample(before, min(len(before), chance.randint(0, 3))) for before in readable]
    tensors = tuple(
        Tensor(
            name=f"t{i}",
            producer=f"op{i}",
            forward_bytes_per_sample=float(amount()),
            gradient_bytes_per_sample=0.0 if constant[i] else float(amount()),
            fixed_bytes=chance.randint(0, 5),
        )
        for i in range(count)
    )
    image = Tensor(name="x", forward_bytes_per_sample=float(amount()), gradient_bytes_per_sample=0.0)
    weights = {f"w{i}": amount() for i in range(3)}
    used = [chance.sample(sorted(weights), chance.randint(0, 2)) for _ in range(count)]
    operators = tuple(
        Operator(
            name=f"op{i}",
            kind="op",
            constant=constant[i],
            inputs=(*(f"t{j}" for j in sorted(reads[i])), *(("x",) if not constant[i] and not reads[i] else ())),
            parameters=tuple(used[i]),
        )
        for i in range(count)
    )
    graph = OperatorGraph(
        name="random",
        operators=operators,
        tensors=(*tensors, image),
        parameters=tuple(Parameter(name=name, bytes=4 * size) for name, size in weights.items()),
    )
    costs = tuple(
        OperatorCosts(
            operator=f"op{i}",
            forward_s=(amount() / 1e9,),
            backward_s=(amount() / 1e9,),
            saved_bytes_per_sample=float(amount()),
            workspace_bytes=amount(),
        )
        for i in range(count)
    )
    profile = Profile(
        name="random", graph=graph, costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=costs),)
    )
    return Problem(
        profile=profile,
        cluster=cluster(devices, memory),
        mini_batch=mini_batch,
        regime=Regime(mode="sync", optimizer="adam"),
    )


def with_pins(problem: Problem, **pins: object) -> Problem:
    """The problem with pins."""
    return replace(problem, pins=Pins(**pins))  # type: ignore[arg-type]
