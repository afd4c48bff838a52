"""For plugin authors: a conformance kit (`pipebench plugin check`, a pytest plugin), a package to start from.

Nothing heavy is imported here: a pytest plugin is loaded in every run of its user's tests.
"""
