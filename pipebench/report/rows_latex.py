"""Rows as a table for LaTeX: rules of booktabs, a block for each problem, figures aligned, units in the head."""

import math
from collections.abc import Iterable, Sequence

from pipebench.documents.printable import printable
from pipebench.domain.row import Row
from pipebench.report.problem_names import ProblemNames
from pipebench.report.rows import COLUMNS, RowCell, cells, legend

NEEDS = "% needs \\usepackage{booktabs}"
UNITS = {
    "claimed": (1.0, "samples/s"),
    "samples/s": (1.0, ""),
    "gap": (100.0, r"\%"),
    "memory": (1e-9, "GB"),
    "bubble": (100.0, r"\%"),
    "search": (1e3, "ms"),
}
"""Columns of figures: the factor from what rows have (samples/s, shares, bytes, s), and the unit of that."""
OF_THE_PROBLEM = ("problem", "devices")
"""Columns that the heading of a block says."""
DIGITS, MOST_DECIMALS = 3, 2
"""Digits of the smallest figure of a column; all of a column have as many decimals, so that points align."""
NOTHING = "--"
ESCAPED = {letter: f"\\{letter}" for letter in "#$%&_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # behind the end of a row both would be an argument
    "*": "{*}",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "…": r"\ldots{}",
}


def rows_latex(rows: Sequence[Row]) -> str:
    """One tabular, to be read with \\input; the columns of the HTML page but those of the problem.

    What a problem's short name leaves out is a comment; what marks mean stands at the foot.
    """
    known = ProblemNames(rows)
    problems: dict[str, list[list[RowCell]]] = {}
    for row in rows:
        problems.setdefault(known.problem(row), []).append(_shown(cells(row, known)))
    wholes = {known.problem(row): known.whole(row) for row in rows}
    names = [name for name, _ in COLUMNS if name not in OF_THE_PROBLEM]
    columns = zip(*(line for lines in problems.values() for line in lines), strict=True)
    decimals = {name: _decimals(name, column) for name, column in zip(names, columns, strict=False)}
    body: list[str] = []
    for problem, lines in problems.items():
        body += [r"\midrule", _across(len(names), escaped(problem))]
        body += [f"% {printable(wholes[problem])}"] if wholes[problem] else []
        for line in lines:
            texts = (_text(name, cell, decimals[name]) for name, cell in zip(names, line, strict=True))
            body.append(f"{' & '.join(texts)} \\\\")
    alignment = "".join("r" if name in UNITS else "l" for name in names)
    head = f"{' & '.join(map(_heading, names))} \\\\"
    foot = [_across(len(names), rf"\footnotesize {escaped(words)}") for words in legend(rows)]
    whole = [
        NEEDS,
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        head,
        *body,
        r"\bottomrule",
        *foot,
        r"\end{tabular}",
    ]
    return "\n".join(whole) + "\n"


def escaped(text: str) -> str:
    """A text as LaTeX prints it, no command of its own."""
    return "".join(ESCAPED.get(letter, letter) for letter in printable(text).replace("\n", " "))


def _across(columns: int, text: str) -> str:
    return rf"\multicolumn{{{columns}}}{{l}}{{{text}}} \\"


def _shown(line: list[RowCell]) -> list[RowCell]:
    return [cell for (name, _), cell in zip(COLUMNS, line, strict=True) if name not in OF_THE_PROBLEM]


def _heading(name: str) -> str:
    _, unit = UNITS.get(name, (1.0, ""))
    return f"{name} ({unit})" if unit else name


def _figure(name: str, cell: RowCell) -> float | None:
    """In the unit of its column; None where the row has none."""
    return UNITS[name][0] * cell.value if isinstance(cell.value, int | float) else None


def _decimals(name: str, column: Iterable[RowCell]) -> int:
    if name not in UNITS:
        return 0
    figures = (abs(figure) for cell in column if (figure := _figure(name, cell)))
    smallest = min(figures, default=1.0)
    return min(MOST_DECIMALS, max(0, DIGITS - 1 - math.floor(math.log10(smallest))))


def _text(name: str, cell: RowCell, decimals: int) -> str:
    if name not in UNITS:
        return NOTHING if cell.text in ("", "-") else escaped(cell.text)
    figure = _figure(name, cell)
    return NOTHING if figure is None else f"{figure:.{decimals}f}"
