"""The programs that authors of planners published, as data: how each is run, and what it prints.

Nothing here is their code. A planner's descriptor holds one `Original`; `pipebench originals` runs it from the
user's own checkout.
"""

from typing import Literal

from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, require


class OriginalCase(Value, frozen=True, kw_only=True):
    """Problems that the original and the suite's planner both search, with the same options.

    label: what is asked beside the input; empty where there is nothing to say.
    inputs: a pattern of files in the checkout; each is a problem that both read.
    model: where there are no inputs: the model of the suite that the original has built in.
    arguments: of the original; {input} is the path of the file, {devices}, {memory}, {mini_batch} and {bandwidth}
    are figures of the case.
    stdin: whether it reads the input there.
    options: of the planner, as between brackets on the command line.
    mode: the regime in which the planner plans.
    devices: how many, or the key of the input's JSON that says it; so are all figures.
    hosts: devices of the type `cpu` behind the others.
    memory_bytes: of each device. None: what the file's reader finds, else no limit.
    bandwidth_bytes_s: of the links. None: what the file's reader finds.
    mini_batch: samples. None: the profiled ones.
    may_differ: why both may be right and yet differ, as heuristics do; empty where they must be equal.
    """

    label: str = ""
    inputs: str = ""
    model: str = ""
    arguments: tuple[str, ...] = ()
    stdin: bool = False
    options: str = ""
    mode: RegimeMode = "sync"
    devices: int | str
    hosts: int | str = 0
    memory_bytes: float | str | None = None
    bandwidth_bytes_s: float | str | None = None
    mini_batch: int | str | None = None
    may_differ: str = ""

    def __post_init__(self) -> None:
        require((self.inputs == "") != (self.model == ""), "a case has inputs or a model, one of them")
        require(not self.inputs.startswith("/") and ".." not in self.inputs, "inputs lie in the checkout")


class Original(Value, frozen=True, kw_only=True):
    """The published program of a planner's authors, as data: `pipebench originals` runs it from a user's checkout.

    system: its short name, as `--system` takes it.
    repository: owner and name on GitHub.
    commit: with which this was tried.
    language: `python` runs the source, `c++` compiles it.
    source: the file of the checkout that is run or compiled.
    files: others that must be there.
    main: C++: what stands behind the source in place of its own `main`, where that runs no single problem.
    flags: Python: of the interpreter.
    path: Python: folders of the checkout in which it finds modules.
    needs: Python: what the interpreter must have installed.
    start: Python: arguments with which the program imports all and ends; the CPU time of that is taken off.
    answer: text behind which it prints the value of its best plan.
    no_plan: text that it prints where there is none.
    digits: significant digits that it prints of the value.
    cases: what both search.
    """

    system: str
    repository: str
    commit: str
    language: Literal["python", "c++"]
    source: str
    files: tuple[str, ...] = ()
    main: str = ""
    flags: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    needs: str = ""
    start: tuple[str, ...] = ()
    answer: str
    no_plan: str = ""
    digits: int = 12
    cases: tuple[OriginalCase, ...]

    def __post_init__(self) -> None:
        require(self.answer != "", "answer is empty: it must be the text before the value")
        require(1 <= self.digits <= 17, f"digits is {self.digits}, a float has 1 to 17")
        for name in (self.source, *self.files, *self.path):
            require(not name.startswith("/") and ".." not in name.split("/"), f"{name!r} is not in the checkout")
