"""The planners and the cells of MadPipe's grid (section 5.1): networks, P, M, beta; a subset of it or all."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell

BASELINES = (
    Contender("p", "PipeDream, memory p (E0)", "pipedream[memory=p]", 0),
    Contender("decreasing", "PipeDream, memory decreasing (E1)", "pipedream[memory=decreasing]", 1),
    Contender("released", "PipeDream, memory released (E2)", "pipedream[memory=released]", 2),
)
"""The paper's baseline under the three readings of its memory estimate, each scheduled by 1F1B*."""
BASELINE_SCHEDULER = "1f1b*"
PAPER = Contender("paper", "MadPipe, variant paper", "madpipe[variant=paper]", 3)
IMPROVED = Contender("improved", "MadPipe, improved", "madpipe", 4)
MADPIPES = (PAPER, IMPROVED)
CONTIGUOUS = Contender("contiguous", "best contiguous, 1F1B*", "contiguous-exact", 5)
CONTENDERS = (*BASELINES, CONTIGUOUS, PAPER, IMPROVED)
"""In the order of legends; a later curve is drawn over an earlier one."""
ESTIMATED = (*BASELINES, PAPER)
"""Planners whose first phase expects a period that the schedule may miss."""
NETWORKS = ("resnet50", "resnet101", "inception_v3", "densenet121")
DEVICES = tuple(range(2, 9))
MEMORY_GB = tuple(range(3, 17))
"""The paper gives the range, 3 to 16 GB, not the steps."""
BANDWIDTH_GB_S = (12, 24)
BATCH, IMAGE_BYTES = 8, 4.0 * 3 * 1000 * 1000
"""8 images of 1000 x 1000 in fp32."""
ENOUGH = "1000GB"
"""Memory that never matters: one device runs the whole network, U(1, L)."""
SEQUENTIAL = "sequential"
TRIAL_S = 0.25
SMALL = ("resnet50", "inception_v3")
"""Networks of few layers, where the paper's grid of states takes a second at most."""


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A cross product of cells; paper_on, paper_devices: where the paper's own, slow, variant runs too."""

    networks: tuple[str, ...]
    devices: tuple[int, ...]
    memory_gb: tuple[int, ...]
    bandwidth_gb_s: tuple[int, ...] = (12,)
    contenders: tuple[Contender, ...] = CONTENDERS
    paper_on: tuple[str, ...] = NETWORKS
    paper_devices: tuple[int, ...] = DEVICES

    def cells(self, profiles: Sequence[str] = ()) -> Iterator[Cell]:
        """The cells, those of the user's profiles last."""
        for network in self.networks:
            yield from self._of(network, network, network)
        for profile in profiles:
            yield from self._of(label(profile), reference(profile), "resnet50")

    def _of(self, network: str, profile: str, like: str) -> Iterator[Cell]:
        for devices in self.devices:
            for memory in self.memory_gb:
                for bandwidth in self.bandwidth_gb_s:
                    for contender in self.contenders:
                        if contender is PAPER and not (like in self.paper_on and devices in self.paper_devices):
                            continue
                        at: dict[str, str | float] = {
                            "network": network,
                            "devices": float(devices),
                            "memory_gb": float(memory),
                        }
                        yield Cell(
                            at=at | {"bandwidth_gb_s": float(bandwidth), "series": contender.key},
                            planner=contender.planner,
                            scheduler=BASELINE_SCHEDULER if contender in BASELINES else None,
                            profile=profile,
                            input_bytes=IMAGE_BYTES,
                            chain=True,
                            cluster="madpipe",
                            devices=devices,
                            memory=f"{memory}GB",
                            bandwidth=f"{bandwidth}GB/s",
                            mini_batch=BATCH,
                            micro_batch=BATCH,
                            dp=1,
                            regime="async",
                            timeout_s=1200.0 if contender is PAPER else 120.0,
                            expected_s=_seconds(contender, like, devices),
                        )


def sequential_cells(networks: Iterable[str], profiles: Sequence[str] = ()) -> Iterator[Cell]:
    """One device with all the memory it needs, for each network: U(1, L)."""
    of_users = [(label(profile), reference(profile)) for profile in profiles]
    for network, profile in [*((network, network) for network in networks), *of_users]:
        yield Cell(
            at={"network": network, "series": SEQUENTIAL},
            planner=CONTIGUOUS.planner,
            profile=profile,
            input_bytes=IMAGE_BYTES,
            chain=True,
            cluster="madpipe",
            devices=1,
            memory=ENOUGH,
            mini_batch=BATCH,
            micro_batch=BATCH,
            dp=1,
            regime="async",
            expected_s=TRIAL_S,
        )


def label(profile: str) -> str:
    """What a user's profile is called: the file's name, so that it differs from one that ships."""
    return Path(profile.partition("[")[0]).name


def reference(profile: str) -> str:
    """PipeDream's files are read as the paper's chain: a layer stores what enters it (a_{l-1})."""
    return f"{profile}[saved=boundary]" if profile.endswith(".txt") else profile


def _seconds(contender: Contender, network: str, devices: int) -> float:
    """Of one trial. The table of states of MadPipe's paper grows with devices and layers."""
    if contender is PAPER:
        return TRIAL_S + (0.01 if network in SMALL else 0.05) * devices**2
    return 0.5 if contender is IMPROVED else TRIAL_S
