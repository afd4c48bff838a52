"""The documentation site: the pages of this folder by Sphinx, as `nox -s site` builds them.

Its links to the repository and its own address are those of the installed package (pyproject.toml).
"""

import re
from html import escape
from importlib.metadata import metadata
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

logger = getLogger("pipebench.site")

_package = metadata("pipebench")
_urls = dict(line.split(", ", 1) for line in _package.get_all("Project-URL") or ())

project = _package["Name"]
author = _package["Author"]
release = _package["Version"]
extensions = ["myst_parser"]
exclude_patterns = ["README.md"]  # index.rst includes it
smartquotes = False  # "--planners" is no dash

# The pages are read on GitHub too: the same anchors and the same mathematics.
myst_heading_anchors = 6
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False
myst_dmath_allow_space = False
myst_fence_as_directive = ["math"]


html_theme = "furo"
html_title = f"{project} {release}"
html_baseurl = _urls.get("Documentation", "")
html_copy_source = False
html_show_copyright = False
html_math_renderer = "mathml"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = (
    {"source_repository": _urls["Source"], "source_branch": "main", "source_directory": "docs/"}
    if "Source" in _urls
    else {}
)
pygments_dark_style = "github-dark"


def mathml(node: nodes.math | nodes.math_block) -> str:
    """The formula as MathML: browsers show it without a script. The build fails on a command that is not known."""
    formula = re.sub(r"\\(big|Big|bigg|Bigg)(?![a-zA-Z])", r"\\\1l", node.astext())
    formula = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", formula)  # docutils knows these two by other names
    try:
        return str(tex2mathml(formula, as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        logger.warning("%s in the formula %s", error, node.astext(), location=node)
        return escape(node.astext())


def write_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node))
    raise nodes.SkipNode


def write_displayed(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{mathml(node)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (write_inline, None), (write_displayed, None))
