"""What a search costs is what it is credited with: it hides nothing, remembers nothing, asks nobody else."""

from collections.abc import Iterator

from pipebench.testing.calls import Answer
from pipebench.testing.planners.questions import Interview
from pipebench.testing.planners.repeats import HIDDEN_S, Memory
from pipebench.testing.verdicts import Failed, first_failure

SHOWN = 3


def clocks(interview: Interview) -> None:
    """Clocks, and the functions that measure and judge a search, are after a call what they were before."""
    first_failure(
        f"{answer.name}: it replaced {_listed(answer.replaced)}"
        for answer in _everything(interview)
        if answer.replaced
    )


def files(interview: Interview) -> None:
    """It leaves no file behind, writes in no folder of others, and no other process learns of a search."""

    def wrong() -> Iterator[str]:
        for answer in _everything(interview):
            if answer.written:
                yield f"{answer.name}: it writes {_listed(answer.written)}; another search could read that"

    first_failure(wrong())
    _forgets(interview, "elsewhere", "in another process")


def memo(interview: Interview) -> None:
    """The same search costs the same when it is asked again: nothing of it is kept for the next."""
    _forgets(interview, "process", "in the same process")


def offload(interview: Interview) -> None:
    """All work is done by its process, or by children that it waits for; it asks no server."""

    def wrong() -> Iterator[str]:
        for answer in _everything(interview):
            if answer.reached:
                yield f"{answer.name}: it connected to {_listed(answer.reached)}"
            if answer.unreaped:
                yield f"{answer.name}: {answer.unreaped} of its processes ended and it did not wait for them"

    first_failure(wrong())
    hidden_s = interview.repeats.hidden_s
    if hidden_s > HIDDEN_S:
        raise Failed(
            f"large: {hidden_s:.2f} s of CPU time were spent by processes that it did not wait for, "
            "or after its answer"
        )


def _forgets(interview: Interview, memory: Memory, where: str) -> None:
    found = interview.repeats.confirmed(memory)
    if found is not None:
        raise Failed(
            f"large: the first search takes {found.first_s:.3f} s of CPU time, "
            f"the same again {found.again_s:.3f} s: it is remembered {where}"
        )


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def _everything(interview: Interview) -> Iterator[Answer]:
    yield from (answer for _, answer in (*interview.first, *interview.second))
