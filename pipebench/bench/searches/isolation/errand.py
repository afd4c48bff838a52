"""What a child process of the fork server is to do, as a value that crosses to it."""

from pipebench.bench.searches.request import SearchRequest
from pipebench.domain.value import Value


class Errand(Value, frozen=True, kw_only=True):
    """A search with its surroundings: folder, environment, and memory beyond what the server has.

    work: "module:function" to call instead, as function(host, given, send); what it sends are frames of its own.
    kernels: whether the server imports what searches need before it forks the child.
    index: slot and name of each component to the entry point that provides it; empty for the server's own.
    """

    request: SearchRequest | None = None
    work: str = ""
    given: bytes = b""
    kernels: bool = True
    index: dict[str, dict[str, str]] = {}
    folder: str
    environment: dict[str, str]
    memory_bytes: int
