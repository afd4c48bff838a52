"""GraphPipe: stages that keep a model's branches side by side, by series-parallel decomposition and DP.

planner asks candidates for the best plan of what search finds.
space: a tree of chains and forks; compiler makes it, program lists its stages, stage_costs says what each costs.
feasibility: the DP under a target; target_search bisects. mixed_*: the same with a micro-batch size and k of every
stage's own. assembly and candidates: plans; artefacts: the paper's figures and tables again.
"""
