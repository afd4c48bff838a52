"""The models of the zoo, built by name through their descriptors."""

from importlib import import_module
from typing import Any, cast

from pipebench.domain.graph import OperatorGraph
from pipebench.hooks.context import Context
from pipebench.hooks.descriptors import Model
from pipebench_models.plugin import pipebench_models

DESCRIPTORS: dict[str, Model] = {descriptor.name: descriptor for descriptor in pipebench_models()}


def model(name: str, **options: Any) -> OperatorGraph:
    """The graph of a model with these options."""
    descriptor = DESCRIPTORS[name]
    module, _, attribute = descriptor.load.partition(":")
    build = getattr(import_module(module), attribute)
    return cast(OperatorGraph, build(Context(options=descriptor.options(**options))))
