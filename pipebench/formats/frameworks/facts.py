"""The table of training frameworks: what they do around the kernels of a step."""

from functools import lru_cache
from importlib.resources import files

from msgspec.structs import replace

from pipebench.domain.errors import unknown
from pipebench.domain.framework import Elementwise, Framework
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.formats.typed_text import parse_toml

TORCHTITAN = "torchtitan"
"""A framework that has a variant; what it alone does goes by `framework_family`."""


class FrameworkFacts(Value, frozen=True, kw_only=True):
    """One framework as the table says it.

    summary: a line about it. gradient_precision: of accumulated gradients, where nobody says so.
    """

    summary: str
    gradient_precision: Precision
    facts: Framework


class FrameworkVariant(Value, frozen=True, kw_only=True):
    """A framework that is run in another way. of: whose facts hold but for these."""

    of: str
    summary: str
    elementwise: Elementwise
    selective_launches: float

    def facts(self, name: str, usual: FrameworkFacts) -> FrameworkFacts:
        """Those of the framework with the differences, and a name of its own."""
        differences = {
            each: getattr(self, each) for each in self.__struct_fields__ if each not in ("of", "summary")
        }
        facts = replace(usual.facts, name=name, **differences)
        return replace(usual, summary=self.summary, facts=facts)


class FrameworkTable(Value, frozen=True, kw_only=True):
    """frameworks.toml."""

    sources: dict[str, str]
    frameworks: tuple[FrameworkFacts, ...]
    variants: dict[str, FrameworkVariant]

    def all_facts(self) -> dict[str, FrameworkFacts]:
        """Frameworks and variants by name."""
        usual = {entry.facts.name: entry for entry in self.frameworks}
        return usual | {name: variant.facts(name, usual[variant.of]) for name, variant in self.variants.items()}


@lru_cache(maxsize=1)
def framework_table() -> FrameworkTable:
    """The frameworks that ship."""
    data = files("pipebench.formats").joinpath("presets/frameworks.toml").read_bytes()
    return parse_toml(data, FrameworkTable, "frameworks.toml")


def framework_names() -> list[str]:
    """Names of the frameworks that ship, variants too."""
    return sorted(framework_table().all_facts())


def framework_family(name: str) -> str:
    """The framework of which a name may be a variant; a name that the table does not have is its own."""
    variant = framework_table().variants.get(name)
    return variant.of if variant else name


def load_framework(name: str) -> Framework:
    """A framework by name. Raises PipebenchError with the nearest name."""
    return framework_facts(name).facts


def framework_facts(name: str) -> FrameworkFacts:
    """The entry of the table. Raises PipebenchError with the nearest name."""
    facts = framework_table().all_facts().get(name)
    if facts is None:
        raise unknown("framework", name, framework_names())
    return facts
