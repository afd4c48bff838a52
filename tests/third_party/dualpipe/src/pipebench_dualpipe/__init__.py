"""The scheduler `dualpipe` for pipebench."""
