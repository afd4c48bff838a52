"""Suites: the workloads that one name stands for, as TOML; those that ship lie beside this file."""

from pipebench.bench.suites.files import ChosenSuite, load_suite, load_suites, suite_names, suite_schema
from pipebench.bench.suites.settings import Settings, settle
from pipebench.bench.suites.table import Limits, Suite, SuiteWorkload

__all__ = [
    "ChosenSuite",
    "Limits",
    "Settings",
    "Suite",
    "SuiteWorkload",
    "load_suite",
    "load_suites",
    "settle",
    "suite_names",
    "suite_schema",
]
