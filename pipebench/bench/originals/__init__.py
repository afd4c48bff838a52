"""Authors' published programs run from a checkout of the user, beside the suite's planners on the same inputs."""
