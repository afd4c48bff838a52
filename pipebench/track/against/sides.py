"""Both sides of `track check --against`: the revision or version that was named, and what is here."""

import re
from dataclasses import dataclass
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.track.against.checkout import check_out, commit_of, copy_working_tree, described, repository
from pipebench.track.against.side import Side, install, project_name

VERSION = re.compile(r"v?\d+(\.\d+)*([abrc.+-]\w+)*")


@dataclass(frozen=True, slots=True)
class Sides:
    """before: what was named; after: what is here. distribution: whose two states they are."""

    distribution: str
    before: Side
    after: Side


def install_sides(named: str, here: Path, scratch: Path) -> Sides:
    """Install both below a scratch folder. named: a git revision of the repository around `here`, else a version.

    Raises PipebenchError: neither a revision nor a version, no project here, git or pip failed.
    """
    top = repository(here)
    if top is None or not (top / "pyproject.toml").exists():
        raise PipebenchError(
            f"{str(here)!r} is not in a git repository with a pyproject.toml",
            "run this in the repository of a planner",
        )
    distribution = project_name(top)
    commit = commit_of(top, named)
    if commit is None and not VERSION.fullmatch(named):
        raise PipebenchError(
            f"{named!r} is neither a revision of {str(top)!r} nor a version",
            "a shallow clone has few revisions: fetch more (git fetch --unshallow)",
        )
    if commit is None:
        before = _side(f"{distribution} {named}", scratch / "before")
        install(f"{distribution}=={named}", _site(before))
    else:
        before = _side(f"{named} ({commit[:10]})", scratch / "before")
        source = scratch / "before-source"
        check_out(top, commit, source)
        install(str(source), _site(before), source)
    after = _side(f"the working tree ({described(top)})", scratch / "after")
    source = scratch / "after-source"
    copy_working_tree(top, source)
    install(str(source), _site(after), source)
    return Sides(distribution, before, after)


def _side(name: str, folder: Path) -> Side:
    folder.mkdir(parents=True)
    return Side(name, folder / "site", folder / "kernels")


def _site(side: Side) -> Path:
    assert side.site is not None
    return side.site
