"""One search of one planner: in a child process, measured."""
