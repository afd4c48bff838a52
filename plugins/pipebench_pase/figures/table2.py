"""Table II: the strategies on 32 devices, in four nodes."""

from collections.abc import Callable, Mapping, Sequence

from pipebench.artefacts.findings import Case, finding
from pipebench.artefacts.result_grid import Contender
from pipebench.domain.artefact import Cell, Claim, Figure, Finding, Result
from pipebench.domain.row import Row
from pipebench_pase.figures.cells import Grid, Place, cells, lost_lines, no_cells, read_grid

OURS = Contender("pase", "PaSE", "pase[describe=true,memory=ignored]", 0)
DEVICES = 32
WHERE = "section IV-C, table II"
Splits = Mapping[str, Mapping[str, int]]
Rule = Callable[[Splits], list[tuple[str, bool]]]


def _alexnet_convolutions(splits: Splits) -> list[tuple[str, bool]]:
    first_four = [(f"conv{n}: {_text(splits, f'conv{n}')}", _by_samples(splits, f"conv{n}")) for n in range(1, 5)]
    fifth = splits.get("conv5", {}).get("in_channels", 1) == 2
    return [*first_four, (f"conv5: {_text(splits, 'conv5')}", fifth)]


def _alexnet_connected(splits: Splits) -> list[tuple[str, bool]]:
    parts_of = {"fc6": (4, 8), "fc7": (8, 4), "fc8": (4, 8)}
    return [
        (
            f"{name}: {_text(splits, name)}",
            (splits.get(name, {}).get("out_features", 1), splits.get(name, {}).get("in_features", 1)) == parts,
        )
        for name, parts in parts_of.items()
    ]


def _inception(splits: Splits) -> list[tuple[str, bool]]:
    convolutions = [name for name in splits if name.endswith(".conv") and name.startswith("Mixed_")]
    early = [name for name in convolutions if not name.startswith(("Mixed_7b", "Mixed_7c"))]
    late = [name for name in convolutions if name not in early]
    plain = [name for name in early if _by_samples(splits, name)]
    mixed = [name for name in late if not _by_samples(splits, name)]
    odd = ", ".join(f"{name} {_text(splits, name)}" for name in early if name not in plain)
    early_line = f"modules A-D: {len(plain)} of {len(early)} convolutions by samples" + (
        f"; not {odd}" if odd else ""
    )
    late_line = f"module E: {len(mixed)} of {len(late)} convolutions by more than samples"
    return [(early_line, len(plain) == len(early)), (late_line, bool(mixed))]


def _rnnlm_vocabulary(splits: Splits) -> list[tuple[str, bool]]:
    return [
        (f"{name}: {_text(splits, name)}", splits.get(name, {}).get(dim, 1) == DEVICES)
        for name, dim in (("embedding", "entries"), ("projection", "out_features"))
    ]


def _rnnlm_layers(splits: Splits) -> list[tuple[str, bool]]:
    cut = splits.get("lstm", {})
    return [(f"lstm: {_text(splits, 'lstm')}", cut.get("layers", 1) == 2 and len(cut) > 1)]


def _transformer(splits: Splits) -> list[tuple[str, bool]]:
    ends = ("encoder.embedding", "decoder.embedding", "loss")
    outer = [(f"{name}: {_text(splits, name)}", "batch" not in splits.get(name, {})) for name in ends]
    middle = [cut for name, cut in splits.items() if ".attention." in name or ".ffn" in name]
    hybrid = [cut for cut in middle if "batch" in cut and len(cut) > 1]
    middle_line = (
        f"attention and feed-forward: {len(hybrid)} of {len(middle)} operators by samples and another dim"
    )
    return [*outer, (middle_line, bool(hybrid))]


