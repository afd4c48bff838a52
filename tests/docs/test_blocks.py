"""Every code block of every page runs, and what is shown as output is what was printed."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import CommandLine
from tests.docs.pages import DOCS, Block, blocks, written_pages
from tests.nightly import mostly_at_night
from tests.testing.generated import install_generated

PAGES = {str(page.relative_to(DOCS.parent)): page for page in written_pages()}
LANGUAGES = {"python", "sh", "text", "toml"}
SEARCH = re.compile(r" \d[\d.]*( \| \d[\d.]*)? (ms|us|s)( \d[\d,]*)?$")
ARRAY = re.compile(r"#SBATCH --array=(\d+)-(\d+)")
COLUMNS = "120"
"""Of the terminal in which the pages were made."""


class Reader:
    """Someone who does what a page says, in a folder of his own."""

    def __init__(self, pipebench: CommandLine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._pipebench, self._folder, self._monkeypatch = pipebench, folder, monkeypatch
        self._names: dict[str, Any] = {}
        self._printed = ""

    def follow(self, block: Block) -> None:
        if block.file is not None:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "python" and block.file is None:
            exec(compile(block.text, "block", "exec"), self._names)
        elif block.language == "python":
            compile(block.text, block.file or "", "exec")
        elif block.language == "sh":
            self._printed = "".join(self._script(block.text.splitlines()))
        elif block.language == "text":
            shown = {plain(line) for line in self._printed.splitlines()}
            for line in block.text.splitlines():
                assert any(each.startswith(plain(with_this_python(line))) for each in shown), (
                    f"not printed: {line}\n{self._printed}"
                )

    def _script(self, lines: list[str]) -> Iterator[str]:
        """What the commands of a block print. A job script of Slurm runs once for each task of its array."""
        commands = [line for line in lines if not line.startswith("#")]
        array = next((found for line in lines if (found := ARRAY.fullmatch(line))), None)
        if array is None:
            yield from map(self._run, commands)
            return
        first, last = int(array[1]), int(array[2])
        for task in range(first, last + 1):
            said = {"ID": task, "COUNT": last - first + 1, "MIN": first, "MAX": last, "STEP": 1}
            with self._monkeypatch.context() as patch:
                for name, value in said.items():
                    patch.setenv(f"SLURM_ARRAY_TASK_{name}", str(value))
                yield from map(self._run, commands)

    def _run(self, line: str) -> str:
        command, _, remark = line.partition("  # exits ")
        program, *arguments = words(command)
        if program == "pip":
            self._install(self._folder / arguments[-1].partition("[")[0])
            return ""
        if program == "pytest":
            return self._pytest(arguments)
        if [program, *arguments[:2]] == ["python", "-m", "pytest"]:
            return self._pytest(arguments[2:])
        assert program == "pipebench", line
        done = self._pipebench(*arguments)
        assert done.code == int(remark or 0), done.out + done.err
        return done.out

    def _install(self, package: Path) -> None:
        for path in install_generated(package, self._folder / "installed"):
            self._monkeypatch.syspath_prepend(path)

    def _pytest(self, arguments: list[str]) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        environment = {"PYTHONPATH": ":".join(entry for entry in sys.path if entry), "PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=240)
        assert done.returncode == 0, done.stdout
        return done.stdout


def words(command: str) -> list[str]:
    """As a shell splits them; `python` in a cmd: is this one."""
    return [with_this_python(word.strip("\"'")) for word in re.findall(r"\"[^\"]*\"|'[^']*'|\S+", command)]


def with_this_python(text: str) -> str:
    """The text with this Python as that of its commands."""
    return text.replace("cmd:python ", f"cmd:{sys.executable} ")


def plain(line: str) -> str:
    """Words, single spaces between them. Search times, the last figures of a line before its notes, are hidden:
    they differ from run to run.
    """
    return SEARCH.sub(" TIME", " ".join(line.split()))


LONG = {
    "docs/explanation/accuracy.md",
    "docs/explanation/placements.md",
    "docs/explanation/trials.md",
    "docs/how-to/accuracy.md",
    "docs/how-to/certify.md",
    "docs/how-to/compare.md",
    "docs/how-to/publish-a-plugin.md",
    "docs/how-to/slurm.md",
    "docs/how-to/track.md",
    "docs/how-to/your-model-and-cluster.md",
}
"""Pages whose commands take long and are in other tests as well."""


@pytest.mark.parametrize("name", mostly_at_night(PAGES, PAGES.keys() - LONG))
def test_every_block_runs(
    name: str, pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "<!-- needs torch -->" in PAGES[name].read_text():
        pytest.importorskip("torch", reason="needs the torch extra")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    reader = Reader(pipebench, tmp_path, monkeypatch)
    try:
        for block in blocks(PAGES[name]):
            assert block.language in LANGUAGES, f"{name}: a block of language {block.language!r} is run by nobody"
            reader.follow(block)
        drawn = require_current_pictures(PAGES[name], tmp_path)
        assert len(drawn) == (2 if name == "docs/how-to/pictures.md" else 0)
    finally:
        forget_modules(tmp_path)


def require_current_pictures(page: Path, folder: Path) -> list[str]:
    """Those pictures of a page that its commands drew in the folder; they are equal to those that it shows."""
    shown = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    drawn = [picture for picture in shown if (folder / Path(picture).name).is_file()]
    for picture in drawn:
        current = (folder / Path(picture).name).read_text()
        assert (page.parent / picture).read_text() == current, f"{picture} is not what its command draws"
    return drawn


def forget_modules(folder: Path) -> None:
    """Modules of packages that a page installed: the next page has its own."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def test_a_block_that_fails_is_noticed(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(pipebench, tmp_path, monkeypatch)
    with pytest.raises(NameError):
        reader.follow(Block("python", "print(no_such_name)\n"))
    with pytest.raises(AssertionError, match="no command"):
        reader.follow(Block("sh", "pipebench no-such-command\n"))
    reader.follow(Block("sh", "pipebench list executors\n"))
    reader.follow(Block("text", "simulate\n"))
    with pytest.raises(AssertionError, match="not printed"):
        reader.follow(Block("text", "imagine\n"))


@pytest.mark.parametrize(
    ("page", "file", "most"),
    [("tutorial/first-planner.md", "first.py", 60), ("tutorial/first-executor.md", "executor.py", 70)],
)
def test_the_tutorials_are_as_short_as_they_say(page: str, file: str, most: int) -> None:
    (block,) = [each for each in blocks(PAGES[f"docs/{page}"]) if (each.file or "").endswith(file)]
    lines = [line for line in block.text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= most - 10
