"""Scaling a profile scales what it says of activations and times, and nothing else."""

import pytest

from pipebench.costs.shapes.rescale import scale_profile
from pipebench.domain.profile import Profile
from tests.analytic.profiling import run
from tests.models.zoo import model


@pytest.fixture(scope="module")
def resnet() -> Profile:
    return run(model("resnet50"), (2, 4))


def test_everything_but_the_parameters_grows(resnet: Profile) -> None:
    made = scale_profile(resnet, 2.5)
    assert made.graph.parameters == resnet.graph.parameters
    for before, after in zip(resnet.graph.tensors, made.graph.tensors, strict=True):
        assert after.forward_bytes_per_sample == 2.5 * before.forward_bytes_per_sample
        assert after.gradient_bytes_per_sample == 2.5 * before.gradient_bytes_per_sample
    for old, new in zip(resnet.costs[0].operators, made.costs[0].operators, strict=True):
        assert new.forward_s == tuple(2.5 * each for each in old.forward_s)
        assert new.backward_s == tuple(2.5 * each for each in old.backward_s)
        assert new.saved_bytes_per_sample == 2.5 * old.saved_bytes_per_sample
        assert new.workspace_bytes == old.workspace_bytes


def test_a_scaled_profile_says_so_and_one_that_is_not_is_the_same(resnet: Profile) -> None:
    assert "scaled by 2.5" in scale_profile(resnet, 2.5).provenance.notes[-1]
    assert scale_profile(resnet, 1.0) is resnet


def test_it_is_nearly_the_profile_of_the_larger_image() -> None:
    """Convolutions dominate: 448 x 448 is 4 times 224 x 224, rates being equal."""
    small, large = (run(model("resnet50", image_size=size), (8,), launch_s=0.0, r_half=0.0) for size in (224, 448))
    grown = scale_profile(small, 4.0)

    def seconds(made: Profile) -> float:
        return sum(c.forward_s[0] + c.backward_s[0] for c in made.costs[0].operators)

    def saved(made: Profile) -> float:
        return sum(c.saved_bytes_per_sample for c in made.costs[0].operators)

    assert seconds(grown) == pytest.approx(seconds(large), rel=0.03)
    assert saved(grown) == pytest.approx(saved(large), rel=1e-3)
