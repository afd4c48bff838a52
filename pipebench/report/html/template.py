"""The template engine: everything that is not markup of ours is escaped, and has no control characters."""

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from pipebench.documents.printable import printable

PACKAGE = "pipebench.report.html"
STYLES = ("style.css", "grid.css")
SCRIPTS = ("sorting.js", "heat_map.js", "filtering.js")
"""Each is at rest on a page without its elements."""


@cache
def _engine() -> Environment:
    return Environment(
        loader=BaseLoader(),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """A text as it is put into a page: a sign for what would turn the direction of all that follows."""
    return printable(value) if type(value) is str else value


@cache
def asset(name: str) -> str:
    """A file that lies beside this one."""
    return (files(PACKAGE) / name).read_text("utf-8")


def fragment(template: str, **values: Any) -> str:
    """A template with its values, without a page around it."""
    return _engine().from_string(asset(template)).render(**values)


def page(template: str, **values: Any) -> str:
    """A whole page: the frame with style and script, around the template with its values."""
    body = fragment(template, **values)
    frame = _engine().from_string(asset("frame.html"))
    return frame.render(
        title=values["title"],
        style=Markup("".join(map(asset, STYLES))),
        script=Markup("".join(map(asset, SCRIPTS))),
        body=Markup(body),
    )


def picture(svg: str) -> Markup:
    """An SVG made by this package, whose words are escaped already."""
    return Markup(svg)
