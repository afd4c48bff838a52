"""The table of training frameworks: what they do around the kernels of a step."""

from functools import lru_cache
from importlib.resources import files
from typing import Literal

from msgspec.structs import replace

from pipebench.domain.errors import unknown
from pipebench.domain.framework import Attention, Checkpoints, Elementwise, Framework
from pipebench.domain.profile import Precision
from pipebench.domain.value import Value
from pipebench.formats.typed_text import parse_toml

TORCHTITAN = "torchtitan"
"""A framework that has a variant; what it alone does goes by `framework_family`."""


class FrameworkFacts(Value, frozen=True, kw_only=True):
    """One framework as the table says it. Fields: see Framework; us = 10^-6 s, GB = 10^9 bytes.

    summary: a line about it. gradient_precision: of accumulated gradients, where nobody says so.
    """

    summary: str
    launch_us: float
    checkpoint_us: float
    rerun_us: float
    skew_us: float
    attention: Attention
    sequence_parallel: bool
    splits_messages: bool
    keeps_narrow: bool
    optimizer_bytes: float
    gradient_passes: float
    reduce_overlap: float
    accumulate_bytes: float
    loss_bytes: float
    gradient_precision: Precision
    context_gb: float
    slack: float
    sources: tuple[str, ...]
    flash_generation: Literal[2, 3] = 3
    selective: Checkpoints = "core"
    selective_launches: float = 1.0
    elementwise: Elementwise = "fused"
    repeats_keys: bool = False
    logit_bytes: float = 4.0
    split_logit_bytes: float = 4.0
    keeps_gathered: bool = False

    def framework(self, name: str) -> Framework:
        """The framework with these facts, in seconds and bytes."""
        return Framework(
            name=name,
            launch_s=self.launch_us / 1e6,
            checkpoint_s=self.checkpoint_us / 1e6,
            rerun_s=self.rerun_us / 1e6,
            skew_s=self.skew_us / 1e6,
            attention=self.attention,
            flash_generation=self.flash_generation,
            selective=self.selective,
            selective_launches=self.selective_launches,
            elementwise=self.elementwise,
            repeats_keys=self.repeats_keys,
            sequence_parallel=self.sequence_parallel,
            splits_messages=self.splits_messages,
            keeps_narrow=self.keeps_narrow,
            optimizer_bytes=self.optimizer_bytes,
            gradient_passes=self.gradient_passes,
            reduce_overlap=self.reduce_overlap,
            accumulate_bytes=self.accumulate_bytes,
            loss_bytes=self.loss_bytes,
            logit_bytes=self.logit_bytes,
            split_logit_bytes=self.split_logit_bytes,
            keeps_gathered=self.keeps_gathered,
            context_bytes=round(self.context_gb * 1e9),
            slack=self.slack,
            sources=self.sources,
        )


class FrameworkVariant(Value, frozen=True, kw_only=True):
    """A framework that is run in another way. of: whose facts hold but for these."""

    of: str
    summary: str
    elementwise: Elementwise
    selective_launches: float

    def facts(self, usual: FrameworkFacts) -> FrameworkFacts:
        """Those of the framework with the differences."""
        return replace(usual, **{name: getattr(self, name) for name in self.__struct_fields__ if name != "of"})


class FrameworkTable(Value, frozen=True, kw_only=True):
    """frameworks.toml."""

    sources: dict[str, str]
    frameworks: dict[str, FrameworkFacts]
    variants: dict[str, FrameworkVariant]

    def all_facts(self) -> dict[str, FrameworkFacts]:
        """Frameworks and variants by name."""
        return self.frameworks | {
            name: variant.facts(self.frameworks[variant.of]) for name, variant in self.variants.items()
        }


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
    return framework_facts(name).framework(name)


def framework_facts(name: str) -> FrameworkFacts:
    """The entry of the table. Raises PipebenchError with the nearest name."""
    facts = framework_table().all_facts().get(name)
    if facts is None:
        raise unknown("framework", name, framework_names())
    return facts
