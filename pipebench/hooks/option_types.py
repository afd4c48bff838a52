"""Options of components as data: a class of options described by its fields, and a class built again from that.

The command's process imports no plugin. It parses and prints options by classes that are built from descriptions.
"""

import functools
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec.structs import force_setattr

from pipebench.domain.value import Value
from pipebench.hooks.descriptors import NoOptions

_PLAIN: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "none": None}
_NAMES = {bool: "bool", int: "int", float: "float", str: "str", type(None): "none"}

OptionCheck = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Options by name to the options as the component's own class holds them. Raises PipebenchError."""


class UndescribedType(TypeError):
    """A type of an option that no description has a word for."""


class OptionField(Value, frozen=True, kw_only=True):
    """One option.

    type: "bool", "int", "float", "str" or "none"; or a list whose first entry is "literal" (values follow),
    "union", "tuple" (of one type, any length), "fixed" (a tuple of these types) or "list" (types follow).
    default: as plain data.
    """

    name: str
    type: Any
    default: Any = None


class OptionsDescription(Value, frozen=True, kw_only=True):
    """A class of options.

    doc: the docstrings of the class and its bases.
    checked: whether the class has rules of its own, which only its code can apply.
    """

    name: str
    doc: str = ""
    fields: tuple[OptionField, ...] = ()
    checked: bool = False


def describe_class(options: type[Value]) -> OptionsDescription | None:
    """The description of a class of options; None for NoOptions.

    Raises UndescribedType for an option of another type, and what the class raises for its own defaults.
    """
    if options is NoOptions:
        return None
    made = options()
    fields = []
    refined = False
    for info in msgspec.structs.fields(options):
        if info.encode_name != info.name:
            raise UndescribedType(f"option {info.name!r} has a second name, {info.encode_name!r}")
        try:
            described, exact = type_data(info.type), _without_rules(info.type) is info.type
        except UndescribedType as error:
            raise UndescribedType(f"option {info.name!r}: {error}") from None
        default = msgspec.to_builtins(getattr(made, info.name) if info.required else _default(info))
        fields.append(OptionField(name=info.name, type=described, default=default))
        refined |= not exact
    bases = [base for base in options.__mro__ if base is not Value and issubclass(base, Value)]
    doc = "\n\n".join(base.__doc__ for base in bases if base.__doc__)
    checked = refined or any("__post_init__" in vars(base) for base in bases)
    return OptionsDescription(name=options.__name__, doc=doc, fields=tuple(fields), checked=checked)


def options_class(described: OptionsDescription | None, check: OptionCheck | None = None) -> type[Value]:
    """A class with these options. check: applies the rules of the component's own class, where it has some."""
    if described is None:
        return NoOptions
    defaults = {field.name: field.default for field in described.fields}

    def apply_rules(self: Value) -> None:
        values = msgspec.to_builtins({name: getattr(self, name) for name in defaults})
        if check is None or values == defaults:
            return
        for name, value in check(values).items():
            if name in defaults and value != values[name]:
                force_setattr(self, name, value)

    namespace: dict[str, Any] = {"__doc__": described.doc}
    if described.checked and check is not None:
        namespace["__post_init__"] = apply_rules
    return msgspec.defstruct(  # type: ignore[return-value]
        described.name,
        [(field.name, annotation_of(field.type), _default_of(field)) for field in described.fields],
        bases=(Value,),
        namespace=namespace,
        frozen=True,
        kw_only=True,
    )


def type_data(annotation: Any) -> Any:
    """A type as data. Raises UndescribedType for one that options cannot have."""
    annotation = _without_rules(annotation)
    plain = _NAMES.get(type(None) if annotation is None else annotation) if _hashable(annotation) else None
    if plain is not None:
        return plain
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ["literal", *parts]
    if origin is Union or origin is types.UnionType:
        return ["union", *map(type_data, parts)]
    if origin is list and len(parts) == 1:
        return ["list", type_data(parts[0])]
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return ["tuple", type_data(parts[0])]
    if origin is tuple and parts and Ellipsis not in parts:
        return ["fixed", *map(type_data, parts)]
    raise UndescribedType(
        f"its type is {annotation}; use bool, int, float, str, None, Literal, and tuple or list of these"
    )


def annotation_of(data: Any) -> Any:
    """The type that `type_data` described. Raises UndescribedType for data that describe none."""
    if isinstance(data, str) and data in _PLAIN:
        return _PLAIN[data]
    if isinstance(data, list | tuple) and len(data) > 1:
        if data[0] == "literal":
            return Literal[tuple(data[1:])]
        parts = [annotation_of(part) for part in data[1:]]
        match data[0]:
            case "union":
                return functools.reduce(operator.or_, parts)
            case "list":
                return list[parts[0]]  # type: ignore[valid-type]
            case "tuple":
                return tuple[parts[0], ...]  # type: ignore[valid-type]
            case "fixed":
                return tuple[tuple(parts)]  # type: ignore[misc]
    raise UndescribedType(f"{data!r} describes no type of an option")


def _without_rules(annotation: Any) -> Any:
    """The type without the limits of an Annotated, which the component's own class applies."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return annotation


def _hashable(annotation: Any) -> bool:
    return isinstance(annotation, type) or annotation is None


def _default(info: msgspec.structs.FieldInfo) -> Any:
    return info.default if info.default is not msgspec.NODEFAULT else info.default_factory()


def _default_of(field: OptionField) -> Any:
    if not isinstance(field.default, list | tuple):
        return msgspec.field(default=field.default)
    kept, annotation = list(field.default), annotation_of(field.type)
    value = msgspec.convert(kept, annotation)
    if isinstance(value, list):
        return msgspec.field(default_factory=lambda: list(value))
    return msgspec.field(default=value)
