"""Split operators: local volume, reductions over what the tensor does not span, bytes to fetch."""

from math import prod
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.formula import Formula
from pipebench.costs.rings import Ring
from pipebench.costs.sharded_stage import ShardedStage
from pipebench.costs.sharding import reductions, reshard
from pipebench.costs.sums.compute import OperatorTimes
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts

BATCH, IN, OUT, ELEMENT = 8, 6, 10, 4
FORMULA = Formula(Regime(mode="sync"), 1)
ONE_BYTE_A_NS = LinkLevel(name="l", group=64, bandwidth_bytes_s=1e9)


def tensor(name: str, elements: int, producer: str | None = None) -> Tensor:
    size = float(ELEMENT * elements)
    return Tensor(name=name, producer=producer, forward_bytes_per_sample=size, gradient_bytes_per_sample=size)


GRAPH = OperatorGraph(
    name="two products",
    operators=(
        Operator(
            name="first", kind="linear", dims={"k": IN, "n": OUT}, inputs=("x",), parameters=("w",),
            axes={"x": ("batch", "k"), "y": ("batch", "n"), "w": ("k", "n")},
        ),
        Operator(
            name="second", kind="relu", dims={"m": OUT}, inputs=("y",),
            axes={"y": ("batch", "m"), "z": ("batch", "m")},
        ),
        Operator(name="loss", kind="sum", dims={"m": OUT}, inputs=("z",), axes={"z": ("batch", "m"), "l": ()}),
    ),
    tensors=(
        tensor("x", IN),
        tensor("y", OUT, producer="first"),
        tensor("z", OUT, producer="second"),
        Tensor(name="l", producer="loss", forward_bytes_per_sample=0, gradient_bytes_per_sample=0, fixed_bytes=4),
    ),
    parameters=(Parameter(name="w", bytes=ELEMENT * IN * OUT),),
)  # fmt: skip


def ring(bytes_each: float, devices: int) -> int:
    """2 (q - 1) / q of the bytes at one byte a nanosecond."""
    return round(2 * (devices - 1) * bytes_each / devices)


class ShardedTimes(NamedTuple):
    """Forward and backward of a micro-batch with their reductions, and the reduction of the weights' gradients."""

    forward: int
    backward: int
    weights: int


def sharded(
    split: dict[str, int],
    name: str = "first",
    whole_ns: tuple[int, int] = (4800, 9600),
    graph: OperatorGraph = GRAPH,
) -> ShardedTimes:
    """A stage of one operator that takes `whole_ns` for the batch, on as many devices as its split has parts."""
    forward, backward = (ns * 1e-9 for ns in whole_ns)
    costs = tuple(
        OperatorCosts(operator=each.name, forward_s=(forward,), backward_s=(backward,)) for each in graph.operators
    )
    devices = prod(split.values())
    on = Cluster(
        name="c",
        types=(DeviceType(name="gpu", memory_bytes=10**9),),
        devices=("gpu",) * max(1, devices),
        levels=(ONE_BYTE_A_NS,),
    )
    stage = Stage(
        operators=(name,), devices=tuple(range(max(1, devices))), tensor_parallel=max(1, devices),
        micro_batch=BATCH, sharding=(split,),
    )  # fmt: skip
    alone = ShardedStage(graph, stage, BATCH, on)
    there, back, _ = alone.times(
        OperatorTimes(DeviceCosts(device_type="gpu", micro_batches=(BATCH,), operators=costs))
    )
    return ShardedTimes(there, back, alone.all_reduce_ns(FORMULA, 1, lambda _: Ring(ONE_BYTE_A_NS, ONE_BYTE_A_NS)))


def test_a_product_pays_for_the_dim_that_each_matrix_lacks() -> None:
    x, y, w = ELEMENT * BATCH * IN, ELEMENT * BATCH * OUT, ELEMENT * IN * OUT
    assert sharded({}) == ShardedTimes(4800, 9600, 0)
    assert sharded({"batch": 4}) == ShardedTimes(1200, 2400, ring(w, 4))
    assert sharded({"n": 5}) == ShardedTimes(960, 1920 + ring(x, 5), 0)
    assert sharded({"k": 3}) == ShardedTimes(1600 + ring(y, 3), 3200, 0)
    every = sharded({"batch": 2, "k": 3, "n": 5})
    assert every == ShardedTimes(160 + ring(y / 10, 3), 320 + ring(x / 6, 5), ring(w / 15, 2))


def test_a_dim_that_does_not_divide_costs_its_largest_part() -> None:
    assert sharded({"n": 3}).forward == 4800 * 4 // 10
    assert sharded({"n": 4}).forward == 4800 * 3 // 10


def test_shares_are_rounded_up_so_that_they_make_up_the_whole() -> None:
    assert sharded({"m": 2}, "second", (5, 7)) == ShardedTimes(3, 4, 0)


