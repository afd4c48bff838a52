"""Gradients of weights added up over replicas, many in one message."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from pipebench_torch.machine import Machine

BUCKET_BYTES = 25 * 2**20
"""Of one message, as in DistributedDataParallel (Li et al., VLDB 2020, section 3.2.3): a message for every weight
would cost the latency of a ring each.
"""


def add_replicas(gradients: dict[str, Tensor], names: Sequence[str], group: Any, machine: Machine) -> None:
    """Replace the gradients of some weights by their sums over the replicas, which all give them in this order."""
    for bucket in _buckets(gradients, names):
        flat = torch.cat([gradients[name].reshape(-1) for name in bucket])
        ready = machine.sending(flat)
        dist.all_reduce(ready, group=group)
        parts = ready.to(machine.device).split([gradients[name].numel() for name in bucket])
        for name, part in zip(bucket, parts, strict=True):
            gradients[name] = part.view(gradients[name].shape)


def _buckets(gradients: dict[str, Tensor], names: Sequence[str]) -> Iterator[list[str]]:
    """Names in their order, cut where the bytes or the kind of number would not go into one message."""
    bucket: list[str] = []
    held = 0
    for name in names:
        value = gradients[name]
        more = value.numel() * value.element_size()
        if bucket and (held + more > BUCKET_BYTES or value.dtype != gradients[bucket[0]].dtype):
            yield bucket
            bucket, held = [], 0
        bucket.append(name)
        held += more
    if bucket:
        yield bucket
