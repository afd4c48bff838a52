"""Shapes of a Mamba-2 part of a layer: its products, its weights, the steps of its scan. No times.

State-space duality (Dao & Gu 2024, Transformers are SSMs, arXiv 2405.21060): one product makes the gate z, the
inputs x, B and C and the step sizes of all heads (section 7.1); x, B and C pass a causal convolution; the scan
works on chunks of the sequence, inside them as masked attention, between them by states (section 6); its result is
gated, normed and projected.
"""

from dataclasses import dataclass

from pipebench.costs.shapes.products import Product

WIDE_BYTES = 4
"""Of an element of states, scores and step sizes where the scan holds them in fp32."""
MAMBA_IN, MAMBA_OUT = "mamba_in", "mamba_out"


@dataclass(frozen=True, slots=True)
class ScanStep:
    """One kernel, for a token: FLOP of products, elements that it reads and writes, and those of them in fp32."""

    name: str
    flops: float
    elements: float
    wide: float = 0.0

    def bytes(self, element_bytes: float) -> float:
        """What it moves for a token."""
        return element_bytes * self.elements + WIDE_BYTES * self.wide


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba:
    """heads of `head` features each; groups: of heads that share B and C; state: features of B, of C and of a
    head's state for each of its own; kernel: tokens that the convolution sees; chunk: tokens of a chunk.
    """

    heads: int
    head: int
    groups: int
    state: int
    kernel: int
    chunk: int

    @property
    def inner(self) -> int:
        """Width of all heads."""
        return self.heads * self.head

    @property
    def shared(self) -> int:
        """Width of B, and of C."""
        return self.groups * self.state

    @property
    def convolved(self) -> int:
        """Channels of the convolution: x, B and C."""
        return self.inner + 2 * self.shared

    @property
    def projected(self) -> int:
        """What the first product makes of a token: z, x, B, C and a step size for each head."""
        return self.inner + self.convolved + self.heads

    def products(self, tokens: float, hidden: int) -> tuple[Product, ...]:
        """Those around the scan. Tensor parallelism splits them by heads and by groups."""
        return (
            Product(MAMBA_IN, tokens, hidden, self.projected),
            Product(MAMBA_OUT, tokens, self.inner, hidden),
        )

    @property
    def vectors(self) -> int:
        """Weights besides the products': convolution and its bias; decay, skip and bias of the step of each head;
        the norm. All belong to heads or groups.
        """
        return self.convolved * (self.kernel + 1) + 3 * self.heads + self.inner

    def states(self, tokens: int) -> float:
        """Elements of the states between chunks, for a token of so many."""
        return self.inner * self.state / min(self.chunk, tokens)

    def scan_flops(self, tokens: int) -> float:
        """Of the forward's scan, for a sample. Inside a chunk a token sees those before it, itself by half."""
        return tokens * sum(step.flops for step in self.forward(tokens))

    def forward(self, tokens: int) -> tuple[ScanStep, ...]:
        """The kernels between both products, for a token of a sample of so many.

        As released (github state-spaces/mamba, ops/triton/ssd_combined.py): states in fp32, the gate in the last
        step, which also writes its result before the gate for the backward.
        """
        inner, shared, states = self.inner, self.shared, self.states(tokens)
        chunk = min(self.chunk, tokens)
        scores = chunk * self.groups
        return (
            self._convolution,
            self._decays,
            self._states(states),
            ScanStep("pass states", 0.0, states, states),
            self._scores(chunk),
            ScanStep(
                "outputs",
                2.0 * inner * self.state + chunk * inner,
                4 * inner + shared + states,
                scores + 2 * self.heads,
            ),
            ScanStep("norm", 0.0, 2 * inner),
        )

    def backward(self, tokens: int) -> tuple[ScanStep, ...]:
        """Those of the backward, which makes all but the outputs again (the same file)."""
        inner, shared, states = self.inner, self.shared, self.states(tokens)
        chunk = min(self.chunk, tokens)
        scores, across, inside = chunk * self.groups, 2.0 * inner * self.state, float(chunk * inner)
        back = ScanStep("gradient through scores", 2.0 * scores * self.state, 2 * shared, scores)
        return (
            ScanStep("gradient of norm", 0.0, 3 * inner),
            self._convolution,
            self._decays,
            self._scores(chunk),
            self._states(states),
            ScanStep("pass states", 0.0, 0.0, 2 * states),
            ScanStep("gradient of gate", 0.0, 6 * inner),
            ScanStep("gradient of states", across, inner + shared, states + self.heads),
            ScanStep("pass gradients", 0.0, 2 * states, 2 * states),
            ScanStep("gradient of x", across + inside, 3 * inner + shared + states, scores + 3 * self.heads),
            ScanStep("gradient of B", across, inner + shared + states, shared + self.heads),
            ScanStep("gradient of C", across, inner + shared + states, shared + self.heads),
            ScanStep("gradient of scores", inside, 2 * inner, scores + 2 * self.heads),
            *(back, back),  # to B and to C
            ScanStep("gradient of decays", inside, 2 * inner, scores + 2 * self.heads),
            ScanStep("gradient of steps", 0.0, self.heads, 3 * self.heads),
            ScanStep("gradient of convolution", 0.0, 3 * self.convolved),
        )

    @property
    def _convolution(self) -> ScanStep:
        return ScanStep("convolution", 0.0, 2 * self.convolved)

    @property
    def _decays(self) -> ScanStep:
        return ScanStep("decays", 0.0, self.heads, 2 * self.heads)

    def _states(self, states: float) -> ScanStep:
        return ScanStep("states", 2.0 * self.inner * self.state, self.inner + self.shared, states + 2 * self.heads)

    def _scores(self, chunk: int) -> ScanStep:
        """C times B inside each chunk, for each group; none is left out."""
        scores = chunk * self.groups
        return ScanStep("scores", 2.0 * scores * self.state, 2 * self.shared, scores)

    @property
    def kept(self) -> int:
        """Elements of a token that the backward reads: what the first product made, the scan's result before and
        behind the gate, and what the last product reads. Norms keep a deviation for each group besides.
        """
        return self.projected + 3 * self.inner


MAMBA_SIZES = ("heads", "head", "groups", "state", "kernel", "chunk")
"""Fields of Mamba, as which an operator has them as dims."""
