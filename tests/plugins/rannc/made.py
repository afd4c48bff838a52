"""Blocks of a problem, as the planner makes them."""

from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench_rannc.atoms import GroupCosts, atoms_of
from pipebench_rannc.blocks import Blocks, Recipe, partition


def costs_of(problem: Problem, samples: int = 1) -> GroupCosts:
    model = CostModel(problem)
    return GroupCosts(atoms_of(model.graph), model, samples, problem.cluster.levels[0])


def blocks_of(problem: Problem, recipe: Recipe) -> Blocks:
    return partition(atoms_of(problem.profile.graph), costs_of(problem), recipe, lambda: None)
