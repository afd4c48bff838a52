"""Timelines to a file; its ending says as what."""

from collections.abc import Sequence
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.formats.files import write_file
from pipebench.report.gantt.chrome import chrome_trace
from pipebench.report.gantt.gantt import Gantt
from pipebench.report.gantt.svg import gantt_svg


def write_gantts(path: Path, gantts: Sequence[Gantt], title: str) -> None:
    """An .svg with all of them, or a .json of Chrome trace events of one.

    Raises PipebenchError for any other ending, several in one .json, or a file that cannot be written.
    """
    if path.suffix == ".svg":
        write_file(path, gantt_svg(gantts, title).encode())
    elif path.suffix != ".json":
        raise PipebenchError(f"cannot draw to {str(path)!r}", "end it in .svg or .json (Chrome trace)")
    elif len(gantts) != 1:
        raise PipebenchError(f"a Chrome trace holds one timeline, not {len(gantts)}", "draw them one by one")
    else:
        write_file(path, chrome_trace(gantts[0]).encode())
