"""From what was asked for to problems: profiles, clusters, regimes, each with its name."""
