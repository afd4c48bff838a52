"""Runs whose measured times the suite itself simulated, with constants of our own."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.measurement import Predictor
from pipebench.bench.accuracy.run import Run
from pipebench.bench.services import HostServices
from pipebench.domain.tuning import Tuning
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import run

DEVICE, FRAMEWORK = "A100-SXM4-80GB", "megatron-deepspeed"


def simulated_runs(host: Host, runs: Sequence[Run], constants: Mapping[str, float]) -> list[Run]:
    """The runs, each as long as it is with these constants."""
    tuning = Tuning(device=DEVICE, framework=FRAMEWORK, constants=dict(constants))
    predictor = Predictor(HostServices(host))
    return [
        replace(each, iter_s=predictor.predict(replace(express(each), tuning=tuning)).simulated_s) for each in runs
    ]


def layouts(hidden: int = 1024, layers: int = 4, **changes: str) -> list[Run]:
    """Six layouts of a model of one shape on eight devices."""
    listed = [(1, 2, 4, 1), (2, 2, 2, 1), (4, 2, 1, 4), (8, 1, 1, 8), (1, 1, 8, 2), (2, 4, 1, 2)]
    sizes = {"hidden": str(hidden), "layers": str(layers), "heads": str(hidden // 64)}
    return [
        run(
            id=f"{hidden}-{tp}-{pp}-{dp}-{mbs}",
            tp=str(tp),
            pp=str(pp),
            dp=str(dp),
            mbs=str(mbs),
            gbs="16",
            framework="Megatron-DeepSpeed",
            device=DEVICE,
            recompute="none",
            vocab="4096",
            **(sizes | changes),
        )
        for tp, pp, dp, mbs in listed
    ]
