"""What the shell offers when a user presses Tab, asked as a shell asks it."""

from pathlib import Path

import pytest
from click.shell_completion import BashComplete, CompletionItem

from pipebench.cli import completion
from pipebench.cli.completion import last_name
from pipebench.cli.groups import Invocation
from pipebench.cli.main import main
from tests.cli.command_line import CommandLine
from tests.hooks.distributions import install


def offered(*words: str) -> list[CompletionItem]:
    """What is offered for the last of these words."""
    *before, incomplete = words
    complete = BashComplete(main, {"obj": Invocation(())}, "pipebench", "_PIPEBENCH_COMPLETE")
    return complete.get_completions(before, incomplete)


def values(*words: str) -> list[str]:
    """The words that are offered in place of the last of these."""
    return [item.value for item in offered(*words)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["gloss"], ["glossary"]),
        (["track", "rec"], ["record"]),
        (["compare", "--planners", "graphp"], ["graphpipe"]),
        (["compare", "--planners", "madpipe,graphp"], ["madpipe,graphpipe"]),
        (["compare", "--planners", "piper[states=linear,x=1],graphp"], ["piper[states=linear,x=1],graphpipe"]),
        (["compare", "--schedulers", "gpipe,zb-"], ["gpipe,zb-h1", "gpipe,zb-v"]),
        (["compare", "--executors", "simu"], ["simulate"]),
        (["compare", "--suite", "quic"], ["quick"]),
        (["compare", "-p", "resnet101,resnet50"], ["resnet101,resnet50", "resnet101,resnet50-cpu"]),
        (["compare", "--models", "tiny-m"], ["tiny-mmt"]),
        (["compare", "--cluster", "summ"], ["summit"]),
        (["compare", "--profiler", "analy"], ["analytic"]),
        (["compare", "--link-mode", "f"], ["full"]),
        (["plan", "graphp"], ["graphpipe"]),
        (["plan", "best"], ["best"]),
        (["plan", "best", "--scheduler", "gp"], ["gpipe"]),
        (["draw", "gpipe,chim"], ["gpipe,chimera"]),
        (["list", "prof"], ["profilers", "profiles"]),
        (["reproduce", "madpipe/fig"], ["madpipe/fig6", "madpipe/fig7", "madpipe/fig8"]),
        (["info", "interl"], ["interleaved-1f1b"]),
        (["glossary", "class"], ["class gap"]),
        (["schema", "sui"], ["suite"]),
        (["track", "record", "--planners", "madpipe,graphp"], ["madpipe,graphpipe"]),
        (["plugin", "check", "graphp"], ["graphpipe", *(f"graphpipe/{name}" for name in ("a3", "table1"))]),
    ],
    ids=lambda each: f"{each[0]} {each[-1]}",
)
def test_names_are_offered(words: list[str], found: list[str]) -> None:
    assert set(found) <= set(values(*words))
    assert all(value.startswith(words[-1]) for value in values(*words))


def test_a_name_stands_once_in_a_list() -> None:
    assert "madpipe,madpipe" not in values("compare", "--planners", "madpipe,m")
    assert "madpipe,mcmc" in values("compare", "--planners", "madpipe,m")


def test_a_name_comes_with_its_summary() -> None:
    (item,) = offered("info", "contiguous-ex")
    assert "contiguous plan" in (item.help or "")


@pytest.mark.parametrize(
    "words",
    [
        ["show", "resu"],
        ["validate", "p"],
        ["export", "pl"],
        ["execute", "./p"],
        ["diff", "a.json", "b"],
        ["attach", "row.json", "trace"],
        ["compare", "--plans", "p"],
        ["compare", "--planners", "./mi"],
        ["compare", "--cluster", "./rack"],
        ["compare", "--html", "pa"],
    ],
    ids=" ".join,
)
def test_files_are_left_to_the_shell(words: list[str]) -> None:
    (item,) = offered(*words)
    assert (item.type, item.value) == ("file", words[-1])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("", "")),
        ("a", ("", "a")),
        ("a,", ("a,", "")),
        ("a[x=1,y=2],b", ("a[x=1,y=2],", "b")),
        ("a,b[x=1,", ("a,", "b[x=1,")),
    ],
)
def test_the_last_name_of_a_list(text: str, parts: tuple[str, str]) -> None:
    assert last_name(text) == parts


def ask(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch, line: str) -> tuple[int, list[str], str]:
    """Exit code, lines and stderr of what bash runs at a Tab."""
    monkeypatch.setenv("_PIPEBENCH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    done = pipebench()
    return done.code, done.out.splitlines(), done.err


def test_the_command_answers_the_shell(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(pipebench, monkeypatch, "pipebench compare --planners madpipe,graphp")
    assert answer == (0, ["plain,madpipe,graphpipe"], "")


@pytest.mark.parametrize("line", ["pipebench no-such-command x", "pipebench compare --no-such x", "pipebench"])
def test_nothing_is_said_of_a_line_that_is_wrong(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    code, _, err = ask(pipebench, monkeypatch, line)
    assert (code, err) == (0, "")


def test_trouble_with_plugins_is_not_said(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no host")

    monkeypatch.setattr(completion, "_host", broken)
    assert ask(pipebench, monkeypatch, "pipebench info mad") == (0, [""], "")


def test_a_plugin_that_raises_is_not_spoken_of(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "raising-plugin", "print('hello')\nraise RuntimeError('no licence')")
    assert ask(pipebench, monkeypatch, "pipebench plan graphp") == (0, ["plain,graphpipe"], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_each_shell_gives_its_script(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setattr(BashComplete, "_check_version", staticmethod(lambda: None))
    monkeypatch.setenv("_PIPEBENCH_COMPLETE", f"{shell}_source")
    done = pipebench()
    assert done.code == 0
    assert "pipebench" in done.out
    assert f"_PIPEBENCH_COMPLETE={shell}_complete" in done.out
