"""Names of models that torch builds: the catalogue's, an import path, a file. Which of them a profile may name.

This module imports no torch, so that a name is refused before any process starts.
"""

from pipebench.domain.profile import Profile
from pipebench.hooks.trust import UntrustedName

TORCHVISION = {
    "resnet50": 224,
    "resnet101": 224,
    "inception_v3": 299,
    "densenet121": 224,
    "vgg16": 224,
    "googlenet": 224,
    "mobilenet_v3_large": 224,
    "efficientnet_b0": 224,
    "vit_b_16": 224,
    "swin_t": 224,
    "convnext_tiny": 224,
}
"""Names with the side of the image they are made for."""
TRANSFORMERS = ("bert", "gpt2", "vit", "clip", "t5", "llama")
BY_FAMILY = {"torchvision": tuple(TORCHVISION), "transformers": TRANSFORMERS}

DOWNLOADING = frozenset({"weights", "pretrained", "weights_backbone", "pretrained_backbone"})
"""Options with which torchvision fetches a file."""
Value = int | bool | str


def split_name(text: str) -> tuple[str, dict[str, Value]]:
    """A model without its options, and these: numbers and truth values where they look so, else texts."""
    name, _, inside = text.partition("[")
    return name.strip(), dict(_option(part) for part in inside.rstrip("]").split(",") if part)


def _option(part: str) -> tuple[str, Value]:
    key, _, value = part.partition("=")
    try:
        return key.strip(), int(value)
    except ValueError:
        return key.strip(), {"true": True, "false": False}.get(value.strip(), value.strip())


def family_of(name: str) -> str:
    """The library of the catalogue that has the name, with or without the library before it; empty: none."""
    family, colon, short = name.partition(":")
    if colon:
        return family if short in BY_FAMILY.get(family, ()) else ""
    return next((each for each in reversed(BY_FAMILY) if name in BY_FAMILY[each]), "")


def model_to_build(profile: Profile, typed: str, trusted: frozenset[str]) -> str:
    """The model that the profile was captured from, as it may be built here; empty where none was captured.

    A name of the catalogue is built with the numbers and truth values that the profile gives. Any other must be
    typed by the user, or be among the trusted. typed: built in place of the profile's name, with its options.
    Raises UntrustedName for what else the profile names.
    """
    named = profile.provenance.captured
    if not named or named in trusted:
        return named
    name, options = split_name(named)
    texts = any(isinstance(value, str) for value in options.values())
    plain = not texts and not DOWNLOADING & options.keys()
    if plain and typed:
        return typed if "[" in typed else typed + named.removeprefix(name)
    if plain and family_of(name):
        return named
    instead = "name it in the option of the executor, torch[model=./file.py:function]"
    raise UntrustedName([f"{named}, imported and called"], f"the profile {profile.name!r}", instead)
