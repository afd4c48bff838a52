"""GraphPipe: stages that keep a model's branches side by side, by series-parallel decomposition and DP.

planner asks candidates for the best plan of what search finds.
space: a tree of chains and forks; compiler, layout and ownership make it, program lists its stages,
operator_values, measure and stage_costs say what each costs.
feasibility: the DP under a target; closings and merge are its forks, retrace goes back from a depth to stages,
target_search bisects. mixed_*: the same with a micro-batch size and k of every stage's own.
assembly, warm_up and rivals: plans; artefacts: the paper's figures and tables again.
"""
