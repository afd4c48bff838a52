"""From an artefact's cells to problems: the paper's chain, scaled inputs, refusals that cost their own cell."""

import json
from pathlib import Path

import pytest

from pipebench.bench.reproduction.reproduce import Remainder, remainder, run_cells, work_of
from pipebench.bench.store import Store
from pipebench.bench.sweeps.sweep import Where
from pipebench.bench.trials.trial import run_trial
from pipebench.domain.artefact import Cell
from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.profiles.shipped import profiles_folder
from pipebench.hooks.manager import Host
from tests.shared_data import shared_data

IMAGE_BYTES = 12e6


def cell(profile: str, planner: str = "pipedream", **fields: object) -> Cell:
    given: dict[str, object] = {
        "at": {"network": profile}, "planner": planner, "profile": profile, "cluster": "madpipe", "devices": 2,
        "memory": "16GB", "micro_batch": 8, "mini_batch": 8, "dp": 1, "input_bytes": IMAGE_BYTES, "chain": True,
    }  # fmt: skip
    return Cell(**{**given, **fields})  # type: ignore[arg-type]


def profile_of(made: Cell) -> Profile:
    (trial,) = work_of(Host(), [made]).agenda.trials
    return trial.workload.profile


@pytest.mark.parametrize(
    ("name", "layers", "stored_gb"),
    [("resnet50", 39, 8.8), ("resnet101", 73, 13.2), ("inception_v3", 33, 5.8), ("densenet121", 77, 10.6)],
)
def test_networks_that_ship_are_the_chains_that_a_study_measured(name: str, layers: int, stored_gb: float) -> None:
    """Layers and sum of a_{l-1} at batch 8 of PipeDream's profiles at 1000 x 1000; two differ slightly."""
    made = profile_of(cell(name))
    assert len(made.graph.operators) == pytest.approx(layers, abs=2)
    stored = 8 * sum(costs.saved_bytes_per_sample for costs in made.costs[0].operators) / 1e9
    assert stored == pytest.approx(stored_gb, rel=0.03)
    for operator, costs in zip(made.graph.operators, made.costs[0].operators, strict=True):
        sizes = [made.graph.tensors[made.graph.tensor_index[t]].forward_bytes_per_sample for t in operator.inputs]
        assert costs.saved_bytes_per_sample == sum(sizes)


def test_a_measured_profile_and_the_model_store_the_same() -> None:
    """PipeDream's resnet50 was profiled at 224; scaled to 1000 its layers store what the model's do, to 1 %."""
    file = shared_data("pipedream/resnet50.txt")
    measured, computed = profile_of(cell(f"{file}[saved=boundary]")), profile_of(cell("resnet50"))
    one, other = (sum(c.saved_bytes_per_sample for c in p.costs[0].operators) for p in (measured, computed))
    assert one == pytest.approx(other, rel=0.01)
    assert len(measured.graph.operators) == len(computed.graph.operators)


def test_joined_layers_take_the_time_of_their_operators_at_the_pinned_size() -> None:
    whole, joined = profile_of(cell("resnet50", chain=False)), profile_of(cell("resnet50"))
    at = whole.costs[0].micro_batches.index(8)
    assert joined.costs[0].micro_batches == (8,)
    for part in ("forward_s", "backward_s"):
        before = sum(getattr(costs, part)[at] for costs in whole.costs[0].operators)
        assert sum(getattr(costs, part)[0] for costs in joined.costs[0].operators) == pytest.approx(before)


def test_a_chain_is_made_of_operators_with_several_ways_and_sizes() -> None:
    assert profile_of(cell("transformer", input_bytes=None)).costs[0].micro_batches == (8,)


def test_a_size_that_was_not_profiled_is_told() -> None:
    with pytest.raises(PipebenchError, match="1, 2, 4, 8, not 16"):
        work_of(Host(), [cell("resnet50", micro_batch=16, mini_batch=16)])


def test_planners_and_options_that_do_not_exist_cost_their_own_cell() -> None:
    cells = [cell("resnet50", "madpip"), cell("resnet50"), cell("resnet50", "pipedream[memory=q]")]
    work = work_of(Host(), cells)
    assert list(work.places) == [1]
    assert {place: row.status for place, row in work.refused.items()} == {0: "skipped", 2: "skipped"}
    assert "madpipe" in work.refused[0].reason
    assert [result.cell for result in work.results([])] == [cells[0], cells[2]]


def test_cells_of_one_problem_share_it() -> None:
    work = work_of(Host(), [cell("resnet50", p) for p in ("pipedream", "contiguous-exact")])
    first, second = work.agenda.trials
    assert first.workload is second.workload
    assert work.expected_s == 2.0


def test_what_artefacts_share_is_left_once_and_run_once(tmp_path: Path) -> None:
    """Both are planned before the first one runs: afterwards the second one has its cell from the store."""
    host, store = Host(), Store.open(tmp_path / "store")
    shared, own = cell("resnet50", expected_s=7.0), cell("resnet50", "contiguous-exact", expected_s=2.0)
    first, second = (work_of(host, cells, store) for cells in ([shared], [shared, own]))
    assert remainder([first, second]) == Remainder(in_store=0, to_run=2, expected_s=9.0)
    rows = [each.outcome.row for each in run_cells(host, first, Where())]
    assert [row.status for row in rows] == ["ok"]
    assert rows[0].elapsed_s is not None
    assert rows[0].elapsed_s >= (rows[0].search_cold_s or 0.0) > 0
    renewed = second.up_to_date()
    assert remainder([renewed]) == Remainder(in_store=1, to_run=1, expected_s=2.0)
    assert renewed.results(renewed.agenda.cached)[0].row == rows[0]


def test_where_the_plan_alone_is_asked_for_no_memory_is_searched() -> None:
    """An infeasible cell says so, and not what would do: that search takes a score of searches."""
    host = Host()
    for repeat, known in ((0, False), (1, True)):
        (trial,) = work_of(host, [cell("resnet50", memory="2GB", repeat=repeat)]).agenda.trials
        row = run_trial(host, trial).row
        assert row.status == "infeasible"
        assert (row.smallest_memory_bytes is not None) == known


def test_a_profile_without_inputs_cannot_be_scaled(tmp_path: Path) -> None:
    """Its images may have any size."""
    document = json.loads((profiles_folder() / "resnet50.json").read_text())
    graph = document["content"]["graph"]
    graph["tensors"] = [tensor for tensor in graph["tensors"] if tensor["producer"] is not None]
    first = graph["operators"][0]
    first["inputs"] = []
    del first["axes"]["image"]
    file = tmp_path / "blind.json"
    file.write_text(json.dumps(document))
    with pytest.raises(PipebenchError, match="no input tensor"):
        work_of(Host(), [cell(str(file))])
