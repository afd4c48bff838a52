"""Small texts that ask for much, or that are taken for something else: names, options, plans, model files."""

import json
import time
from io import StringIO
from pathlib import Path

import pytest

from pipebench.bench.accuracy.summary import Variant
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.value import Value
from pipebench.formats.hf_config import read_config
from pipebench.hooks.syntax import parse_reference, typed_options
from pipebench.report.text.console import SafeConsole
from pipebench.report.text.measurements.accuracy import variants_table
from pipebench.report.text.tables import print_table
from pipebench_models.llm_options import LLMOptions
from pipebench_models.options import DLRMOptions, MMTOptions


@pytest.mark.parametrize("name", ["a[/b]", "[red]x[/red]", "[link=http://x]y", ":bug:", "a\\[b]"])
@pytest.mark.parametrize("width", [20, 80])
def test_a_name_is_printed_as_it_stands(name: str, width: int) -> None:
    """Markup of rich in a table ended `accuracy` as an internal error, or was left out of the name."""
    out = StringIO()
    console = SafeConsole(file=out, width=width, highlight=False)
    console.print(name)
    print_table(console, variants_table([Variant(field=name, value="v", usual=True, count=1, errors=None)]))
    printed = out.getvalue()
    assert printed.startswith(f"{name}\n")
    assert "".join(name.split()) in "".join(printed.removeprefix(name).split())


class Numbers(Value, frozen=True, kw_only=True):
    """Options with whole numbers."""

    one: int = 0
    some: tuple[int, ...] = ()
    may: int | None = None
    text: str = ""


@pytest.mark.parametrize("option", ["one", "may", "some"])
@pytest.mark.parametrize("number", [str(2**63), f"-1{'0' * 30}", "1" * 5000], ids=["64 bits", "negative", "long"])
def test_whole_numbers_that_no_document_holds(option: str, number: str) -> None:
    """They ended every command with an internal error."""
    with pytest.raises(PipebenchError, match=f"option '{option}': .* digits"):
        typed_options(parse_reference(f"p[{option}={number}]"), Numbers)


def test_whole_numbers_that_documents_hold() -> None:
    most = str(2**63 - 1)
    given = typed_options(parse_reference(f"p[one=-{most},some=1:{most},may={most},text={10**30}]"), Numbers)
    assert given == Numbers(one=1 - 2**63, some=(1, 2**63 - 1), may=2**63 - 1, text=str(10**30))


@pytest.mark.parametrize("name", ["layers", "mtp"])
def test_a_model_of_a_billion_layers(name: str) -> None:
    with pytest.raises(InvalidValue, match=f"{name} is 1000000000, it must be at most 2000"):
        LLMOptions(**{name: 10**9})


def test_layers_of_branches_count_together() -> None:
    with pytest.raises(InvalidValue, match="branches=2000 of layers=2000 are 4000000 layers"):
        MMTOptions(branches=2000, layers=2000)
    with pytest.raises(InvalidValue, match="dense=2000 of layers=4"):
        DLRMOptions(dense=2000)


@pytest.mark.parametrize(
    ("option", "text"),
    [("windowed", "w0"), ("windowed", "w٣"), ("routed", "e0"), ("hybrid", "m0"), ("hybrid", "a٣")],
)
def test_turns_of_no_layer(option: str, text: str) -> None:
    """The model crashed: no layer had its turn. Counts are written in the usual digits."""
    with pytest.raises(InvalidValue, match="numbers that repeat"):
        LLMOptions(architecture="mixtral", experts=2, window=4, **{option: text})  # type: ignore[arg-type]


def test_an_order_that_a_plan_says_twice() -> None:
    """A million of one edge kept a command for ten minutes, behind the search's time limit."""
    stages = tuple(Stage(operators=(name,), devices=(device,), micro_batch=1) for device, name in enumerate("ab"))
    with pytest.raises(InvalidValue, match=r"order edge \(0, 1\) stands twice"):
        Plan(stages=stages, order_edges=((0, 1),) * 1000)


@pytest.mark.parametrize("said", [{"devices": (10**30,)}, {"in_flight": 10**30}])
def test_numbers_of_a_plan_that_no_message_holds(said: dict[str, object]) -> None:
    """A program's plan with one was told as a process that had ended."""
    with pytest.raises(InvalidValue, match="it must be at most 2"):
        Stage(**{"operators": ("a",), "devices": (0,), "micro_batch": 1} | said)  # type: ignore[arg-type]


MOE = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 2000,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "moe_intermediate_size": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 64,
}


def test_a_list_of_dense_layers_as_long_as_a_file_may_be(tmp_path: Path) -> None:
    """Each of 2,000 layers was looked for in it from its start: 20 s for a file of 1 MB."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MOE | {"mlp_only_layers": [7] * 500_000}, separators=(",", ":")))
    began = time.process_time()
    assert read_config(str(path)).options["routed"] == "e7de1985"
    assert time.process_time() - began < 5


@pytest.mark.parametrize("layers", [["3"], [3.0], [True], [[3]]])
def test_layers_that_are_no_numbers(tmp_path: Path, layers: list[object]) -> None:
    """They were passed over, and the layer was priced with experts."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MOE | {"mlp_only_layers": layers}))
    with pytest.raises(PipebenchError, match="it must be a list of numbers of layers"):
        read_config(str(path))
