"""Contention on links and on the ports of nodes, against instants worked out by hand."""

import pytest

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel, LinkMode
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.trace import Trace
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.simulation.schedules import gpipe_schedule, lanes


def sent(trace: Trace) -> list[tuple[int, int, str, int, int, int]]:
    rows = zip(
        trace.source,
        trace.target,
        trace.transfer_kinds,
        trace.message,
        trace.transfer_start_ns,
        trace.transfer_end_ns,
        strict=True,
    )
    return list(rows)


@pytest.mark.parametrize(("mode", "second"), [("full", 20), ("half", 20), ("delay", 10)])
def test_two_tensors_share_a_link(mode: LinkMode, second: int) -> None:
    problem = dag_problem([10, 1], [1, 1], [(0, (1,), 10), (0, (1,), 7)], cluster(2, link_mode=mode))
    plan = stages_plan([[0], [1]])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert sent(trace)[:2] == [(0, 1, "F", 0, 10, 20), (0, 1, "F", 0, second, second + 7)]
    assert trace.tensor[:2] == (0, 1)


@pytest.mark.parametrize(("mode", "gradient"), [("full", 22), ("half", 30), ("delay", 22)])
def test_only_half_links_make_the_two_directions_wait(mode: LinkMode, gradient: int) -> None:
    """Activation 1 travels from 20 to 30; gradient 0 is ready at 22 and goes the other way."""
    problem = chain_problem(
        [10, 1], [1, 1], cluster(2, link_mode=mode), activations=[0, 10, 0], mode="sync", mini_batch=2
    )
    plan = stages_plan([[0], [1]])
    trace = simulate(problem, plan, lanes("F0 F1 B0 B1", "F0 B0 F1 B1"))
    assert sent(trace)[:3] == [
        (0, 1, "F", 0, 10, 20),
        (0, 1, "F", 1, 20, 30),
        (1, 0, "B", 0, gradient, gradient + 10),
    ]


def test_first_come_first_served_and_ties_by_message_number() -> None:
    """Stages 0 and 1 share a device, so their tensors to stage 2 share a link."""
    problem = dag_problem([4, 2, 1], [1, 1, 1], [(0, (2,), 10), (1, (2,), 10)], cluster(2))
    plan = Plan(
        stages=(
            Stage(operators=("op0",), devices=(0,), micro_batch=1),
            Stage(operators=("op1",), devices=(0,), micro_batch=1),
            Stage(operators=("op2",), devices=(1,), micro_batch=1),
        ),
        placement="listed",
    )
    schedule = lanes("F0 F0 B0 B0", "F0 B0")
    by_stage = [(1, 0, 0, 1), (2, 2)]
    shared = tuple(
        type(lane)(devices=lane.devices, stage=stage, micro_batch=lane.micro_batch, kinds=lane.kinds)
        for lane, stage in zip(schedule.lanes, by_stage, strict=True)
    )
    trace = simulate(problem, plan, type(schedule)(lanes=shared))
    assert sent(trace)[:2] == [(0, 2, "F", 0, 12, 22), (1, 2, "F", 0, 2, 12)]
    # Both gradients are ready at 24 on the one way back; the one of tensor 0 has the lower number.
    assert sent(trace)[2:] == [(2, 0, "B", 0, 24, 34), (2, 1, "B", 0, 34, 44)]


def nodes(shared: float | None, mode: LinkMode = "full", size: int = 2) -> Cluster:
    """Nodes of `size` devices, eight in all, 1 byte/ns for a device."""
    return Cluster(
        name="nodes",
        types=(DeviceType(name="gpu", memory_bytes=10**12),),
        devices=("gpu",) * 8,
        levels=(
            LinkLevel(name="node", group=size, bandwidth_bytes_s=1e9),
            LinkLevel(name="cluster", group=8, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=shared),
        ),
        link_mode=mode,
    )


@pytest.mark.parametrize(
    ("shared", "mode", "second"),
    [(None, "full", 10), (4e9, "full", 15), (2e9, "full", 20), (2e9, "half", 20), (2e9, "delay", 10)],
)
def test_a_node_shares_its_way_out(shared: float | None, mode: LinkMode, second: int) -> None:
    """Stages 0 and 1 on node 0 send 20 bytes each at 10, on links of their own, to node 1."""
    problem = dag_problem([10] * 2 + [1] * 2, [1] * 4, [(0, (2,), 20), (1, (3,), 20)], nodes(shared, mode))
    plan = stages_plan([[0], [1], [2], [3]])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert sent(trace)[:2] == [(0, 2, "F", 0, 10, 30), (1, 3, "F", 0, second, second + 20)]


