"""Defaults for devices and mini-batch, read from a foreign profile."""

from msgspec.structs import replace

from pipebench.defaults import CLUSTER
from pipebench.domain.profile import Profile, Setting
from pipebench.domain.units import readable_bytes
from pipebench.domain.workload import WorkloadSpec


def with_file_setting(spec: WorkloadSpec, profile: Profile) -> tuple[WorkloadSpec, tuple[str, ...]]:
    """The workload with the file's memory and bandwidth (on the default cluster) and mini-batch filled in.

    The lines say what was taken from the file, and what its reader assumed. None for a profile without a setting.
    """
    setting = profile.provenance.setting or Setting()
    if setting == Setting():
        return spec, ()
    taken: dict[str, str | int] = {}
    said: list[str] = []
    if spec.cluster == CLUSTER:
        if spec.memory is None and setting.memory_bytes is not None:
            taken["memory"] = f"{setting.memory_bytes}B"
            said.append(f"memory {readable_bytes(setting.memory_bytes)}")
        if spec.bandwidth is None and setting.bandwidth_bytes_s is not None:
            taken["bandwidth"] = f"{setting.bandwidth_bytes_s}B/s"
            said.append(f"bandwidth {readable_bytes(round(setting.bandwidth_bytes_s))}/s")
    if spec.samples is None and setting.mini_batch is not None:
        taken["mini_batch"] = setting.mini_batch
        said.append(f"mini-batch {setting.mini_batch}")
    lines = [f"{profile.name}: {note}" for note in profile.provenance.notes]
    if taken:
        lines.append(f"{profile.name}: {', '.join(said)}, as its file says")
    return replace(spec, **taken), tuple(lines)
