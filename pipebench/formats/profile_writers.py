"""Write a profile to a file of any format that can be written: chosen by its name or by the name of the file."""

from collections.abc import Callable
from pathlib import Path

from pipebench.domain.document import encode
from pipebench.domain.errors import PipebenchError, nearest, unknown
from pipebench.domain.profile import Profile
from pipebench.formats import layer_table_writer, pipedream_writer, piper_writer, tarnawski_writer
from pipebench.formats.profile_format import Written


def _native(profile: Profile) -> Written:
    return Written(encode("profile", profile) + b"\n")


WRITERS: dict[str, tuple[str, Callable[[Profile], Written]]] = {
    "piper": (".piper.json", piper_writer.write),
    "tarnawski": (".tarnawski.json", tarnawski_writer.write),
    "layers-json": (".layers.json", layer_table_writer.write_json),
    "layers-csv": (".csv", layer_table_writer.write_csv),
    "pipedream": (".txt", pipedream_writer.write),
    "pipebench": (".json", _native),
}
"""By name of the format: the end of a file name that means it, and its writer."""


def written(profile: Profile, path: str, name: str | None = None) -> Written:
    """The file of a profile. name: of the format; None: told by the end of the path.

    Raises PipebenchError: an unknown format, an end that means none, a profile that the format cannot carry.
    """
    if name is not None:
        if name not in WRITERS:
            raise unknown("format to write", name, WRITERS)
        return WRITERS[name][1](profile)
    for suffix, write in WRITERS.values():
        if path.endswith(suffix):
            return write(profile)
    known = ", ".join(f"{suffix} ({format_name})" for format_name, (suffix, _) in WRITERS.items())
    ends = [suffix for suffix, _ in WRITERS.values()]
    raise PipebenchError(
        f"the name {Path(path).name!r} does not say which format to write",
        f"end it in {known}, or say --to; {nearest(Path(path).suffix, ends)}",
    )
