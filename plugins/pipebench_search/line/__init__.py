"""Plans whose stages are runs of one order of the operators, in compiled code: costs, time, annealing."""