@pytest.mark.parametrize(("shared", "second"), [(None, 10), (4e9, 15), (2e9, 20)])
def test_a_node_shares_its_way_in(shared: float | None, second: int) -> None:
    """Stages 0 and 1 on nodes 0 and 1 send 20 bytes each at 10, on links of their own, to node 2."""
    problem = dag_problem([10] * 2 + [1] * 2, [1] * 4, [(0, (2,), 20), (1, (3,), 20)], nodes(shared))
    stages = (Stage(operators=(f"op{i}",), devices=(d,), micro_batch=1) for i, d in enumerate((0, 2, 4, 5)))
    plan = Plan(stages=tuple(stages))
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert sent(trace)[:2] == [(0, 2, "F", 0, 10, 30), (1, 3, "F", 0, second, second + 20)]


def test_the_ways_in_and_out_of_a_node_are_apart() -> None:
    """Node 1 receives 20 bytes from node 0 while it sends 20 bytes to node 2."""
    problem = dag_problem([10] * 2 + [1] * 2, [1] * 4, [(0, (2,), 20), (1, (3,), 20)], nodes(1e9))
    stages = (Stage(operators=(f"op{i}",), devices=(d,), micro_batch=1) for i, d in enumerate((0, 2, 3, 4)))
    plan = Plan(stages=tuple(stages))
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert sent(trace)[:2] == [(0, 2, "F", 0, 10, 30), (1, 3, "F", 0, 10, 30)]


def test_inside_a_node_nothing_is_shared() -> None:
    problem = dag_problem([10, 10, 1, 1], [1] * 4, [(0, (2,), 20), (1, (3,), 20)], nodes(1e9, size=4))
    plan = stages_plan([[0], [1], [2], [3]])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert trace.transfer_start_ns[:2] == (10, 10)


def test_a_port_slower_than_the_link_sets_the_pace() -> None:
    problem = dag_problem([10, 1], [1, 1], [(0, (1,), 20)], nodes(0.5e9, size=1))
    plan = stages_plan([[0], [1]])
    assert sent(simulate(problem, plan, gpipe_schedule(problem, plan)))[0] == (0, 1, "F", 0, 10, 50)


def test_a_sender_that_spans_nodes_divides_its_bytes_among_their_ports() -> None:
    """Stage 0 on devices 1 and 2 (nodes 0 and 1) sends 40 bytes: 20 ns on its link, 10 ns on each port.

    Stage 1 on device 3 (node 1) has 20 bytes ready at the same instant and a later number.
    """
    problem = dag_problem(
        [20, 10, 1, 1], [1] * 4, [(0, (2,), 20), (1, (3,), 20)], nodes(2e9), mini_batch=2, micro_batches=(1, 2)
    )
    stages = (
        Stage(operators=("op0",), devices=(1, 2), data_parallel=2, micro_batch=2),
        Stage(operators=("op1",), devices=(3,), micro_batch=2),
        Stage(operators=("op2",), devices=(4, 5), data_parallel=2, micro_batch=2),
        Stage(operators=("op3",), devices=(6,), micro_batch=2),
    )
    plan = Plan(stages=stages)
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    # Stage 1 is done first, at 10: its port is busy until 30, its 40 bytes need 20 ns of it.
    assert sent(trace)[:2] == [(0, 2, "F", 0, 30, 50), (1, 3, "F", 0, 10, 50)]


def test_a_later_transfer_passes_one_whose_link_is_busy() -> None:
    """Node 0's port is free again at 20, but the next tensor to stage 1 waits for its link until 30."""
    tensors = [(0, (1,), 20), (0, (1,), 20), (0, (2,), 20)]
    problem = dag_problem([10, 1, 1], [1] * 3, tensors, nodes(2e9, size=1))
    plan = stages_plan([[0], [1], [2]])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    assert sent(trace)[:3] == [(0, 1, "F", 0, 10, 30), (0, 1, "F", 0, 30, 50), (0, 2, "F", 0, 20, 40)]


def test_stages_on_the_same_devices_send_nothing() -> None:
    problem = chain_problem([2, 3], [1, 1], cluster(1), activations=[0, 50, 0], mode="sync")
    plan = Plan(
        stages=tuple(Stage(operators=(f"op{i}",), devices=(0,), micro_batch=1) for i in range(2)),
        placement="listed",
    )
    lane = lanes("F0 F0 B0 B0").lanes[0]
    both = type(lane)(devices=(0,), stage=(0, 1, 1, 0), micro_batch=lane.micro_batch, kinds=lane.kinds)
    trace = simulate(problem, plan, lanes().__class__(lanes=(both,)))
    assert trace.total_ns == 7
    assert trace.source == ()
