"""Figures and tables of the GraphPipe paper: what to run, what the paper claims, and a judge of the rows."""
