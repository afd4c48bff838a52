"""Language models for tests: the figures of published configurations, and problems on H100 nodes.

Facts: hidden width, layers, heads, vocabulary and sequence as their papers and config files print them.
"""

import json
from pathlib import Path
from typing import Any

from pipebench.bench.services import HostServices
from pipebench.costs.shapes.context import with_context_devices
from pipebench.domain.plan import Plan
from pipebench.domain.problem import OptimizerSharding, Pins, Problem, Regime
from pipebench.formats.clusters import load_cluster
from pipebench.hooks.context import Context, ProfileRequest
from pipebench.hooks.manager import Host
from pipebench_analytic.plugin import AnalyticOptions
from pipebench_analytic.profiler import profile
from pipebench_baselines import layout
from tests.models.zoo import model

LLAMA_70B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_70B_OPTIONS: dict[str, Any] = {
    "layers": 80,
    "hidden": 8192,
    "heads": 64,
    "kv_heads": 8,
    "ffn": 28672,
    "vocab": 32000,
    "sequence": 4096,
}
TINY: dict[str, Any] = {"layers": 8, "hidden": 256, "heads": 8, "ffn": 1024, "vocab": 20000, "sequence": 128}
HEAVY_HEAD = TINY | {"vocab": 600_000}
"""Its head takes longer than a layer."""


def config(folder: Path, **changes: Any) -> str:
    """The path of a config.json like LLAMA_70B with these keys changed (None: left out)."""
    said = {key: value for key, value in (LLAMA_70B | changes).items() if value is not None}
    path = folder / "config.json"
    path.write_text(json.dumps(said))
    return str(path)


def problem(
    devices: int = 64,
    mini_batch: int = 64,
    pins: Pins | None = None,
    sharding: OptimizerSharding = "none",
    sizes: tuple[int, ...] = (1, 2, 4),
    expert_parallel: int = 1,
    context_parallel: int = 1,
    **options: Any,
) -> Problem:
    """A model of these options in bf16 with Adam and fp32 gradients on DGX H100."""
    cluster = load_cluster("dgx-h100", devices)
    again = pins is not None and pins.recompute == "selective"
    request = ProfileRequest(
        devices=cluster.types,
        micro_batches=sizes,
        precision="bf16",
        selective=again,
        expert_parallel=expert_parallel,
        context_parallel=context_parallel,
    )
    return Problem(
        profile=profile(model("llm", **options), Context(options=AnalyticOptions(), request=request)),
        cluster=with_context_devices(cluster, context_parallel),
        mini_batch=mini_batch,
        regime=Regime(
            mode="sync",
            precision="bf16",
            gradient_precision="fp32",
            optimizer="adam",
            optimizer_sharding=sharding,
            expert_parallel=expert_parallel,
            context_parallel=context_parallel,
        ),
        pins=pins or Pins(),
    )


def planned(given: Problem) -> Plan:
    """What the planner `layout` makes of it."""
    services = HostServices(Host())
    return layout.plan(given, Context(options=None, services=services)).plan
