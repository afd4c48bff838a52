"""The kit for papers' figures and tables: rows by place and contender, curves, findings from cases."""
