"""Mamba-2: weights, the bytes and FLOP of its scan's kernels, and what it keeps, by hand."""

from pipebench.costs.shapes.kept import saved_bytes
from pipebench.costs.shapes.mamba import Mamba, ScanStep
from pipebench.costs.shapes.transformer import LayerShape

T, H = 96, 48
HEADS, P, G, N, KERNEL, CHUNK = 6, 8, 2, 16, 4, 32
INNER = HEADS * P
MAMBA = Mamba(heads=HEADS, head=P, groups=G, state=N, kernel=KERNEL, chunk=CHUNK)
SHAPE = LayerShape(sequence=T, hidden=H, norms=1, mamba=MAMBA)
SIZE = 2


def weights(ways: int) -> int:
    """On one of so many devices: heads and groups are shared out, the layer's norm is not."""
    heads, groups = HEADS // ways, G // ways
    inner, channels = heads * P, heads * P + 2 * groups * N
    made = H * (2 * inner + 2 * groups * N + heads) + inner * H
    return H + made + channels * KERNEL + channels + 3 * heads + inner


def test_weights_are_shared_out_by_heads_and_groups() -> None:
    assert [SHAPE.weights(ways) for ways in (1, 2)] == [weights(1), weights(2)]


def test_flops_of_the_scan_are_those_of_its_definition() -> None:
    """Dao & Gu 2024, section 6: pairs in a chunk for each head, states made and read, scores for each group."""
    flops = 0.0
    for token in range(T):
        before = token % CHUNK
        flops += HEADS * 2 * P * (before + 0.5)
        flops += HEADS * 2 * 2 * P * N
    flops += (T // CHUNK) * G * 2 * CHUNK * CHUNK * N
    assert MAMBA.scan_flops(T) == flops


def moved(step: ScanStep) -> float:
    return T * step.bytes(SIZE)


def test_forward_kernels_move_the_tensors_that_they_read_and_write() -> None:
    """Bytes of each tensor by its shape; states, scores, decays and steps are in fp32."""
    chunks = T // CHUNK
    x, shared, steps = SIZE * T * INNER, SIZE * T * G * N, SIZE * T * HEADS
    wide = 2 * 4 * T * HEADS  # decays and steps
    states = chunks * HEADS * P * N
    scores = 4 * chunks * G * CHUNK * CHUNK
    expected = {
        "convolution": 2 * (x + 2 * shared),
        "decays": steps + wide,
        "states": shared + x + wide + 4 * states,
        "pass states": 4 * states + SIZE * states,
        "scores": 2 * shared + scores,
        "outputs": scores + x + wide + shared + SIZE * states + x + 2 * x,  # x, C, states, z; before and behind z
        "norm": 2 * x,
    }
    assert {step.name: moved(step) for step in MAMBA.forward(T)} == expected


def test_the_backward_makes_all_but_the_outputs_again() -> None:
    forward, backward = MAMBA.forward(T), MAMBA.backward(T)
    again = {step for step in forward if step.name not in ("outputs", "norm", "pass states")}
    assert again < set(backward)
    tokens_states = HEADS * P * N * 2
    pairs = HEADS * P * CHUNK  # two FLOP for each pair, half of them are seen
    scores = 2 * CHUNK * G * N
    gradients = 4 * tokens_states + 3 * pairs + 2 * scores  # of states, x, B, C; x, scores, decays; B and C
    assert sum(step.flops for step in backward) == tokens_states + scores + gradients


def test_backward_kernels_move_the_tensors_that_they_read_and_write() -> None:
    """Those that are no part of the forward. d: the gradient of what stands behind it."""
    chunks = T // CHUNK
    x, shared, steps = SIZE * T * INNER, SIZE * T * G * N, SIZE * T * HEADS
    wide, states, scores = 4 * T * HEADS, chunks * HEADS * P * N, 4 * chunks * G * CHUNK * CHUNK
    expected = {
        "gradient of norm": 3 * x,  # input, d output; d input
        "gradient of gate": 6 * x,  # x, z, result, d result; d z, d result before the gate
        "gradient of states": shared + wide + x + 4 * states,  # C, decays, d result; d states
        "pass gradients": 2 * 4 * states + 2 * SIZE * states,  # states, d states; both again, narrow
        "gradient of x": 3 * x
        + shared
        + SIZE * states
        + scores
        + 3 * wide,  # x, d result, B, d states; d x, d steps
        "gradient of B": x + shared + SIZE * states + wide + 4 * T * G * N,  # x, B, d states; d B
        "gradient of C": x + shared + SIZE * states + wide + 4 * T * G * N,  # d result, C, states; d C
        "gradient of scores": 2 * x + 2 * wide + scores,  # x, d result; d scores
        "gradient through scores": scores + 2 * shared,  # d scores, B or C; d of the other one
        "gradient of decays": 2 * x + 2 * wide + scores,
        "gradient of steps": steps + 3 * wide,
        "gradient of convolution": 3 * (x + 2 * shared),
    }
    moves = {step.name: moved(step) for step in MAMBA.backward(T)}
    assert {name: size for name, size in moves.items() if name.startswith(("gradient", "pass g"))} == expected
    assert moves["pass states"] == 2 * 4 * states  # as they are, in fp32


def test_a_sequence_shorter_than_a_chunk_is_one_chunk() -> None:
    assert MAMBA.scan_flops(8) == 8 * (HEADS * 2 * 2 * P * N + HEADS * P * 8 + 2 * 8 * G * N)


def test_what_the_backward_reads_is_kept() -> None:
    """A token: the layer's input and its norm; what the first product made; the scan's result before and behind
    the gate; what the last product reads; a deviation for each group.
    """
    projected = 2 * INNER + 2 * G * N + HEADS
    kept = T * (SIZE * (2 * H + projected + 3 * INNER) + 4 * G)
    assert saved_bytes(SHAPE, SIZE) == kept
    assert saved_bytes(SHAPE, SIZE, 2) == kept / 2
    assert saved_bytes(SHAPE, SIZE, 2, sequence_split=False) == kept / 2 + T * SIZE * H
    assert saved_bytes(SHAPE, SIZE, narrow_bytes=1) == kept - T * (H + INNER)


def test_parts_alone_are_together_a_whole_layer() -> None:
    """Attention and a feed-forward part, each with its norm: weights, products, what is kept, what is reduced."""
    attention = LayerShape(sequence=T, hidden=H, norms=1, heads=6, kv_heads=2, head=8)
    feed_forward = LayerShape(sequence=T, hidden=H, norms=1, ffn=80, branches=2)
    whole = LayerShape(sequence=T, hidden=H, heads=6, kv_heads=2, head=8, ffn=80, branches=2)
    for ways in (1, 2):
        assert attention.weights(ways) + feed_forward.weights(ways) == whole.weights(ways)
        for split in (True, False):
            parts = [saved_bytes(each, SIZE, ways, sequence_split=split) for each in (attention, feed_forward)]
            assert sum(parts) == saved_bytes(whole, SIZE, ways, sequence_split=split)
    assert attention.products + feed_forward.products == whole.products
    assert attention.crossings(shared=False) + feed_forward.crossings(shared=False) == whole.crossings(
        shared=False
    )
