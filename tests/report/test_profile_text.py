"""What `show` says of a profile besides its figures."""

from msgspec.structs import replace

from pipebench.domain.profile import Provenance
from pipebench.report.text.profiles import print_profile
from tests.builders import chain_problem, cluster
from tests.report.printed import printed


def test_a_profile_says_what_its_figures_come_from() -> None:
    origin = Provenance(profiler="analytic", made_by="here", notes=("seldom asked",), kernels="kernels of an A100")
    profile = replace(chain_problem([1], [2], cluster(1)).profile, provenance=origin)
    lines = printed(print_profile, profile).splitlines()
    for said in ("by: analytic", "from: here", "note: seldom asked", "note: kernels of an A100"):
        assert said in lines
