"""How a component is written on the command line: name, ./file.py or cmd:program, each with [option=value,…]."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from pipebench.domain.errors import PipebenchError, unknown
from pipebench.domain.limits import MOST_OPTION
from pipebench.domain.value import Value

T = TypeVar("T", bound=Value)
SHOWN_DIGITS = 12
"""Of a number that is too large."""
NOTHING = "null"
"""The text of None, where an option may be that."""
_NAMED = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])*")
"""Up to a comma outside brackets."""
_PROGRAM = re.compile(r"\s*cmd:")
_QUOTED = r'''\\.|'[^']*'|"(?:[^"\\]|\\.)*"'''
"""What a shell takes as it stands."""
_BRACKET = r"(?<!(?<!\\)\s)(?:(?<!\s)\[(?P<options>[^\[\],=]+=[^\[\],]*(?:,[^\[\],=]+=[^\[\],]*)*)\])?\s*"
"""Options at the end of a command, right behind its last word. Any other bracket is the command's own."""
_LISTED_COMMAND = re.compile(rf"""\s*cmd:(?:[^,'"\\]|{_QUOTED})*?{_BRACKET}(?=,|\Z)""", re.DOTALL)
"""Up to a comma outside quotes and options."""
_COMMAND = re.compile(rf"""(?P<name>cmd:(?:[^'"\\]|{_QUOTED})*?){_BRACKET}""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reference:
    """A component as the user wrote it. options: the texts between the brackets."""

    name: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_script(self) -> bool:
        """A Python file with one function."""
        return self.name.endswith(".py") and not self.is_program

    @property
    def is_program(self) -> bool:
        """A program that reads a problem and writes a plan."""
        return self.name.startswith("cmd:")

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in sorted(self.options.items()))
        return f"{self.name}[{inside}]" if inside else self.name


def split_list(text: str) -> list[str]:
    """Split at commas outside brackets.

    A part that starts with cmd: reaches to the next comma outside quotes and outside the options at its end.

    Raises PipebenchError for empty parts and for brackets or quotes that do not match.
    """
    parts: list[str] = []
    position = -1
    while position < len(text):
        start = position + 1
        is_command = _PROGRAM.match(text, start) is not None
        found = (_LISTED_COMMAND if is_command else _NAMED).match(text, start)
        position = found.end() if found else start
        if position < len(text) and text[position] != ",":
            if is_command:
                raise PipebenchError(f"quotes do not match in {text!r}", "close every quote")
            raise PipebenchError(f"brackets do not match in {text!r}", "write name[option=value,…]")
        parts.append(text[start:position].strip())
    if not all(parts):
        raise PipebenchError(f"an empty name in {text!r}", "separate names by single commas")
    return parts


def parse_reference(text: str) -> Reference:
    """One component. Raises PipebenchError for brackets or options that are not well formed."""
    text = text.strip()
    if text.startswith("cmd:"):
        command = _COMMAND.fullmatch(text)
        if command is None or command["options"] is None:
            return Reference(text)
        return Reference(command["name"], _options(command["options"], text))
    name, bracket, inside = text.partition("[")
    if not bracket:
        return Reference(name)
    if not inside.endswith("]") or not name:
        raise PipebenchError(f"{text!r} is not a component", "write name[option=value,…]")
    return Reference(name, _options(inside[:-1], text))


def _options(inside: str, text: str) -> dict[str, str]:
    """Names to values of what stands between brackets in `text`."""
    options: dict[str, str] = {}
    for part in inside.split(","):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise PipebenchError(f"{part!r} in {text!r} is not an option", "write name[option=value,…]")
        if option.strip() in options:
            raise PipebenchError(f"option {option.strip()!r} occurs twice in {text!r}")
        options[option.strip()] = value.strip()
    return options


def parse_references(texts: tuple[str, ...] | list[str]) -> list[Reference]:
    """All components of several comma-separated texts, in order, without repetition."""
    found = [parse_reference(part) for text in texts for part in split_list(text)]
    return list({str(reference): reference for reference in found}.values())


def with_options(reference: Reference, options: dict[str, str]) -> Reference:
    """The reference with more options. Raises PipebenchError for one that it has."""
    for option in options:
        if option in reference.options:
            raise PipebenchError(f"{option!r} is said twice: in {str(reference)!r} and apart")
    return Reference(reference.name, {**reference.options, **options})


def typed_options(reference: Reference, options_type: type[T]) -> T:
    """The options of a reference as the component's options type. A colon stands between the entries of a list.

    Raises PipebenchError for an option that does not exist (nearest match) or a value that it cannot have.
    """
    fields = {info.name: info for info in msgspec.structs.fields(options_type)}
    for option in reference.options:
        if option not in fields:
            raise unknown(f"option of {reference.name!r}:", option, fields)
    given = {name: _entries(text, fields[name].type) for name, text in reference.options.items()}
    for name, said in given.items():
        if _takes_numbers(fields[name].type):
            _require_range(reference, name, [said] if isinstance(said, str) else said)
    try:
        return msgspec.convert(given, options_type, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong_value(reference, options_type, str(error)) from None


def _entries(text: str, annotation: Any) -> str | list[str]:
    """The text of an option; of one whose type is a list or a tuple its entries."""
    if not _is_list(annotation) or (text == NOTHING and type(None) in get_args(annotation)):
        return text
    return text.split(":") if text else []


def _takes_numbers(annotation: Any) -> bool:
    """Whether a type has whole numbers and no texts."""
    parts = get_args(annotation)
    return annotation is int or (any(map(_takes_numbers, parts)) and str not in parts)


def _require_range(reference: Reference, option: str, texts: list[str]) -> None:
    """Raise PipebenchError for a whole number that no document, message or array holds."""
    for text in texts:
        digits = text.lstrip("+-0")
        if digits.isdecimal() and (len(digits) > len(str(MOST_OPTION)) or int(digits) > MOST_OPTION):
            raise PipebenchError(
                f"{reference}: option {option!r}: {digits[:SHOWN_DIGITS]}… has {len(digits)} digits",
                f"a whole number is at most {MOST_OPTION}",
            )


def _is_list(annotation: Any) -> bool:
    """Whether a type is a list or a tuple, also one that may be None; not where it may be a text as well."""
    if get_origin(annotation) in (list, tuple):
        return True
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return get_origin(annotation) is not Literal and bool(parts) and all(map(_is_list, parts))


def _wrong_value(reference: Reference, options_type: type[Value], message: str) -> PipebenchError:
    what, _, place = message.rpartition(" - at `$.")
    option = place.rstrip("`").partition("[")[0]
    kind = next((info.type for info in msgspec.structs.fields(options_type) if info.name == option), None)
    if kind is None:
        return PipebenchError(f"{reference}: {message}")
    if _is_list(kind):
        return PipebenchError(f"{reference}: option {option!r}: {what}", "write its entries as 1:2:4")
    valid = _choices(kind)
    if valid:
        return unknown(f"value of option {option!r} in {reference}:", reference.options[option], valid)
    return PipebenchError(f"{reference}: option {option!r}: {what}")


def _choices(annotation: Any) -> list[str]:
    """The values of a Literal, also of one that may be None; those of a bool."""
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    return [value for part in get_args(annotation) for value in _choices(part)]


def describe_options(options_type: type[Value]) -> list[tuple[str, str, Any]]:
    """Name, type and default of each option."""
    return [
        (info.name, _type_name(info.type), info.default if info.default is not msgspec.NODEFAULT else None)
        for info in msgspec.structs.fields(options_type)
    ]


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    valid = _choices(annotation)
    if valid and type(None) in get_args(annotation):
        valid.append("None")
    return " | ".join(valid) or str(annotation)
