"""References in short."""

import pytest

from pipebench.hooks.references import short_reference


@pytest.mark.parametrize(
    ("reference", "short"),
    [
        ("", ""),
        ("Jeon et al., GraphPipe: Graphs, ASPLOS 2025, arXiv 2406.17145", "Jeon et al., ASPLOS 2025"),
        ("Tanaka, Taura, Hanawa, Automatic Graph Partitioning, IPDPS 2021", "Tanaka et al., IPDPS 2021"),
        ("Elango, PaSE: Strategies, IPDPS 2021; baidu/PaSE", "Elango, IPDPS 2021"),
        ("Krizhevsky, One weird trick, arXiv 1404.5997; Wu et al., GNMT, NeurIPS 2018", "Krizhevsky, 2014"),
        ("Narayanan et al. 2021, Efficient Training", "Narayanan et al., 2021"),
        ("Huang et al., GPipe, 2019; GPipe-Hybrid, IPDPS 2021", "Huang et al., 2019"),
        ("Graham, Bounds on Anomalies, SIAM Journal 1969", "Graham, SIAM Journal 1969"),
        ("a report of nobody", "a report of nobody"),
    ],
)
def test_author_venue_and_year(reference: str, short: str) -> None:
    assert short_reference(reference) == short
