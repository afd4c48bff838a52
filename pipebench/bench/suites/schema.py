"""The JSON Schema of a suite file, generated from its types."""

from typing import Any

import msgspec

from pipebench.bench.suites.table import Suite, SuiteWorkload
from pipebench.domain.workload import workload_fields


def suite_schema() -> dict[str, Any]:
    """The schema, with the text of each key and what types cannot say: a model or a profile, one mini-batch."""
    (reference,), definitions = msgspec.json.schema_components([Suite], ref_template="#/$defs/{name}")
    workload = definitions[SuiteWorkload.__name__]
    for name, field in workload_fields().items():
        workload["properties"][name]["description"] = f"{field.text}."
    workload["oneOf"] = [{"required": ["model"]}, {"required": ["profile"]}]
    workload["not"] = {"required": ["mini_batch", "mini_batch_per_device"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pipebench suite",
        **reference,
        "$defs": definitions,
    }
