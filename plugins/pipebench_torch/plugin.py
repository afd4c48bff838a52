"""What this plugin offers: the profiler and the executor `torch`, and their options."""

from typing import Literal

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Executor, ExecutorCapabilities, Profiler

PIPEBENCH_API = 1
VARIABLES = (
    "CUDA_*",
    "NVIDIA_*",
    "NCCL_*",
    "GLOO_*",
    "TORCH*",
    "PYTORCH_*",
    "HF_*",
    "HUGGINGFACE_*",
    "TRANSFORMERS_*",
    "KMP_*",
    "GOMP_*",
    "HOME",
    "XDG_CACHE_HOME",
)
"""How PyTorch finds devices, networks and the caches of models."""
FOLDERS = ("~/.cache", "~/.triton", "~/.nv", "$XDG_CACHE_HOME", "$HF_HOME", "$TORCH_HOME", "/dev", "/proc")
"""Where PyTorch and libraries of models keep what they have downloaded and compiled; shared memory and cards; and
/proc/self/task/N/comm, by which CUDA's driver names a thread of each process (where it may not, it has no device).
"""
PIPEBENCH_WAIVED = {
    "torch:profile": "it measures the machine that it runs on, the kit asks for a device of a table"
}
"""Checks of the conformance kit that do not hold, each with the reason."""


class LaunchOptions(Value, frozen=True, kw_only=True):
    """Options of the processes of one run.

    - backend: auto is nccl where every process has a card, else gloo.
    - timeout_s: limit for the whole run, including the time until other machines join.
    - nnodes: number of machines. Each is given the same command with its own node_rank.
    - node_rank: number of this machine, from 0.
    - processes_per_node: ranks are dealt out in blocks of this size (0: even blocks).
    - rendezvous: HOST:PORT of node 0, which all machines can reach (empty: this machine, a free port).
    """

    backend: Literal["auto", "gloo", "nccl"] = "auto"
    timeout_s: float = 300.0
    nnodes: int = 1
    node_rank: int = 0
    processes_per_node: int = 0
    rendezvous: str = ""

    def __post_init__(self) -> None:
        require(self.timeout_s > 0, f"timeout_s is {self.timeout_s}, it must be above 0")
        require(self.nnodes >= 1, f"nnodes is {self.nnodes}, it must be at least 1")
        require(
            self.processes_per_node >= 0,
            f"processes_per_node is {self.processes_per_node}, it must not be negative",
        )
        require(
            0 <= self.node_rank < self.nnodes,
            f"node_rank is {self.node_rank}, it must be from 0 to {self.nnodes - 1} (nnodes is {self.nnodes})",
        )


class ExecutorOptions(LaunchOptions, frozen=True, kw_only=True):
    """Options of the executor `torch`.

    - engine: `own` runs every plan and times every message; `pipelining` is torch.distributed.pipelining, for
      chains of single stages.
    - device: where tensors live; auto is cuda where every process finds a card of its own, else cpu.
    - backend: auto is nccl for cuda and gloo for cpu. gloo with cuda copies through the host, so that processes
      may share a card.
    - iterations: measured mini-batches after the warmup (async: mini-batches of one long run).
    - least_s: more mini-batches are run until they have taken this many seconds.
    - warmup: mini-batches that are not measured.
    - verify: compare gradients with a single process; auto: when the model is small.
    - tolerance: largest difference, relative to the largest gradient of the parameter (0: 1000 roundings of
      float64, in which both are computed).
    - ahead: number of tasks whose receives are posted beforehand.
    - timeout_s: limit for the whole run.
    - limit_memory: hold each process to the memory of its device (cpu).
    - model: the module to build where the profile is of one that was captured by import path or file, which is
      built only where it is typed: package.module:function or ./file.py:function. Options are the profile's.
    - threads: of each process.
    - nnodes: number of machines. Each is given the same command with its own node_rank.
    - node_rank: number of this machine, from 0.
    - processes_per_node: ranks are dealt out in blocks of this size (0: even blocks).
    - rendezvous: HOST:PORT of node 0, which all machines can reach (empty: this machine, a free port).
    """

    engine: Literal["own", "pipelining"] = "own"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    iterations: int = 5
    least_s: float = 1.0
    warmup: int = 1
    verify: Literal["auto", "yes", "no"] = "auto"
    tolerance: float = 0.0
    ahead: int = 3
    limit_memory: bool = False
    model: str = ""
    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("iterations", "ahead", "threads"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}, it must be at least 1")
        for name in ("warmup", "least_s"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")
        require(self.tolerance >= 0, f"tolerance is {self.tolerance}, it must not be negative")


class ProfilerOptions(LaunchOptions, frozen=True, kw_only=True):
    """Options of the profiler `torch`.

    - repeats: passes after the warmup; the middle half of them counts.
    - least_s: more passes are run until they have taken this many seconds.
    - warmup: passes that are not measured.
    - group: operators are calls of modules or single nodes, for models that torch captures.
    - depth: levels of nested modules (0: the innermost).
    - threads: of each process.
    - queued: a card is held until the processor has queued a forward or a backward. Times are then the card's
      alone; else they hold what it waits for the processor to launch kernels.
    - beside: number of other processes that run the same model meanwhile, as the other devices of a pipeline do:
      cores share caches, memory and power, processes share a card.
    - backend (links): auto is nccl where every process has a card, else gloo.
    - timeout_s, nnodes, node_rank, processes_per_node, rendezvous (links): as of the executor.
    """

    repeats: int = 5
    least_s: float = 1.0
    warmup: int = 2
    group: Literal["module", "node"] = "module"
    depth: int = 0
    threads: int = 1
    queued: bool = False
    beside: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("repeats", "threads"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}, it must be at least 1")
        for name in ("warmup", "depth", "least_s", "beside"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}, it must not be negative")


@hookimpl
def pipebench_profilers() -> tuple[Profiler, ...]:
    """One profiler: operators are timed inside whole passes."""
    return (
        Profiler(
            name="torch",
            summary="measures every operator with PyTorch; any torch.nn.Module, as ./file.py:function",
            load="pipebench_torch.profiling.profiler:profile",
            options=ProfilerOptions,
            captures=True,
            network=True,
            variables=VARIABLES,
            writes=FOLDERS,
            links="pipebench_torch.profiling.links:links",
            devices="pipebench_torch.profiling.profiler:device_types",
            reference="Ansel et al., PyTorch 2, ASPLOS 2024 (torch.export)",
            deviations=("dropout is off in models that torch captures",),
        ),
    )


@hookimpl
def pipebench_executors() -> tuple[Executor, ...]:
    """One executor: torch.distributed, one process a device."""
    return (
        Executor(
            name="torch",
            summary="runs the plan with PyTorch, one process a device (gloo on cpu, NCCL on cuda)",
            load="pipebench_torch.executor:execute",
            options=ExecutorOptions,
            reference="Li et al., PyTorch Distributed, VLDB 2020 (torch.distributed)",
            deviations=(
                "no optimizer step in a synchronous mini-batch, as in the cost model",
                "the loss is half the mean square of the model's outputs; only its gradient is computed",
                "a split backward walks the graph twice: once for inputs, once for weights",
                "of replicas in turn, an all-reduce lasts until the last one has come to its own",
                "engine=pipelining refuses replicas",
            ),
            capabilities=ExecutorCapabilities(launch="processes", placements=("listed",), round_robin=True),
            paths=("model",),
            network=True,
            variables=VARIABLES,
            writes=FOLDERS,
        ),
    )
