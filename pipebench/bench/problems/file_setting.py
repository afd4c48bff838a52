"""What a foreign profile says of its devices and mini-batch, where nobody says otherwise."""

from dataclasses import replace

from pipebench.bench.problems.wanted import Wanted
from pipebench.defaults import CLUSTER
from pipebench.domain.profile import Profile, Setting
from pipebench.domain.units import readable_bytes


def with_file_setting(wanted: Wanted, profile: Profile) -> tuple[Wanted, tuple[str, ...]]:
    """The workload with the file's memory and bandwidth (on the default cluster) and mini-batch filled in.

    The lines say what was taken from the file, and what its reader assumed. None for a profile without a setting.
    """
    setting = profile.provenance.setting or Setting()
    if setting == Setting():
        return wanted, ()
    taken: dict[str, str | int] = {}
    said: list[str] = []
    if wanted.cluster == CLUSTER:
        if wanted.memory is None and setting.memory_bytes is not None:
            taken["memory"] = f"{setting.memory_bytes}B"
            said.append(f"memory {readable_bytes(setting.memory_bytes)}")
        if wanted.bandwidth is None and setting.bandwidth_bytes_s is not None:
            taken["bandwidth"] = f"{setting.bandwidth_bytes_s}B/s"
            said.append(f"bandwidth {readable_bytes(round(setting.bandwidth_bytes_s))}/s")
    if wanted.samples is None and setting.mini_batch is not None:
        taken["mini_batch"] = setting.mini_batch
        said.append(f"mini-batch {setting.mini_batch}")
    lines = [f"{profile.name}: {note}" for note in profile.provenance.notes]
    if taken:
        lines.append(f"{profile.name}: {', '.join(said)}, as its file says")
    return replace(wanted, **taken), tuple(lines)  # type: ignore[arg-type]
