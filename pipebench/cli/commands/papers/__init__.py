"""Papers: their figures, and the authors' own programs."""
