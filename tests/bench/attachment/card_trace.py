"""Small traces as torch's profiler writes them of a card, with NCCL's kernels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Kernel = tuple[str, float, float]
"""Name, start and length in us."""
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECEIVE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
PRODUCT = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>"


def card_trace(
    kernels: Sequence[Kernel],
    step_us: float,
    *,
    rank: int | None = 0,
    steps: int = 3,
    group: str | None = "TENSOR_MODEL_PARALLEL_GROUP",
) -> dict[str, Any]:
    """The same kernels in each step after a first one that is twice as long. group: of the all-reduces."""
    events: list[dict[str, Any]] = []
    start = 0.0
    for step in range(steps):
        length = step_us * (2 if step == 0 else 1)
        mark = {"ph": "X", "name": f"ProfilerStep#{step}"}
        events.append(mark | {"cat": "user_annotation", "ts": start, "dur": length})
        # The card's own mark lasts from its first to its last kernel, and would be the shorter step.
        events.append(mark | {"cat": "gpu_user_annotation", "ts": start + 1, "dur": length / 4})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": start, "dur": length})
        for name, at, lasts in kernels:
            args: dict[str, Any] = {"stream": 7}
            if name == ALL_REDUCE and group is not None:
                args["Process Group Description"] = group
            event = {"ph": "X", "cat": "kernel", "name": name, "ts": start + at, "dur": lasts, "args": args}
            events.append(event)
        start += length
    made: dict[str, Any] = {"traceEvents": events, "baseTimeNanoseconds": 10**18}
    return made if rank is None else made | {"distributedInfo": {"rank": rank}}


def write_trace(path: Path, trace: dict[str, Any]) -> str:
    path.write_text(json.dumps(trace))
    return str(path)
