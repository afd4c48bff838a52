"""The command line: one module for each command, nothing but parsing and printing."""
