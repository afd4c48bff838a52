"""Plans in which ranks cannot share out experts are invalid, and the witness says what to do."""

from msgspec.structs import replace

from pipebench.check import check_plan
from tests.costs.test_experts import one_layer, one_stage


def test_ranks_make_whole_groups() -> None:
    given = one_layer(4)
    assert check_plan(given, one_stage(4)).status == "valid"
    assert check_plan(given, one_stage(2, 2)).status == "valid"
    six = replace(one_stage(6), stages=(replace(one_stage(6).stages[0], micro_batch=8),))
    verdict = check_plan(given, six)
    assert verdict.witness is not None
    assert (verdict.witness.rule, verdict.witness.stage, verdict.witness.operator) == ("shape", 0, "layer")
    assert verdict.witness.message == (
        "stage 0 has experts, which 4 ranks share out, and data_parallel 6 x tensor_parallel 1 = 6 ranks: it must "
        "be a multiple of 4; take other --dp, --tp or --pp, or --ep 2"
    )
    assert check_plan(one_layer(1), six).status == "valid"


def test_replicas_that_exchange_tokens_run_together() -> None:
    turns = replace(one_stage(4), stages=(replace(one_stage(4).stages[0], replicas="round_robin", micro_batch=1),))
    verdict = check_plan(one_layer(4), turns)
    assert verdict.witness is not None
    assert "replicas take micro-batches in turn" in verdict.witness.message
    assert check_plan(one_layer(1), turns).status == "valid"


def test_an_operator_with_experts_is_split_by_tensor_parallelism() -> None:
    whole = replace(one_stage(2, 2), stages=(replace(one_stage(2, 2).stages[0], choice=()),))
    verdict = check_plan(one_layer(4), whole)
    assert verdict.witness is not None
    assert "runs whole on each of the 2 tensor-parallel ranks of stage 0" in verdict.witness.message
    assert check_plan(one_layer(1), whole).status == "valid"
