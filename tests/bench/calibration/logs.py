"""Small logs in the formats that the frameworks print."""

import json
from collections.abc import Mapping, Sequence

GPT: dict[str, object] = {
    "bf16": True,
    "data_parallel_size": 2,
    "ffn_hidden_size": 4096,
    "global_batch_size": 16,
    "hidden_size": 1024,
    "micro_batch_size": 2,
    "num_attention_heads": 16,
    "num_layers": 4,
    "padded_vocab_size": 50304,
    "pipeline_model_parallel_size": 2,
    "recompute_granularity": None,
    "seq_length": 512,
    "sequence_parallel": True,
    "tensor_model_parallel_size": 2,
    "virtual_pipeline_model_parallel_size": None,
    "world_size": 8,
}
TITAN: dict[str, dict[str, object]] = {
    "model": {"name": "llama3", "flavor": "8B"},
    "training": {"local_batch_size": 4, "global_batch_size": -1, "seq_len": 8192},
    "parallelism": {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 1,
        "tensor_parallel_degree": 4,
        "pipeline_parallel_degree": 2,
        "pipeline_parallel_schedule": "1F1B",
        "pipeline_parallel_microbatch_size": 1,
    },
    "activation_checkpoint": {"mode": "full"},
}


def megatron(
    times_ms: Sequence[float] = (9000, 200, 110, 101, 99, 100), *, digits: int = 1, **changes: object
) -> str:
    """A log of Megatron-LM; an argument that is changed to ... is left out. digits: of the times."""
    lines = [
        "using world size: 8, data-parallel size: 2",
        "------------------------ arguments ------------------------",
    ]
    lines += [
        f"  {name} {'.' * (48 - len(name))} {value}"
        for name, value in sorted((GPT | changes).items())
        if value is not ...
    ]
    lines.append("-------------------- end of arguments ---------------------")
    batch = (GPT | changes)["global_batch_size"]
    for number, milliseconds in enumerate(times_ms, 1):
        took = f"{milliseconds:.{digits}f}"
        lines.append(
            f" [2026-01-01 10:00:0{number}] iteration {number:8d}/     100 | "
            f"consumed samples: {16 * number:12d} | "
            f"elapsed time per iteration (ms): {took} | throughput per GPU (TFLOP/s/GPU): 88.0 | "
            f"learning rate: 1.000000E-04 | global batch size: {batch:5} | lm loss: 9.1E+00 |"
        )
    return "\n".join(lines) + "\n"


def spec(layers: int = 8, **changes: object) -> dict[str, object]:
    """`model_spec` of torchtitan's configuration since 2026: a Llama of no public size."""
    attention = {"n_heads": 16, "n_kv_heads": 4, "head_dim": None, "dim": 1024}
    gated = {name: {"in_features": 1024, "out_features": 3584} for name in ("w1", "w3")}
    layer = {"attention": attention, "feed_forward": gated | {"w2": {"out_features": 1024}}, "moe": None}
    model = {"dim": 1024, "vocab_size": 50304, "layers": [layer | changes] * layers}
    return {"name": "llama3", "flavor": "small", "model": model}


TITAN_2026: dict[str, dict[str, object]] = {
    "model_spec": spec(),
    "training": {
        "num_tokens_per_microbatch_per_dp_rank": 2048,
        "num_tokens_per_train_step": 16384,
        "max_context_length": 2048,
        "dtype": "float32",
        "mixed_precision_param": "bfloat16",
        "disable_cuda_graphs": True,
    },
    "parallelism": {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 1,
        "tensor_parallel_degree": 1,
        "pipeline_parallel_degree": 2,
        "pipeline_parallel_schedule": "1F1B",
        "pipeline_parallel_schedule_csv": "",
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 1,
        "pipeline_parallel_layers_per_stage": None,
        "module_fqns_per_model_part": None,
        "num_pp_microbatches": 8,
    },
    "activation_checkpoint": None,
}
"""A configuration as torchtitan b5bcd76c6 prints it, but for what is not read."""


def torchtitan(
    rates: Sequence[int] = (300, 1000, 1024, 1048),
    config: Mapping[str, Mapping[str, object]] = TITAN,
    mesh: str = "",
) -> str:
    """A log of torchtitan, with colours. config: what it prints of its configuration."""
    lines = [f"[rank0]:[titan] - root - INFO - Running with configs: {json.dumps(config, indent=2)}", mesh]
    for number, rate in enumerate(rates, 1):
        lines.append(
            f"[rank0]:[titan] - root - INFO - \x1b[31mstep: {number:2}  \x1b[32mloss:  7.1234  "
            f"\x1b[38;2;180;60;0mgrad_norm:  1.2  \x1b[36mmemory: 40.10GiB(50.00%)  \x1b[34mtps: {rate:,}  "
            "\x1b[36mtflops: 51.20  \x1b[35mmfu: 41.20%\x1b[39m"
        )
    return "\n".join(lines) + "\n"


def posted(
    times: Sequence[float] = (9000, 200, 110, 101, 99, 100),
    *,
    start: int = 1,
    batches: Mapping[int, int] | None = None,
    skipped: Sequence[int] = (),
    line: str = "elapsed time per iteration (ms): {:.1f} |",
) -> str:
    """Iteration lines alone, without times of day, as Megatron-LM printed them until 2023. start: the number of
    the first. batches: samples of those that have no 16. skipped: those without an update. line: how the time is
    said.
    """
    return "".join(
        f" iteration {number:8d}/     100 | consumed samples: {16 * number:12d} | {line.format(time)} "
        f"learning rate: 1.500E-04 | global batch size: {(batches or {}).get(number, 16):5d} | loss scale: 1.0 | "
        f"number of skipped iterations: {int(number in skipped):3d} | number of nan iterations:   0 |\n"
        for number, time in enumerate(times, start)
    )
