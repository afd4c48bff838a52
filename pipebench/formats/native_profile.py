"""The project's own profile documents as one of the profile formats."""

from typing import Any

from pipebench.domain.profile import Profile
from pipebench.formats.native import decode_profile, looks_native
from pipebench.formats.profile_format import ProfileFormat
from pipebench.hooks.descriptors import NoOptions


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a JSON document. Raises PipebenchError that names file and path inside."""
    del options
    return decode_profile(data, source)


FORMAT = ProfileFormat(
    name="pipebench",
    summary="the project's own JSON document of kind profile",
    suffix=".json",
    options=NoOptions,
    recognises=looks_native,
    read=read,
)
