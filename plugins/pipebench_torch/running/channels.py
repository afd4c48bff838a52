"""Who sends to whom: process groups of replicas, and for NCCL a connected one for each channel."""

from typing import Any

import torch
import torch.distributed as dist

from pipebench_torch.machine import Machine
from pipebench_torch.placing.layout import Layout
from pipebench_torch.placing.pieces import Traffic


def replica_groups(layout: Layout, rank: int) -> dict[int, Any]:
    """Process groups of replicas by stage; every process makes all, in one order."""
    found = {}
    for stage in range(len(layout.plan.stages)):
        ranks = layout.ranks_of(stage)
        if len(ranks) > 1:
            group = dist.new_group(list(ranks))
            if rank in ranks:
                found[stage] = group
    return found


def connected(traffic: Traffic, rank: int, machine: Machine) -> dict[tuple[int, int], Any]:
    """A process group for each pair of processes of which one sends to the other, by (source, target).

    Each is used once, in an order that all processes share: NCCL connects two processes when they first exchange
    something and holds both until then, so that a ring of processes that begin with different channels would wait
    for ever.
    """
    found = {}
    pairs = sorted({(piece.source, piece.target) for piece in traffic.pieces if not piece.local})
    for pair in pairs:
        group = dist.new_group(sorted(pair))
        if rank in pair:
            found[pair] = group
    for (source, target), group in found.items():
        word = torch.zeros(1, device=machine.device)
        if rank == source:
            dist.send(word, dst=target, group=group)
        else:
            dist.recv(word, src=source, group=group)
        machine.settle()
    return found
