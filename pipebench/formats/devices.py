"""The table of device types: their facts as the vendors print them, effective rates apart."""

import math
from functools import lru_cache
from importlib.resources import files

from msgspec.structs import replace

from pipebench.domain.cluster import Cluster, DeviceType
from pipebench.domain.errors import unknown
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value, require
from pipebench.formats.typed_text import parse_toml


class DeviceFacts(Value, frozen=True, kw_only=True):
    """One device type as a table says it. GB = 10^9 bytes; link rates one way; effective where known.

    process_gib: what a process sees of the memory, 2^30 bytes; None where nobody said.
    cards: what the driver calls it (nvidia-smi -L, torch.cuda.get_device_name).
    build: the word that tells it from others of its name; empty for the usual one.
    """

    build: str = ""
    memory_gb: float
    process_gib: float | None = None
    cards: tuple[str, ...] = ()
    peak_tflops: dict[Precision, float] = {}
    memory_bandwidth_gb_s: float | None = None
    nvlink_gb_s: float | None = None
    effective_nvlink_gb_s: float | None = None
    pcie_gb_s: float | None = None
    effective_pcie_gb_s: float | None = None
    sources: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            number = getattr(self, name)
            if isinstance(number, float):
                require_rate(name, number)
        for precision, rate in self.peak_tflops.items():
            require_rate(f"peak_tflops.{precision}", rate)

    @property
    def memory_bytes(self) -> int:
        """As the vendor prints it."""
        return round(self.memory_gb * 1e9)

    def device_type(self, name: str) -> DeviceType:
        """The device type with these facts, in bytes and FLOP/s."""
        peers = (self.effective_nvlink_gb_s, self.nvlink_gb_s, self.effective_pcie_gb_s, self.pcie_gb_s)
        return DeviceType(
            name=name,
            memory_bytes=self.memory_bytes,
            peak_flops={precision: rate * 1e12 for precision, rate in self.peak_tflops.items()},
            memory_bandwidth_bytes_s=(self.memory_bandwidth_gb_s or 0.0) * 1e9,
            peer_bandwidth_bytes_s=next((rate for rate in peers if rate is not None), 0.0) * 1e9,
            source=", ".join(self.sources),
        )


class DeviceTable(Value, frozen=True, kw_only=True):
    """devices.toml."""

    sources: dict[str, str]
    devices: dict[str, DeviceFacts]


def require_rate(name: str, number: float) -> None:
    """Raise InvalidValue unless the number is finite and above zero."""
    require(math.isfinite(number) and number > 0, f"{name} is {number:g}, it must be finite and above zero")


@lru_cache(maxsize=1)
def device_table() -> DeviceTable:
    """The devices that ship."""
    data = files("pipebench.formats").joinpath("presets/devices.toml").read_bytes()
    return parse_toml(data, DeviceTable, "devices.toml")


def device_names() -> list[str]:
    """Names of the devices that ship."""
    return sorted(device_table().devices)


def load_device(name: str) -> DeviceType:
    """A device type by name. Raises PipebenchError with the nearest name."""
    facts = device_table().devices.get(name)
    if facts is None:
        raise unknown("device type", name, device_names())
    return facts.device_type(name)


def process_memory_bytes(device: DeviceType) -> int:
    """What a process sees of a device's memory: as torch says it, where the device has the memory of the table."""
    facts = device_table().devices.get(device.name)
    if facts is None or facts.process_gib is None or device.memory_bytes != facts.memory_bytes:
        return device.memory_bytes
    return round(facts.process_gib * 2**30)


def with_process_memory(cluster: Cluster) -> Cluster:
    """The cluster whose devices have the memory that a process sees."""
    types = tuple(replace(each, memory_bytes=process_memory_bytes(each)) for each in cluster.types)
    return replace(cluster, types=types)


def device_of_card(card: str) -> str:
    """The device type that a driver calls so; the card's own name where the table has none."""
    return next((name for name, facts in device_table().devices.items() if card in facts.cards), card)
