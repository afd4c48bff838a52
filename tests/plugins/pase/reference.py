"""What PaSE's released prototype says of its four graphs (baidu-research/PaSE, run with its own settings).

Batch 128, 10 TFLOPS, 16 GB/s, 8-byte words, cutoff 4 (1 for rnnlm and transformer); costs in multiply-adds. The
prototype prints the best cost; data-parallel and expert costs are sums of its tables.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """most, mean: configurations of a vertex. largest, total: combinations that an elimination looks at."""

    best: float
    data_parallel: float
    expert: float
    serial: float = 0.0
    vertices: int = 0
    edges: int = 0
    most: int = 0
    mean: float = 0.0
    dependent: int = 0
    breadth_first: int = 0
    largest: int = 0
    total: int = 0


REFERENCE: dict[tuple[str, int, int], Figures] = {
    # model, devices, samples
    ("alexnet", 4, 128): Figures(
        best=148215719552.0,
        data_parallel=577556866496.0,
        expert=170579586688.0,
        serial=436245065984.0,
        vertices=14,
        edges=13,
        most=12,
        mean=8.285714285714286,
        dependent=1,
        breadth_first=1,
        largest=132,
        total=960,
    ),
    ("alexnet", 8, 128): Figures(
        best=97098296512.0,
        data_parallel=601108833248.0,
        expert=126301793472.0,
        serial=436245065984.0,
        vertices=14,
        edges=13,
        most=28,
        mean=16.714285714285715,
        dependent=1,
        breadth_first=1,
        largest=672,
        total=4009,
    ),
    ("inception_v3", 4, 128): Figures(
        best=986757044608.0,
        data_parallel=1000665140416.0,
        expert=989238580608.0,
        serial=2212587921664.0,
        vertices=219,
        edges=253,
        most=14,
        mean=9.232876712328768,
        dependent=2,
        breadth_first=11,
        largest=2352,
        total=89943,
    ),
    ("inception_v3", 8, 128): Figures(
        best=782140602432.0,
        data_parallel=798678010208.0,
        expert=785346810432.0,
        serial=2212587921664.0,
        vertices=219,
        edges=253,
        most=30,
        mean=19.63013698630137,
        dependent=2,
        breadth_first=11,
        largest=25200,
        total=717334,
    ),
    ("rnnlm", 4, 128): Figures(
        best=13247562153984.0,
        data_parallel=15295398297600.0,
        expert=15295398297600.0,
        serial=46880327270400.0,
        vertices=4,
        edges=3,
        most=15,
        mean=13.5,
        dependent=1,
        breadth_first=1,
        largest=210,
        total=580,
    ),
    ("rnnlm", 8, 128): Figures(
        best=7462723813376.0,
        data_parallel=10031243468800.0,
        expert=9863471308800.0,
        serial=46880327270400.0,
        vertices=4,
        edges=3,
        most=36,
        mean=30.75,
        dependent=1,
        breadth_first=1,
        largest=1080,
        total=2937,
    ),
    ("transformer", 4, 128): Figures(
        best=3943828242432.0,
        data_parallel=4076006146048.0,
        expert=4076006146048.0,
        serial=12676975624192.0,
        vertices=204,
        edges=256,
        most=22,
        mean=15.514705882352942,
        dependent=3,
        breadth_first=37,
        largest=10000,
        total=526760,
    ),
    ("transformer", 8, 128): Figures(
        best=2340308361216.0,
        data_parallel=2642511233024.0,
        expert=6457956483072.0,
        serial=12676975624192.0,
        vertices=204,
        edges=256,
        most=62,
        mean=37.88725490196079,
        dependent=3,
        breadth_first=37,
        largest=160000,
        total=6893136,
    ),
    ("rnnlm", 4, 64): Figures(best=6866837733376.0, data_parallel=9435357388800.0, expert=9267585228800.0),
    ("rnnlm", 8, 64): Figures(best=4024963186688.0, data_parallel=7101223014400.0, expert=6849564774400.0),
    ("transformer", 4, 64): Figures(best=2189181321216.0, data_parallel=2491384193024.0, expert=2491384193024.0),
    ("transformer", 8, 64): Figures(best=1421082828800.0, data_parallel=1850200256512.0, expert=3304656961536.0),
}
