"""What an operator does in one direction on one device, and how long that takes."""

from dataclasses import dataclass, field

from pipebench_analytic.speeds import Speeds

LAUNCHES_PER_REDUCE = 2


@dataclass
class Pass:
    """Kernels of one direction of an operator on one device, and what it exchanges with the other ranks.

    kernels: seconds of each. reduces: bytes of each all-reduce. host_s: of the host, besides launches.
    exchanges: seconds of each all-to-all of tokens, and of each exchange of keys and values beyond what it runs
    beside; the device waits for all of them.
    """

    kernels: list[float] = field(default_factory=list)
    reduces: list[float] = field(default_factory=list)
    host_s: float = 0.0
    exchanges: list[float] = field(default_factory=list)

    def seconds(self, speeds: Speeds, ways: int) -> float:
        """What is longer: the device's work with its all-reduces, or the host's launches."""
        work_s = sum(self.kernels)
        device_s = work_s + self._waited_s(speeds, ways, work_s) + sum(self.exchanges)
        launches = len(self.kernels) + LAUNCHES_PER_REDUCE * len(self.reduces) + len(self.exchanges)
        apart_s = len(self.reduces) * (ways - 1) * speeds.skew_s
        return max(device_s, launches * speeds.launch_s + self.host_s) + apart_s

    def _waited_s(self, speeds: Speeds, ways: int, work_s: float) -> float:
        """What of the all-reduces the device waits for.

        Where products run beside them, each rank's part is worked on while the next one comes: the first part of
        all is waited for, and what takes longer than the work (Wang et al. 2023, Overlap Communication with
        Dependent Computation via Decomposition, section 3).
        """
        sent_s = sum(speeds.all_reduce_s(size, ways) for size in self.reduces)
        return max(sent_s / ways, sent_s - work_s) if speeds.overlaps else sent_s

    def collective_s(self, speeds: Speeds, ways: int) -> float:
        """What all-reduces and exchanges add to `seconds`; the host's launches may hide a part of them."""
        return self.seconds(speeds, ways) - Pass(self.kernels, [], self.host_s).seconds(speeds, ways)

    def __add__(self, other: "Pass") -> "Pass":
        return Pass(
            self.kernels + other.kernels,
            self.reduces + other.reduces,
            self.host_s + other.host_s,
            self.exchanges + other.exchanges,
        )


@dataclass
class OperatorPasses:
    """forward; inputs and weights: the two parts of the backward; selective: of the forward, what selective
    checkpointing runs again; again: what the plain backward repeats of it.
    """

    forward: Pass
    inputs: Pass
    weights: Pass
    selective: Pass = field(default_factory=Pass)
    again: Pass = field(default_factory=Pass)

    @property
    def backward(self) -> Pass:
        """Both parts, and what is run again."""
        return self.again + self.inputs + self.weights
