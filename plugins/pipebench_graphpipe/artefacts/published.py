"""Figures that the paper prints, by number of devices."""

SEARCH_S = {
    "mmt": {
        "piper": (52.9, 126.0, 304.0, 745.0),
        "k": (2.57, 11.9, 44.3, 151.0),
        "paper": (0.12, 0.76, 3.0, 10.11),
    },
    "dlrm": {"k": (6.39, 31.3, 131.0, 505.0), "paper": (0.33, 2.73, 13.28, 54.6)},
    "candle-uno": {"k": (3.84, 17.0, 66.1, 234.0), "paper": (0.19, 1.43, 6.14, 22.37)},
}
"""Table 1, seconds on 4, 8, 16 and 32 devices."""
SEQUENTIAL = {
    "piper": (113.94, 187.92, 286.83, 609.76),
    "k": (113.2, 190.1, 277.0, 592.4),
    "paper": (113.6, 189.5, 287.52, 608.82),
}
"""Appendix A.3, samples a second on 4, 8, 16 and 32 devices."""
