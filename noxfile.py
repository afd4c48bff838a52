"""The developer's sessions: `nox -s tests`, `nox -s fast`, `nox -s lint types layers docs`, `nox -s site`,
`nox -s benchmarks`, `nox -s fuzz`, `nox -s nightly`.

CI runs the same sessions in the environment that it has made, with `nox --no-venv`.
"""

import os
import tempfile
from pathlib import Path

import nox

nox.options.sessions = ["fast", "lint", "types", "layers"]
nox.options.reuse_existing_virtualenvs = True

ROOT = Path(__file__).parent
INSTALL = ("-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[test]")
FAST = (
    "tests/domain",
    "tests/documents",
    "tests/costs",
    "tests/check",
    "tests/bounds",
    "tests/simulation",
    "tests/hooks",
)
"""What runs in under a minute on two cores: the values, the model that scores, and the plugin host."""


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those that need torch: some thirteen minutes on two cores."""
    session.install(*INSTALL)
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *session.posargs)


@nox.session
def fast(session: nox.Session) -> None:
    """The tests to run after each change: under a minute."""
    session.install(*INSTALL)
    session.run("pytest", "-n", "auto", "--dist", "worksteal", *FAST, *session.posargs)


@nox.session
def torch(session: nox.Session) -> None:
    """The tests that need the torch extra: three at a time on two cores, as they wait for processes and limits."""
    session.install("-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[test,torch]")
    session.run("python", "-c", "import torch", silent=True)
    session.run(
        "pytest",
        "-n",
        str((os.cpu_count() or 1) * 3 // 2),
        "--dist",
        "worksteal",
        "tests/testing/test_shipped.py::test_the_kit_finds_no_fault_in_torch",
        "tests/plugins/torch",
        "tests/attacks/test_trust.py::test_a_module_beside_the_user_is_named_as_a_file",
        "tests/docs/test_blocks.py::test_every_block_runs[docs/how-to/real-devices.md]",
        *session.posargs,
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    session.install(*INSTALL)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strict."""
    session.install(*INSTALL)
    session.run("mypy")


@nox.session
def layers(session: nox.Session) -> None:
    """Data flows one way, and no plugin imports another."""
    session.install(*INSTALL)
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """The reference pages are those that the code makes, and every block of every page runs."""
    session.install(*INSTALL)
    session.run("pytest", "-n", "auto", "tests/docs", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """The documentation site, in build/site.

    A link, an anchor or a formula that is wrong fails, and so does a page that has no place in docs/index.rst.
    """
    session.install("-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[docs]")
    session.run("sphinx-build", "-E", "-W", "--keep-going", "-d", "build/site-trees", "docs", "build/site")


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Speed of kernels and searches, as ratios within one run."""
    session.install(*INSTALL)
    session.run("pytest", "tests/benchmarks", "--benchmark-enable", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Every reader and every command that takes a file, on 10^5 wrong inputs: `nox -s fuzz -- 5000` for fewer."""
    session.install(*INSTALL)
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Wide sweeps of what other tests hold in one place, properties on new examples, the kit on torch."""
    session.install("-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[test,torch]")
    run = ("pytest", "-n", "auto", "--dist", "worksteal", "--hypothesis-profile=night")
    session.run(*run, "-m", "nightly or hypothesis", *session.posargs)


@nox.session
def plugin(session: nox.Session) -> None:
    """A new plugin, made, installed, tested and compared as its author would."""
    session.install(*INSTALL)
    with tempfile.TemporaryDirectory() as folder, session.chdir(folder):
        session.run("pipebench", "plugin", "new", "mine")
        session.run("python", "-m", "pip", "install", "--quiet", "./mine")
        session.run("pytest", "mine")
        session.run("pipebench", "compare", "--planners", "mine,madpipe", "--profile", "resnet50")
        session.run("pipebench", "plugin", "doctor")
