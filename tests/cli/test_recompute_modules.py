"""Modules that run again by name, as a user types it: memory by hand, flags, and what is refused."""

import json
from pathlib import Path

from tests.cli.command_line import CommandLine
from tests.cli.test_expert_parallelism import DEEPSEEK_LITE, TOKENS, deepseek_lite, pinned, state_bytes, written

MODULES = "moe_act+layernorm+mla_up_proj"
AGAIN = ("--profiler", f"analytic[recompute_modules={MODULES}]", "--recompute", "selective")


def test_memory_by_hand_and_flags(pipebench: CommandLine, tmp_path: Path) -> None:
    """DeepSeek-V2-Lite: 27 layers of 2,048, the first is dense; six of 64 experts of 1,408 and one of 2,816."""
    config, plan = written(tmp_path, DEEPSEEK_LITE), str(tmp_path / "plan.json")
    sharded = ("--optimizer-sharding", "zero1")
    done = pipebench(
        "plan", "layout", "--config", config, "--json", "-o", plan, *pinned(16, 8, 16, *sharded, *AGAIN)
    )
    assert done.code == 0, done.err
    alike, experts, kept, vocab = deepseek_lite()
    h, latent = 2048, 16 * (192 + 192 + 128) + 512 - 64  # queries, keys, values; what the product up read
    dense = 2 * (h + latent)
    routed = dense + 2 * (h + 6 * 1408)
    plain = state_bytes(alike, experts, 16, 2) + TOKENS * (kept + 4 * vocab) + 2**25
    peak = max(json.loads(done.out)["peak_memory_bytes"].values())
    # While a layer's backward runs, what ran again is there: that of one layer.
    assert peak == plain - TOKENS * (dense + 26 * routed) + TOKENS * routed

    block = pipebench(
        "plan",
        "layout",
        "--config",
        config,
        "-o",
        plan,
        "--export",
        "megatron",
        *pinned(16, 8, 16, *sharded, *AGAIN),
    )
    assert block.code == 0, block.err
    assert "--recompute-granularity selective --recompute-modules moe_act layernorm mla_up_proj\n" in block.out
    other = pipebench(
        "plan",
        "layout",
        "--config",
        config,
        "-o",
        plan,
        "--export",
        "torchtitan",
        *pinned(16, 8, 16, *sharded, *AGAIN),
    )
    assert other.code != 0


def test_the_framework_has_to_know_them(pipebench: CommandLine, tmp_path: Path) -> None:
    config = written(tmp_path, DEEPSEEK_LITE)
    for said, message in (
        (("--framework", "torchtitan"), "torchtitan runs no modules again by name"),
        ((), "counts with a framework (say --framework)"),
        (
            ("--framework", "megatron", "--profiler", "analytic[recompute_modules=moe_actt]"),
            "did you mean 'moe_act'",
        ),
    ):
        done = pipebench(
            "plan",
            "layout",
            "--config",
            config,
            "--seq",
            "4096",
            "--cluster",
            "dgx-h100",
            "-n",
            "16",
            *AGAIN,
            *said,
        )
        assert done.code == 2
        assert message in done.err
