"""Published multi-branch networks at operator level: the graphs alone, with costs drawn for them."""

import random

from pipebench.domain.problem import Problem
from tests.builders import cluster, dag_problem


class Net:
    """A graph being written: operators are numbered as they are added."""

    def __init__(self) -> None:
        self.reads: list[tuple[int, ...]] = []

    def add(self, *inputs: int) -> int:
        self.reads.append(inputs)
        return len(self.reads) - 1

    def chain(self, start: int, length: int) -> int:
        for _ in range(length):
            start = self.add(start)
        return start


def inception_v3() -> Net:
    """Convolution, batch norm and ReLU apart; the E modules fork inside their branches."""
    net = Net()
    x = net.chain(net.add(), 16)

    def module(x: int, *branches: tuple[int, bool]) -> int:
        ends = []
        for length, forks in branches:
            y = net.chain(x, 3 * length)
            ends += [net.chain(y, 3), net.chain(y, 3)] if forks else [y]
        return net.add(*ends)

    for _ in range(3):
        x = module(x, (1, False), (2, False), (3, False), (1, False))
    x = module(x, (1, False), (3, False), (0, False))
    for _ in range(4):
        x = module(x, (1, False), (3, False), (5, False), (1, False))
    x = module(x, (2, False), (4, False), (0, False))
    for _ in range(2):
        x = module(x, (1, False), (1, True), (2, True), (1, False))
    net.chain(x, 3)
    return net


def nasnet(cells: int = 12) -> Net:
    """Cells of five blocks that read the two cells before: not series-parallel."""
    net = Net()
    before = net.add()
    x = net.chain(before, 2)
    for _ in range(cells):
        a, b = net.chain(before, 2), net.chain(x, 2)
        blocks = [
            net.add(net.chain(b, 3), b),
            net.add(net.chain(a, 3), net.chain(b, 3)),
            net.add(net.add(b), a),
            net.add(net.add(a), net.add(a)),
            net.add(net.chain(a, 3), net.chain(a, 3)),
        ]
        before, x = x, net.add(*blocks, a)
    net.chain(x, 3)
    return net


def random_dag(seed: int, operators: int = 60) -> Net:
    """Several sources and sinks, parts that nothing joins."""
    rng = random.Random(seed)
    net = Net()
    density = rng.choice((0.3, 1, 2, 4))
    for number in range(operators):
        most = min(number, 12)
        net.add(
            *sorted(
                {number - rng.randint(1, most) for _ in range(int(rng.expovariate(1 / density)))} if most else ()
            )
        )
    return net


def problem_on(net: Net, devices: int, seed: int = 0) -> Problem:
    """Times of a convolutional network: a third of the operators are heavy."""
    rng = random.Random(seed)
    count = len(net.reads)
    readers: dict[int, list[int]] = {}
    for operator, inputs in enumerate(net.reads):
        for read in inputs:
            readers.setdefault(read, []).append(operator)
    heavy = [rng.random() < 1 / 3 for _ in range(count)]
    return dag_problem(
        [rng.randint(10**5, 10**6) * (5 if each else 1) for each in heavy],
        [rng.randint(2 * 10**5, 2 * 10**6) * (5 if each else 1) for each in heavy],
        [(before, tuple(after), rng.randint(10**5, 10**6)) for before, after in sorted(readers.items())],
        cluster(devices, 16 * 10**9, bandwidth=12.5e9, latency_s=15e-6),
        weights=[rng.randint(10**4, 10**6) for _ in range(count)],
        saved=[rng.randint(10**5, 10**6) for _ in range(count)],
        mini_batch=16 * devices,
        micro_batches=(1, 2, 4, 8, 16, 32, 64, 128),
    )
