"""What the figures run: planners, models, devices and mini-batches on the paper's platform."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Status

BEST = Contender("best", "GraphPipe best", "graphpipe", 0, "GP")
PAPER = Contender("paper", "GraphPipe paper", "graphpipe[variant=paper]", 6, "paper")
PLAIN = Contender("plain", "GraphPipe paper, no memo", "graphpipe[variant=paper,memo=false]", 2, "no memo")
BY_COUNT = Contender("k", "PipeDream k", "pipedream[replicas=split]", 1, "PD")
BY_TARGET = Contender("bs", "PipeDream bs", "pipedream[form=bs,replicas=split]", 5, "PD bs")
LEVELS = Contender("level", "PipeDream k, level order", "pipedream[order=level,replicas=split]", 7, "level")
GRAPH = Contender("graph", "PipeDream+graph", "pipedream[execution=graph,replicas=split]", 3, "PD+G")
DATA = Contender("data", "data parallel", "data-parallel", 4, "DP")
PIPER = Contender("piper", "Piper", "piper[memory=piper]", 7, "Piper")

GRAPHPIPES = (PAPER, BEST)
SEQUENTIAL = (BY_COUNT, BY_TARGET)
"""The paper's baseline SPP in two forms: its stages wait for one another in the order of the chain."""
BASELINES = (*SEQUENTIAL, GRAPH, DATA)
"""PipeDream+graph: PipeDream's own partition, whose stages wait only for what they read; not in the paper."""
EVERYONE = (BEST, PAPER, *BASELINES, PIPER)

DEVICES = (4, 8, 16, 32)
CLUSTER = "summit"
PIPER_FAILURES: tuple[Status, ...] = ("unsupported", "timeout", "memory")
PROFILER = "analytic[max_tensor_parallel=1,recompute=false]"
"""The paper is about pipeline and data parallelism: no planner is offered anything else."""
HINT = "graphpipe/fig6, graphpipe/table1 and graphpipe/fig9 take profile files"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One problem. micro_batch 0: the planners' choice; memory_gb 0: the platform's own."""

    network: str
    devices: int
    mini_batch: int
    micro_batch: int = 0
    memory_gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Network:
    """A model (empty: the profile file of that name), and its samples a device in a mini-batch (appendix A.2)."""

    key: str
    model: str
    samples: int = 16


MMT = Network("mmt", "mmt[branches=4]", 16)
DLRM = Network("dlrm", "dlrm[dense=7,sparse=7]", 64)
CANDLE = Network("candle-uno", "candle-uno[branches=7]", 1024)
CHAIN = Network("transformer", "transformer", 16)
APPENDIX = (MMT, DLRM, CANDLE)
"""Counts of branches as in appendix A.2."""
MMT_2 = Network("mmt-2", "mmt[branches=2]", 16)
DLRM_8 = Network("dlrm-8", "dlrm[dense=4,sparse=4]", 64)
CANDLE_8 = Network("candle-uno-8", "candle-uno[branches=8]", 1024)
SECTION_7_2 = (MMT_2, DLRM_8, CANDLE_8)
"""Counts of branches as in section 7.2, which differ."""


def user_networks(profiles: Sequence[str]) -> tuple[Network, ...]:
    """The user's files as further networks, with 16 samples a device."""
    return tuple(Network(profile, "") for profile in profiles)


def refuse(profiles: Sequence[str], subject: str) -> None:
    """Raise PipebenchError where a figure is about one model and files are given."""
    if profiles:
        raise PipebenchError(f"this figure is about {subject}: no profile file can take its place", HINT)


def cells(
    networks: Iterable[Network],
    devices: Sequence[int],
    contenders: Sequence[Contender],
    *,
    mini_batch: int | None = None,
    micro_batches: Sequence[int | None] = (None,),
    memory_gb: float | None = None,
    repeat: int = 0,
    timelines: bool = False,
) -> Iterator[Cell]:
    """The cross product. mini_batch: samples in all, in place of the network's own for each device."""
    for network in networks:
        for count in devices:
            for size in micro_batches:
                for contender in contenders:
                    at: dict[str, str | float] = {"network": network.key, "devices": float(count)}
                    at["mini_batch"] = float(mini_batch or network.samples * count)
                    if size is not None:
                        at["micro_batch"] = float(size)
                    if memory_gb is not None:
                        at["memory_gb"] = memory_gb
                    yield Cell(
                        at=at | {"series": contender.key},
                        planner=contender.planner,
                        model=network.model or None,
                        profile=None if network.model else network.key,
                        profiler=PROFILER,
                        cluster=CLUSTER,
                        devices=count,
                        memory=None if memory_gb is None else f"{memory_gb:g}GB",
                        mini_batch=mini_batch or network.samples * count,
                        micro_batch=size,
                        optimizer="adam",
                        regime="sync",
                        repeat=repeat,
                        timeout_s=600.0 if contender is PIPER else 120.0,
                        expected_s=_seconds(contender, network, count, repeat),
                        expected_failures=PIPER_FAILURES if piper_has_no_plan(contender, network.key) else (),
                        timeline=contender.label if timelines else "",
                    )


def piper_has_no_plan(contender: Contender, network: str) -> bool:
    """Whether the paper says that there is no plan: Piper's, for DLRM and CANDLE-Uno (section 7.2)."""
    return contender is PIPER and network.startswith(("dlrm", "candle"))


def _seconds(contender: Contender, network: Network, devices: int, repeat: int) -> float:
    """Of one trial: starting and judging it, and the searches. Piper's takes longest on ten thousand downsets."""
    search = {BEST: 0.8, PIPER: 0.6}.get(contender, 0.15)
    if contender is PIPER and network is DLRM_8:
        search = 5.0 + devices
    return 0.3 + (1 + repeat) * search
