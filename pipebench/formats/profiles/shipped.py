"""Profiles that ship, by name."""

from functools import lru_cache
from pathlib import Path

import pipebench
from pipebench.domain.errors import PipebenchError, unknown
from pipebench.domain.profile import Profile
from pipebench.formats.documents import read_document

MANIFEST = "manifest.toml"


def profile_names() -> list[str]:
    """Names of the profiles that ship."""
    return sorted(path.stem for path in profiles_folder().glob("*.json"))


def load_profile(name: str) -> Profile:
    """A profile that ships. Raises PipebenchError with the nearest name."""
    if name not in profile_names():
        raise unknown("profile", name, profile_names())
    profile: Profile = read_document(profiles_folder() / f"{name}.json", "profile")
    return profile


@lru_cache(maxsize=1)
def profiles_folder() -> Path:
    """Inside the installed package; in a checkout, `profiles` beside the package."""
    package = Path(pipebench.__file__).parent
    for folder in (package / "_profiles", package.parent / "profiles"):
        if (folder / MANIFEST).is_file():
            return folder
    raise PipebenchError("the profiles that ship with pipebench are missing", "install pipebench again")
