"""The cells of a pipeline schedule of torch.distributed.pipelining (compute_only CSV): strict reading and writing.

Row i is rank i, cells in order, an empty cell is a wait. A cell is `<stage><op><micro-batch>`: F, B (full
backward), I (input gradient), W (weight gradient); `<stage>REDUCE_GRAD`; `(0F7;7B3)OVERLAP_F_B` runs two together.
torch's own reader takes a prefix of a cell and ignores what follows; this one refuses the cell.
"""

import re
from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError

MOST_CELLS = 1_000_000
MOST_RANKS = 2**16
_CELL = re.compile(r"(\d{1,6})(F|B|I|W)(\d{1,7})", re.ASCII)
_REDUCE = re.compile(r"(\d{1,6})REDUCE_GRAD\d{0,7}", re.ASCII)
_PAIR = re.compile(r"\((\d{1,6}[FBIW]\d{1,7});(\d{1,6}[FBIW]\d{1,7})\)OVERLAP_F_B", re.ASCII)
_COMMUNICATION = re.compile(r"\d+(SEND_F|RECV_F|SEND_B|RECV_B|UNSHARD|RESHARD)\d*", re.ASCII)
SYNTAX = "write <stage>F|B|I|W<micro-batch>, such as 0F3, <stage>REDUCE_GRAD or (0F7;7B3)OVERLAP_F_B"


@dataclass(frozen=True, slots=True)
class Task:
    """kind: F, B, I, W or R (all gradients of the stage are reduced; micro-batch 0)."""

    stage: int
    kind: str
    micro_batch: int

    def __str__(self) -> str:
        if self.kind == "R":
            return f"{self.stage}REDUCE_GRAD"
        return f"{self.stage}{self.kind}{self.micro_batch}"


@dataclass(frozen=True, slots=True)
class Step:
    """What one cell runs; column: its place in the row, from 0."""

    column: int
    tasks: tuple[Task, ...]


Ranks = tuple[tuple[Step, ...], ...]


def read_cells(data: bytes, source: str) -> Ranks:
    """The steps of each rank.

    Raises PipebenchError with row and column: a byte-order mark, other than ASCII, over MOST_CELLS cells, a row
    without tasks, a cell that is none.
    """
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise PipebenchError(f"{source}: starts with a byte-order mark", "save it as plain ASCII without one")
    cells = data.count(b",") + data.count(b"\n") + 1
    if cells > MOST_CELLS:
        raise PipebenchError(f"{source}: about {cells} cells, at most {MOST_CELLS} are read")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise PipebenchError(f"{source}: byte {error.start} is not ASCII", SYNTAX) from None
    rows = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if len(rows) > MOST_RANKS:
        raise PipebenchError(f"{source}: {len(rows)} ranks, at most {MOST_RANKS} are read")
    ranks = tuple(
        tuple(
            Step(column, _tasks(cell, f"{source}: rank {rank}, step {column}"))
            for column, cell in enumerate(row.split(","))
            if cell
        )
        for rank, row in enumerate(rows)
    )
    for rank, steps in enumerate(ranks):
        if not steps:
            raise PipebenchError(
                f"{source}: rank {rank} has no tasks", "write one row for each rank, without a header"
            )
    return ranks


def write_cells(ranks: Ranks) -> bytes:
    """One row a rank, tasks close up, steps of two as OVERLAP_F_B."""
    return "".join(",".join(_text(step) for step in steps) + "\n" for steps in ranks).encode()


def _text(step: Step) -> str:
    inside = ";".join(map(str, step.tasks))
    return inside if len(step.tasks) == 1 else f"({inside})OVERLAP_F_B"


def _tasks(cell: str, where: str) -> tuple[Task, ...]:
    pair = _PAIR.fullmatch(cell)
    parts = pair.groups() if pair else (cell,)
    found = []
    for part in parts:
        plain, reduce = _CELL.fullmatch(part), _REDUCE.fullmatch(part)
        if plain:
            found.append(Task(int(plain[1]), plain[2], int(plain[3])))
        elif reduce:
            found.append(Task(int(reduce[1]), "R", 0))
        elif _COMMUNICATION.fullmatch(part):
            raise PipebenchError(
                f"{where}: {cell[:40]!r} is a communication",
                "give the compute_only file; communication follows from it",
            )
        else:
            raise PipebenchError(f"{where}: {cell[:40]!r} is no task", SYNTAX)
    return tuple(found)
