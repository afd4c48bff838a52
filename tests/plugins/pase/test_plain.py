"""Elimination with dictionaries is that of enumeration, too."""

from hypothesis import given

from pipebench_pase.elimination import Costs
from pipebench_pase.ordering import elimination_order
from tests.plugins.pase.plain import least_cost
from tests.plugins.pase.random_costs import graphs, least


@given(graphs())
def test_the_least_of_all_strategies(costs: Costs) -> None:
    assert least_cost(costs, elimination_order(costs.adjacency, "generate-seq").order) == least(costs)
