"""The store of finished trials: append-only, keyed by content, resumed, packed and read back."""

from pipebench.bench.store.folder import Store
from pipebench.bench.store.keys import TrialInputs, trial_key
from pipebench.bench.store.results import Results, open_results
from pipebench.bench.store.stored_rows import StoredRow, script_text, stored_row, workload_of

__all__ = [
    "Results",
    "Store",
    "StoredRow",
    "TrialInputs",
    "open_results",
    "script_text",
    "stored_row",
    "trial_key",
    "workload_of",
]