def test_a_sum_over_everything_reduces_over_all_devices() -> None:
    assert sharded({"batch": 2, "m": 5}, "loss").forward == 480 + ring(4, 10)


@pytest.mark.parametrize(
    ("made", "read", "fetched"),
    [
        ({"batch": 4}, {"batch": 4}, 0),
        ({"n": 2}, {"m": 2}, 0),
        # Needs 2 samples x 10, holds 8 x 5: 2 x 5 in common.
        ({"n": 2, "k": 2}, {"batch": 4}, 2 * 10 - 2 * 5),
        ({"batch": 4}, {"m": 2, "batch": 2}, 4 * 5 - 2 * 5),
        ({"batch": 4}, {}, 8 * 10 - 2 * 10),
        # Three devices that held nothing need their part whole.
        ({}, {"batch": 4}, 2 * 10),
    ],
)
def test_a_device_fetches_what_it_needs_and_does_not_hold(
    made: dict[str, int], read: dict[str, int], fetched: int
) -> None:
    assert reshard(GRAPH, "y", made, "second", read, BATCH) == ELEMENT * fetched


def test_gradients_go_the_other_way() -> None:
    assert reshard(GRAPH, "y", {}, "second", {"batch": 4}, BATCH, backward=True) == ELEMENT * (80 - 20)
    assert reshard(GRAPH, "x", {}, "first", {"batch": 4}, BATCH) == 0


splits = st.builds(lambda b, c: {"batch": b, "n": c}, st.integers(1, BATCH), st.integers(1, OUT))


@given(splits, splits)
def test_fetched_bytes_by_counting_elements(made: dict[str, int], read: dict[str, int]) -> None:
    """Both tiles start at the corner: count the cells of the needed one outside the held one."""
    tiles = [
        {(i, j) for i in range(-(-BATCH // s["batch"])) for j in range(-(-OUT // s["n"]))} for s in (made, read)
    ]
    held = tiles[0] if made["batch"] * made["n"] >= read["batch"] * read["n"] else set()
    reader_split = {"batch": read["batch"], "m": read["n"]}
    assert reshard(GRAPH, "y", made, "second", reader_split, BATCH) == ELEMENT * len(tiles[1] - held)


def test_wrong_splits_are_refused() -> None:
    for split in ({"q": 2}, {"n": 11}, {"n": 0}, {"batch": 9}):
        with pytest.raises(InvalidValue, match="first"):
            reductions(GRAPH, "first", split, BATCH)
    with pytest.raises(InvalidValue, match="does not say"):
        reshard(GRAPH, "y", {}, "loss", {}, BATCH)


def viewed(made: dict[str, int], read: dict[str, int], backward: bool = False) -> int:
    """An image of 2 x 3 x 4, 8 samples, read as 24 features."""
    image, flat = ("batch", "c", "h", "w"), ("batch", "f")
    graph = OperatorGraph(
        name="view",
        operators=(
            Operator(name="pool", kind="max_pool", dims={"c": 2, "h": 3, "w": 4}, axes={"v": image}),
            Operator(name="fc", kind="linear", dims={"f": 24}, inputs=("v",), axes={"v": flat}),
        ),
        tensors=(tensor("v", 24, producer="pool"),),
    )
    return reshard(graph, "v", made, "fc", read, BATCH, backward)


@pytest.mark.parametrize(
    ("made", "read", "elements"),
    [
        ({"batch": 2}, {"batch": 2}, 0),
        ({"c": 2}, {"f": 2}, 0),
        ({"c": 2}, {"f": 4}, 8 * 6),  # four devices need what two held
        ({"c": 2, "batch": 2}, {"f": 4}, 8 * 6 - 4 * 6),
        ({"h": 3}, {"f": 3}, 8 * 8),  # every third row is no run of features
        ({"h": 3}, {}, 8 * 24 - 8 * 8),  # but lies in the whole
        ({}, {"f": 3}, 8 * 8),
        ({"batch": 4}, {"f": 4}, 8 * 6 - 2 * 6),
    ],
)
def test_a_view_joins_the_axes_behind_the_samples(
    made: dict[str, int], read: dict[str, int], elements: int
) -> None:
    assert viewed(made, read) == ELEMENT * elements


def test_gradients_of_a_view_go_the_other_way() -> None:
    assert viewed({"c": 2}, {"f": 4}, backward=True) == ELEMENT * (8 * 12 - 8 * 6)


def test_operators_that_say_nothing_have_samples_in_front() -> None:
    silent = Operator(name="first", kind="op", inputs=("x",), parameters=("w",))
    graph = OperatorGraph(
        name="silent",
        operators=(silent,),
        tensors=(tensor("x", 6), tensor("y", 10, producer="first")),
        parameters=(Parameter(name="w", bytes=400),),
    )
    assert sharded({"batch": 4}, whole_ns=(400, 800), graph=graph) == ShardedTimes(100, 200, ring(400, 4))
