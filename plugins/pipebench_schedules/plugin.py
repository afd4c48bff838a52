"""What this plugin offers."""

from typing import Literal

from pipebench.domain.limits import MOST_NS
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler

PIPEBENCH_API = 1


EITHER: tuple[ReplicaMode, ...] = ("split", "round_robin")


class OneFOneBOptions(Value, frozen=True, kw_only=True):
    """Options of the scheduler `1f1b`.

    - warmup: micro-batches that a stage runs ahead of the next one; '+2' hides transfers, at more memory.
    """

    warmup: Literal["+1", "+2"] = "+1"


class KFKBOptions(OneFOneBOptions, frozen=True, kw_only=True):
    """Options of the scheduler `kfkb`.

    - warmup: as in `1f1b`.
    - k: backwards and forwards in turn at every stage; 0: as the plan says, 1 by default.
    """

    k: int = 0

    def __post_init__(self) -> None:
        require(0 <= self.k <= 1024, f"k is {self.k}, it must be from 0 to 1024")


class GreedyOptions(Value, frozen=True, kw_only=True):
    """Options of the scheduler `greedy`.

    - live: the most micro-batches that a stage keeps in flight, as a multiple of the devices of a pipeline; 0: any
      number. 2 is the memory limit of ZB-2p (Qi et al. 2023, section 4), about twice that of 1F1B.
    - links: by its clock messages wait for each other on links, and on the ways out of nodes and into them that
      devices share. Otherwise all go side by side.
    """

    live: float = 0.0
    links: bool = False

    def __post_init__(self) -> None:
        require(0 <= self.live <= 1024, f"live is {self.live:g}, it must be from 0 to 1024")


class FiniteBranchOptions(Value, frozen=True, kw_only=True):
    """Options of the scheduler `finite-bnb`.

    - nodes: the most nodes of each search tree.
    - below_ns: only orders that take less are looked for; 0: any.
    """

    nodes: int = 20_000
    below_ns: int = 0

    def __post_init__(self) -> None:
        require(1 <= self.nodes <= 10**9, f"nodes is {self.nodes}, it must be from 1 to 1000000000")
        require(0 <= self.below_ns <= MOST_NS, f"below_ns is {self.below_ns}, it must be from 0 to 2^53")