CLAIMS: dict[Claim, tuple[str, Rule]] = {
    Claim(
        name="AlexNet's convolutions",
        statement="Convolutions 1 to 4 are cut by samples alone, the fifth's input channels in two",
        quote=(
            "to use data parallelism for the first four convolution layer, and to split the in-channel dimension "
            "of the last convolution layer into two"
        ),
        where=WHERE,
    ): ("alexnet", _alexnet_convolutions),
    Claim(
        name="AlexNet's fully connected layers",
        statement="Output and input features are cut 4 and 8 times, 8 and 4, 4 and 8",
        quote=(
            "split the out-channel and in-channel dimensions by 4 and 8, respectively, while for the second "
            "fully-connected layer, it suggests to split them by 8 and 4"
        ),
        where=WHERE,
    ): ("alexnet", _alexnet_connected),
    Claim(
        name="Inception's last modules",
        statement="Modules A to D are cut by samples alone, some operators of module E by more",
        quote="data parallelism for modules A–D, but for the module E, the algorithm suggests a hybrid",
        where=WHERE,
    ): ("inception_v3", _inception),
    Claim(
        name="RNNLM's vocabulary",
        statement="The vocabulary of embedding and projection is cut over all devices",
        quote="prefers fully splitting the vocabulary dimension for the embedding and projection layers",
        where=WHERE,
    ): ("rnnlm", _rnnlm_vocabulary),
    Claim(
        name="RNNLM's layers",
        statement="The LSTM's layers are cut fully, and other dims besides",
        quote="suggests to fully split the LSTM layer dimension",
        where=WHERE,
    ): ("rnnlm", _rnnlm_layers),
    Claim(
        name="the Transformer's ends",
        statement="Embeddings and loss are cut in other dims than samples, the rest in samples and others",
        quote=(
            "to use parameter parallelism for embedding and softmax layers, and to use a hybrid data+parameter "
            "parallelism for the remaining layers"
        ),
        where=WHERE,
    ): ("transformer", _transformer),
}


class StrategiesOn32:
    """hooks.reproduction.Reproduction."""

    claims = tuple(CLAIMS)

    def suite(self, full: bool, profiles: Sequence[str] = ()) -> tuple[Cell, ...]:
        """The table is four searches; there is no smaller part of it."""
        del full, profiles
        return tuple(cells((OURS,), (DEVICES,)))

    def judge(self, results: Sequence[Result]) -> list[Finding]:
        """Each claim by the splits that were found."""
        grid = read_grid(results)
        return [_finding(claim, grid, model, rule) for claim, (model, rule) in CLAIMS.items()]

    def series(self, results: Sequence[Result]) -> Figure:
        """No chart: a line for each split of a model, with the operators that have it."""
        rows = read_grid(results).rows(OURS)
        lines = [f"{place.model}: {line}" for place, row in rows for line in _lines(splits_of(row))]
        return Figure(title="PaSE, table II: splits on 32 devices", notes=(*lines, *lost_lines(results)))


def splits_of(row: Row) -> Splits:
    """The splits that the notices of a row say."""
    splits: dict[str, dict[str, int]] = {}
    for line in _split_lines(row):
        name, _, cuts = line.partition(": ")
        splits[name] = {dim: int(parts) for dim, _, parts in (cut.partition("/") for cut in cuts.split())}
    return splits


def _split_lines(row: Row) -> list[str]:
    """Notices of the form name: dim/parts dim/parts."""
    return [
        line
        for line in row.notices
        if all(cut.rpartition("/")[2].isdigit() and "/" in cut for cut in line.partition(": ")[2].split())
        and ": " in line
    ]


def _lines(splits: Splits) -> list[str]:
    """Each split once, with the first and last of its operators and how many there are."""
    owners: dict[str, list[str]] = {}
    for name in splits:
        owners.setdefault(_text(splits, name), []).append(name)
    return [
        f"{cut}: " + (", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)})")
        for cut, names in owners.items()
    ]


def _finding(claim: Claim, grid: Grid, model: str, rule: Rule) -> Finding:
    row = grid.row(Place(model, DEVICES), OURS)
    if row is None or row.claimed_native is None:
        return no_cells(claim)
    cases = [Case(text, float(holds), holds) for text, holds in rule(splits_of(row))]
    agreeing = sum(case.holds for case in cases)
    reason = f"{agreeing} of {len(cases)} as the paper says"
    if agreeing < len(cases):
        reason += "; the batch and the machine of the table are not in the paper's text, and both move the optimum"
    return finding(claim, cases, reason, value=agreeing / len(cases))


def _text(splits: Splits, name: str) -> str:
    cut = splits.get(name, {})
    return " ".join(f"{dim}/{parts}" for dim, parts in cut.items()) or "whole"


def _by_samples(splits: Splits, name: str) -> bool:
    return set(splits.get(name, {})) <= {"batch"}
