"""Tuning: the few constants of a device and a framework that measured runs of one's own can move.

CONSTANTS is their one list: what each stands for, what is taken where nobody calibrated, and the range in
which a calibration moves it. Of a framework the default is the framework's own.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.framework import Framework, Spread
from pipebench.domain.value import Value, require, require_name, short


class Reach(Value, frozen=True, kw_only=True):
    """What kernels reach of the rates of their device.

    stream_share: share of the memory bandwidth that a stream of elements reaches.
    batched_share: share of the peak rate that products of single heads reach.
    product_factor: on the time of a matrix product.
    """

    stream_share: float = 0.82
    batched_share: float = 0.3
    product_factor: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            number = getattr(self, name)
            require(0.0 < number <= 10.0, f"{name} is {short(number)}, it must be above 0 and at most 10")


USUAL_REACH = Reach()
"""Fitted to published iterations on A100 (docs/explanation/accuracy.md)."""


class Constant(Value, frozen=True, kw_only=True):
    """One constant that runs can move.

    owner: whose fact it is. low, high: the range in which it may move. default: None where the framework
    says it. meaning: in a line. linear: whether it is varied by differences, as 0 is among its values; others by
    ratios.
    """

    name: str
    owner: Literal["device", "framework"]
    low: float
    high: float
    default: float | None = None
    meaning: str
    linear: bool = False


CONSTANTS: Mapping[str, Constant] = {
    each.name: each
    for each in (
        Constant(
            name="stream_share",
            owner="device",
            low=0.7,
            high=0.95,
            default=USUAL_REACH.stream_share,
            meaning="share of the memory bandwidth that streams reach",
        ),
        Constant(
            name="batched_share",
            owner="device",
            low=0.2,
            high=0.6,
            default=USUAL_REACH.batched_share,
            meaning="share of the peak rate that products of single heads reach",
        ),
        Constant(
            name="product_factor",
            owner="device",
            low=0.9,
            high=2.0,
            default=USUAL_REACH.product_factor,
            meaning="factor on the time of matrix products",
        ),
        Constant(
            name="network_factor",
            owner="device",
            low=0.6,
            high=1.0,
            default=1.0,
            meaning="factor on the bandwidth of links between nodes",
        ),
        Constant(
            name="launch_us",
            owner="framework",
            low=5,
            high=80,
            meaning="of the host for each kernel, microseconds",
        ),
        Constant(
            name="checkpoint_us",
            owner="framework",
            low=10,
            high=2000,
            meaning="of the host to keep a layer's input, microseconds",
        ),
        Constant(
            name="rerun_us",
            owner="framework",
            low=10,
            high=2000,
            meaning="of the host to run a layer again, microseconds",
        ),
        Constant(
            name="skew_us",
            owner="framework",
            low=1,
            high=50,
            meaning="between the hosts of two ranks at an all-reduce, microseconds",
        ),
        Constant(
            name="loss_bytes", owner="framework", low=30, high=110, meaning="moved by the loss for each fp32 logit"
        ),
        Constant(
            name="reduce_overlap",
            owner="framework",
            low=0.0,
            high=1.0,
            meaning="share of the gradients' all-reduce that is hidden",
            linear=True,
        ),
    )
}
_US = "_us"


def usual_constants(framework: Framework) -> dict[str, float]:
    """The value of each constant where nothing is calibrated."""
    return {
        name: _of_framework(framework, name) if each.default is None else each.default
        for name, each in CONSTANTS.items()
    }


def _of_framework(framework: Framework, name: str) -> float:
    if name.endswith(_US):
        return float(getattr(framework, _field(name))) * 1e6
    return float(getattr(framework, name))


def _field(name: str) -> str:
    """The field of Framework: seconds there, microseconds here."""
    return f"{name.removesuffix(_US)}_s" if name.endswith(_US) else name


class Tuning(Value, frozen=True, kw_only=True):
    """Constants in place of the usual ones, for one device type under one framework.

    constants: by their name in CONSTANTS; those that are not there stay as they are. spread: of the runs that the
    constants were fitted to; None where too few of them were left out of a fit.
    """

    device: str
    framework: str
    constants: dict[str, float]
    spread: Spread | None = None

    def __post_init__(self) -> None:
        require_name("a device type", self.device)
        require_name("a framework", self.framework)
        for name, number in self.constants.items():
            known = CONSTANTS.get(name)
            require(
                known is not None,
                f"no constant {name[:40]!r} ({nearest(name[:40], CONSTANTS)})",
                f"constants.{name}",
            )
            assert known is not None
            require(
                known.low <= number <= known.high,
                f"{name} is {short(number)}, it must be from {known.low:g} to {known.high:g}",
                f"constants.{name}",
            )

    @property
    def reach(self) -> Reach:
        """The device's part."""
        return Reach(**{name: self.constants[name] for name in Reach.__struct_fields__ if name in self.constants})

    def framework_of(self, usual: Framework) -> Framework:
        """The framework with its constants replaced. Raises PipebenchError for another framework."""
        if usual.name != self.framework:
            raise PipebenchError(
                f"the calibration is of the framework {self.framework!r}, not of {usual.name!r}",
                f"give --framework {self.framework}, or leave out --calibration",
            )
        own = {name: value for name, value in self.constants.items() if CONSTANTS[name].owner == "framework"}
        return replace(
            usual, **{_field(name): value / 1e6 if name.endswith(_US) else value for name, value in own.items()}
        )

    def cluster_of(self, usual: Cluster) -> Cluster:
        """The cluster with the factor on its outermost links. Raises PipebenchError for other devices."""
        others = [each.name for each in usual.types if each.name != self.device]
        if others:
            raise PipebenchError(
                f"the calibration is of the device {self.device!r}, not of {others[0]!r}",
                "calibrate with runs on that device, or leave out --calibration",
            )
        factor = self.constants.get("network_factor", 1.0)
        if factor == 1.0 or len(usual.levels) == 1:
            return usual
        *inner, network = usual.levels
        shared = network.shared_bandwidth_bytes_s
        slower = replace(
            network,
            bandwidth_bytes_s=factor * network.bandwidth_bytes_s,
            shared_bandwidth_bytes_s=None if shared is None else factor * shared,
        )
        return replace(usual, levels=(*inner, slower))