@hookimpl
def pipebench_schedulers() -> tuple[Scheduler, ...]:
    """gpipe, 1f1b, kfkb, interleaved-1f1b, zb-h1, zb-v, chimera, greedy, finite-bnb, 1f1b*, 1f1b-rr and modulo."""
    return (
        Scheduler(
            name="gpipe",
            summary="all forwards, then all backwards, of a mini-batch",
            load="pipebench_schedules.single_stage:schedule_gpipe",
            reference="Huang et al. 2019, GPipe, section 2.3",
            capabilities=ScheduleCapabilities(per_stage_micro_batch=True, replicas=EITHER),
        ),
        Scheduler(
            name="1f1b",
            summary="forwards and backwards in turn after a warm-up (kFkB), on any graph of stages",
            load="pipebench_schedules.single_stage:schedule_1f1b",
            options=OneFOneBOptions,
            reference="Narayanan et al. 2019, PipeDream; Jeon et al. 2025, GraphPipe, section 4.3",
            deviations=("warm-up of stages with different micro-batches by a rule that is reconstructed",),
            capabilities=ScheduleCapabilities(per_stage_micro_batch=True, replicas=EITHER),
        ),
        Scheduler(
            name="kfkb",
            summary="k backwards and k forwards in turn, k and micro-batch by stage; refuses orders that deadlock",
            load="pipebench_schedules.single_stage:schedule_kfkb",
            options=KFKBOptions,
            reference="Jeon et al. 2025, GraphPipe, section 4.3 and appendix A.1",
            deviations=(
                "what a stage keeps in flight goes by a reconstructed rule: the paper's table is not public",
                "warmup=+2 and a k for all stages are not in the paper",
            ),
            capabilities=ScheduleCapabilities(per_stage_micro_batch=True, replicas=EITHER),
        ),
        Scheduler(
            name="interleaved-1f1b",
            summary="1F1B of devices that run several stages in turn (virtual stages), as Megatron-LM",
            load="pipebench_schedules.interleaved:schedule",
            reference="Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters, "
            "section 2.2",
            capabilities=ScheduleCapabilities(placements=("in-turn",), stage_graphs="chain"),
        ),
        Scheduler(
            name="zb-h1",
            summary="1F1B with weight gradients kept back to fill its waits; memory of 1F1B's first device",
            load="pipebench_schedules.zero_bubble:schedule_h1",
            reference="Qi et al. 2023, Zero Bubble Pipeline Parallelism, section 3.1",
            deviations=("device r keeps r weight gradients back; the optimizer step is not split by stage",),
            capabilities=ScheduleCapabilities(stage_graphs="chain"),
        ),
        Scheduler(
            name="zb-v",
            summary="zero bubble for two stages a device in a V: device r has r and 2 p - 1 - r",
            load="pipebench_schedules.zero_bubble:schedule_v",
            reference="Qi et al. 2024, Pipeline Parallelism with Controllable Memory",
            deviations=("the regular pattern for equal stages, not a search over measured times",),
            capabilities=ScheduleCapabilities(placements=("v",), stage_graphs="chain"),
        ),
        Scheduler(
            name="chimera",
            summary="two pipelines in opposite directions over the same devices, each with weights of its own",
            load="pipebench_schedules.chimera:schedule",
            reference="Li and Hoefler 2021, Chimera: Efficiently Training Large-Scale Neural Networks with "
            "Bidirectional Pipelines, sections 3.1 and 3.5",
            deviations=(
                "two pipelines; the paper's generalisation to more of them (section 3.6) is not there",
                "more than D micro-batches by direct concatenation; forward doubling and backward halving are not "
                "there",
                "gradients are reduced at the end of a lane, not between its tasks (section 3.2)",
            ),
            capabilities=ScheduleCapabilities(placements=("mirrored",), stage_graphs="chain"),
        ),
        Scheduler(
            name="greedy",
            summary="what can start first, backwards before forwards, for any placement and graph of stages",
            load="pipebench_schedules.greedy:schedule",
            options=GreedyOptions,
            reference="Graham 1969, Bounds on Multiprocessing Timing Anomalies",
            deviations=(
                "the fastest of up to twelve orders that fits: six numbers in flight, gradients split or not",
            ),
            capabilities=ScheduleCapabilities(placements=("listed", "mirrored")),
        ),
        Scheduler(
            name="finite-bnb",
            summary="shortest order of the tasks of a small plan, by branch and bound; any placement",
            load="pipebench_schedules.finite_bnb:schedule",
            options=FiniteBranchOptions,
            reference="Giffler and Thompson 1960, Algorithms for Solving Production-Scheduling Problems (active "
            "schedules); Brucker, Jurisch and Sievers 1994, A Branch and Bound Algorithm for the Job-Shop Problem",
            deviations=(
                "memory of lanes, gradients split or not, replicas and transfers are the suite's",
                "of orders in which links are contended every one is looked at, and simulated",
            ),
            capabilities=ScheduleCapabilities(placements=("listed",), per_stage_micro_batch=True, named_only=True),
        ),
        Scheduler(
            name="1f1b*",
            summary="periodic pattern of least memory for a chain of stages",
            load="pipebench_schedules.one_f_one_b_star:schedule",
            reference="Beaumont, Eyraud-Dubois and Shilova 2021, MadPipe, section 4.1",
            capabilities=ScheduleCapabilities(produces="periodic", stage_graphs="chain"),
        ),
        Scheduler(
            name="1f1b-rr",
            summary="periodic pattern, all as soon as it can; replicas may take micro-batches in turn",
            load="pipebench_schedules.round_robin:schedule",
            reference="Narayanan et al. 2019, PipeDream, section 3.2 (1F1B-RR)",
            deviations=(
                "a fixed pattern of the shortest period found, where PipeDream's workers run what is there",
                "gradients are reduced once a mini-batch, in equal shares behind all backwards",
            ),
            capabilities=ScheduleCapabilities(produces="periodic", replicas=EITHER),
        ),
        Scheduler(
            name="modulo",
            summary="periodic pattern for any placement: all in the first gaps of devices and links",
            load="pipebench_schedules.modulo:schedule",
            reference="Rau 1994, Iterative Modulo Scheduling, section 3.2",
            deviations=("down the stages and up again, without backtracking; memory is tried, not scheduled",),
            capabilities=ScheduleCapabilities(produces="periodic", placements=("listed",), named_only=True),
        ),
    )
