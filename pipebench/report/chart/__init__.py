"""Charts as SVG, written without any library."""

from pipebench.report.chart.figure import svg

__all__ = ["svg"]
