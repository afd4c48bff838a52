"""A measured training run: one row of a table of runs. Its fields are the columns, in their order."""

import msgspec

from pipebench.domain.value import Value

NOTES = ("inferred", "twofold")
"""Fields of a run that are no columns: the reader fills them."""
OPTIONAL = ("ffn", "kv_heads")
"""Columns that a table may leave out."""


class Run(Value, frozen=True, kw_only=True):
    """One configuration and how long one of its iterations took. None and '': the source does not say.

    id: of the row, unique in its table.
    model: its name, such as gpt-3.6B or llama3-8B. Of some well-known models the sizes are known by the name.
    layers: of the model.
    hidden: width of a token.
    heads: of an attention.
    seq: tokens of a sample.
    vocab: entries of the embedding's table.
    gpus: how many GPUs ran it.
    device: their name, such as A100-80GB or DGX-H100.
    nodes_gpus: nodes (or n), x, GPUs of a node, then the links between nodes: `nx8, 8x200 Gb/s`, `1x8`,
    `nx8, 400 Gb/s a GPU`, `nx4, 100 Gb/s a node`.
    tp: tensor parallelism.
    pp: pipeline parallelism: devices in a row.
    dp: data parallelism: replicas. One of tp, pp and dp may be left out, it follows from the number of GPUs.
    cp: context parallelism: ranks that share out the sequence of each sample.
    vpp: stages on each device.
    ep: expert parallelism: ranks that share out the experts, of models whose experts are known by the name.
    mbs: samples of the micro-batch of one replica.
    gbs: samples of the mini-batch, of all replicas.
    partition: layers of each stage in the order of execution, such as 5-6-6-5.
    schedule: such as 1f1b, interleaved-1f1b, zb-1p; what follows the first word is not read.
    recompute: none, selective or full. Modules that run again may follow selective, in Megatron-LM's words
    (`selective=moe_act+mla_up_proj`); `+ sequence parallel` or `+ no sequence parallel` may follow all of it.
    precision: fp16, bf16, fp32, or a narrower one; `+compile` and `+asyncTP` or `+no asyncTP` may follow.
    framework: its name first, such as Megatron-LM; `distributed optimizer` and `overlapped reduction` (of
    gradients, beside the backward) may follow, either with `no` before it, and `FSDP`; `=N` behind what is shared
    out: groups of N replicas share a copy each.
    iter_s: measured seconds of one iteration.
    samples_s_gpu: samples a second and GPU, as the source prints it.
    tokens_s_gpu: tokens a second and GPU, as the source prints it.
    tflops_gpu: model TFLOP/s a GPU, as the source prints it.
    mem_gib: measured peak of the fullest GPU in GiB.
    predicted_by_source_s: what the source's own model predicts.
    source: where the row is from.
    how_read: how it was read there.
    ffn: width inside the feed-forward part; of a GPT four times hidden where it is not said.
    kv_heads: key and value heads of an attention; of a GPT as many as heads where it is not said.
    inferred: columns whose value carries a `?`: whoever read the source inferred it.
    twofold: columns that state two values, such as `2 (4)`; the fields hold the first.
    """

    id: str
    model: str
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    seq: int | None = None
    vocab: int | None = None
    gpus: int
    device: str
    nodes_gpus: str = ""
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    vpp: int | None = None
    ep: int | None = None
    mbs: int | None = None
    gbs: int | None = None
    partition: str = ""
    schedule: str = ""
    recompute: str = ""
    precision: str = ""
    framework: str = ""
    iter_s: float
    samples_s_gpu: float | None = None
    tokens_s_gpu: float | None = None
    tflops_gpu: float | None = None
    mem_gib: float | None = None
    predicted_by_source_s: float | None = None
    source: str = ""
    how_read: str = ""
    ffn: int | None = None
    kv_heads: int | None = None
    inferred: tuple[str, ...] = ()
    twofold: tuple[str, ...] = ()

    @property
    def measured_memory_bytes(self) -> int | None:
        """The measured peak in bytes."""
        return None if self.mem_gib is None else round(self.mem_gib * 2**30)


COLUMNS: tuple[str, ...] = tuple(name for name in Run.__struct_fields__ if name not in (*NOTES, *OPTIONAL))
"""Columns that a table has."""
REQUIRED: tuple[str, ...] = tuple(field.name for field in msgspec.structs.fields(Run) if field.required)
"""Columns without which a row says nothing."""
_KINDS = {field.name: field.type for field in msgspec.structs.fields(Run)}
COUNTS: tuple[str, ...] = tuple(name for name in (*COLUMNS, *OPTIONAL) if _KINDS[name] in (int, int | None))
FIGURES: tuple[str, ...] = tuple(name for name in COLUMNS if _KINDS[name] in (float, float | None))
