"""Plans as the search changes them: drafts, their neighbours, rows of stages to start from."""
