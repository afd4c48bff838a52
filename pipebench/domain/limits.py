"""Every limit on what is read from outside, in one place. A file above a limit is refused with the limit.

Each is far above what honest files have, and low enough that no input takes 10 s or 1 GB to be refused.
"""

KIB, MIB = 2**10, 2**20

# Files
LARGEST_FILE_BYTES = 256 * MIB
"""Of any file, and of what a gzip file or one file of a zip holds."""
LARGEST_TABLE_BYTES = 64 * MIB
"""Of a table of lines: CSV, graph.txt."""
MOST_TABLE_LINES = 1_000_000
LARGEST_RUNS_BYTES, MOST_RUNS = 16 * MIB, 20_000
"""Of a table of measured runs."""
LARGEST_KERNELS_BYTES, MOST_KERNELS = 16 * MIB, 200_000
"""Of a user's own table of measured kernels."""
MOST_RUN_PASSES = 100_000
"""Micro-batches of all stages of one measured run that is predicted."""
LARGEST_TOML_BYTES = 2 * MIB
LARGEST_CONFIG_BYTES = MIB
"""Of a model's config.json."""
MOST_LAYERS = 2_000
"""Of a model that a config.json describes: each becomes some ten operators."""
LARGEST_LAYOUT_BYTES = MIB
"""Of a layout of another framework."""
MOST_SCHEDULE_CELLS, MOST_SCHEDULE_RANKS = 1_000_000, 2**16
"""Of a torch schedule as CSV."""

# JSON and TOML
MOST_ELEMENTS = 20_000_000
"""Elements of a JSON text whose fields have types: its commas and opening brackets."""
MOST_UNTYPED_ELEMENTS = 2_000_000
"""Elements of a JSON text that becomes lists and mappings, which take more memory."""
MOST_TRACE_ELEMENTS = 10_000_000
"""Elements of a trace of torch's profiler."""
MOST_LEVELS = 64
"""Brackets inside brackets, of JSON and TOML."""
MOST_KEY_PARTS = 32
"""Parts of a dotted key of TOML."""
MOST_DIGITS = 4300
"""Of an integer: Python's own limit, which keeps the time to read it short."""

# Stores
MOST_LINE_BYTES = 16 * MIB
"""Of one row, and of one night of a history."""
MOST_ROWS_BYTES = 1024 * MIB
"""Of the rows of a store."""
MOST_PACKED_ROWS_BYTES = 256 * MIB
"""Of the rows of a packed store, when they are unpacked."""
MOST_PACKED_ELEMENTS = 10_000_000
"""Of the rows of a packed store together, counted as in JSON."""
MOST_PACKED_ROWS = 100_000
"""Rows of a packed store."""
MOST_SHARDS = 10_000
"""Parts of one sweep."""
MOST_MERGED_STORES = 10_000
"""Stores that are joined at once."""
MOST_MERGED_BYTES = 64 * 2**30
"""Of their problems, plans and schedules together; they are copied one at a time."""
MOST_DAMAGED_LINES = 10_000
"""Lines of a store that are skipped before it is no store."""
MOST_MEMBERS = 200_000
"""Files of a packed store."""
MOST_MEMBERS_BYTES = 4096 * MIB
"""Of all files of a packed store together, when they are unpacked; they are read one at a time."""
LARGEST_DIRECTORY_BYTES = 32 * MIB
"""Of the list of files at the end of a zip."""

# Processes
MOST_OUTPUT_BYTES = 64 * MIB
"""That a `cmd:` program prints as its plan."""
MOST_REASON_BYTES = 64 * KIB
"""Of the end of what it says on standard error."""
MOST_MESSAGE_BYTES = 256 * MIB
"""Of what a child process sends, and of what it is sent."""
MOST_WRITTEN_BYTES = 1024 * MIB
"""Of each file that a `cmd:` program writes, its output among them: endless output does not fill the disk."""
MOST_WORKERS = 256
"""Worker processes of `--jobs`, and never more than there are trials."""

# Simulation
MOST_DRAWN_PASSES = 1_000_000
"""Micro-batches of all parts of all stages that `draw` shows."""
MOST_UNROLLED_TASKS = 4_000_000
"""Tasks of a periodic schedule until each stage has run; a shift of millions makes more."""

# Figures
MOST_SECONDS = 1e6
MOST_BYTES = 2.0**50
MOST_RATE = 2.0**63
MOST_COUNT = 2**31
MOST_LETTERS = 1000
MOST_DEVICES = 2**16
MOST_MEMORY_BYTES = 2**62
MOST_NS, MOST_SHIFT = 2**53, 2**31
"""Limits that keep every sum of nanoseconds and bytes inside 64 bits."""
MOST_SEED = 2**63 - 1
MOST_OPTION = 2**63 - 1
"""Of a whole number that is an option of a component, either sign."""
LONGEST_WAIT_S = 1e8
"""Three years: what the system's timers all take."""
LONGEST_S = 1e15
"""Thirty million years: no time of a row is longer."""
MOST_FIGURE = 2.0**63
"""Above every count of bytes, every rate and every ratio of a row."""
MOST_CLOCK_NS = 2**63 - 1
"""The latest moment that a clock of nanoseconds shows: in the year 2262."""
MOST_INSTANT_NS = 2**62
"""Of a trace: two instants below it have a difference inside 64 bits."""
