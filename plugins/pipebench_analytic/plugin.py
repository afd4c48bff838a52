"""What this plugin offers: the profiler `analytic` and its options."""

import math
from typing import Literal, get_args

from pipebench.costs.shapes.modules import WITHIN_EXPERTS
from pipebench.domain.errors import nearest
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.profile import NarrowPrecision
from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Profiler

PIPEBENCH_API = 1
MODULES: tuple[RecomputeModule, ...] = get_args(RecomputeModule)


class AnalyticOptions(Value, frozen=True, kw_only=True):
    """Options of the profiler `analytic`.

    - efficiency: share of the peak rate that a contraction reaches with endless rows.
    - r_half: rows at which it reaches half of that; rows are tokens, pixels or samples of the micro-batch.
    - launch_s: overhead of each kernel.
    - workspace_bytes: scratch memory that matrix and convolution libraries may use.
    - max_tensor_parallel: degrees 2, 4, … up to this one are offered (1: none).
    - recompute: offer to recompute operators that save much more than their inputs.
    - attention: `flash`, `unfused` or `selective` (unfused, its core run again in the backward); empty: as the
      framework has it. It counts with `--framework`.
    - products: `fp8` computes the products of layers in 8 bits, `fp4` in 4 (NVFP4), weights stay as they are; it
      needs a device with measured kernels of that precision, and counts with `--framework`.
    - sequence_parallel: `on` splits what lies between the products over the tensor-parallel ranks, `off` does not;
      empty: as the framework does. It counts with `--framework`.
    - tensor_overlap: `on` runs products in parts beside the collectives of tensor parallelism that they wait for
      (Megatron-LM's --tp-comm-overlap, torchtitan's asynchronous tensor parallelism), `off` does not; empty: as
      the framework does. It needs sequence parallelism and counts with `--framework`.
    - recompute_modules: what of a layer runs again under selective recomputation, in Megatron-LM's words, with `+`
      between them (`moe_act+mla_up_proj`): core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts.
      Each layer is offered so, and `--recompute selective` asks for it; empty: attention's core alone. It counts
      with `--framework megatron`.
    - kernels: a CSV of kernels that you measured on the device (docs/reference/kernel-tables.md). They come before
      those that ship. It counts with `--framework`.
    - multiprocessors: of a device that does not ship, for a fit of `kernels`.
    - calibrate: measured profiles of models with dims (files, separated by colons). The rates of each operator
      kind are fitted to them; efficiency, r_half and launch_s are then not used.
    """

    efficiency: float = 0.9
    r_half: float = 128.0
    launch_s: float = 8e-6
    workspace_bytes: int = 2**25
    max_tensor_parallel: int = 8
    recompute: bool = True
    attention: Literal["", "flash", "unfused", "selective"] = ""
    products: Literal["", NarrowPrecision] = ""
    sequence_parallel: Literal["", "on", "off"] = ""
    tensor_overlap: Literal["", "on", "off"] = ""
    recompute_modules: str = ""
    kernels: str = ""
    multiprocessors: int = 0
    calibrate: str = ""

    def __post_init__(self) -> None:
        require(0.0 < self.efficiency <= 1.0, f"efficiency is {self.efficiency}, it must be in (0, 1]")
        for name in ("r_half", "launch_s", "workspace_bytes"):
            number = getattr(self, name)
            require(
                math.isfinite(number) and number >= 0, f"{name} is {number}, it must be finite and not negative"
            )
        require(
            self.max_tensor_parallel >= 1,
            f"max_tensor_parallel is {self.max_tensor_parallel}, it must be at least 1",
        )
        for name in self._said:
            require(name in MODULES, f"recompute_modules: there is no {name!r} ({nearest(name, MODULES)})")
            require(self._said.count(name) == 1, f"recompute_modules: {name} is named twice")
        within = next((name for name in WITHIN_EXPERTS if name in self.modules), "")
        require(
            not within or "moe" not in self.modules,
            f"recompute_modules: {within} is a part of moe, which runs again as a whole: leave one of them out",
        )

    @property
    def modules(self) -> tuple[RecomputeModule, ...]:
        """Those of `recompute_modules`, in one order."""
        return tuple(name for name in MODULES if name in self._said)

    @property
    def _said(self) -> list[str]:
        return self.recompute_modules.split("+") if self.recompute_modules else []


@hookimpl
def pipebench_profilers() -> tuple[Profiler, ...]:
    """One profiler: roofline with an efficiency curve over rows."""
    return (
        Profiler(
            name="analytic",
            summary="roofline: FLOP against memory traffic, efficiency growing with rows; no device needed",
            load="pipebench_analytic.profiler:profile",
            options=AnalyticOptions,
            paths=("calibrate", "kernels"),
            devices="pipebench_analytic.calibration:device_types",
            reference="Williams, Waterman and Patterson, Roofline, CACM 2009",
        ),
    )
