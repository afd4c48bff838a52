"""A small pipeline that somebody wrote by hand: `python training.py FOLDER RANK PORT`, profiled by torch.profiler.

Two ranks over gloo. Rank 0 multiplies and sends, rank 1 multiplies six times as often and answers; four
micro-batches an iteration. Each rank writes FOLDER/rank<N>.json.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function, schedule

ITERATIONS, MICRO_BATCHES, WIDTH = 5, 4, 384


def work(times: int) -> torch.Tensor:
    """Multiply so often."""
    x = torch.ones(WIDTH, WIDTH)
    for _ in range(times):
        x = (x @ x) / WIDTH
    return x


def iteration(rank: int, marked: bool) -> None:
    """Forwards, then backwards."""
    buffer = torch.zeros(1000)
    for number in range(MICRO_BATCHES):
        if rank == 1:
            dist.recv(buffer, src=0, tag=number)
        with record_function(f"Forward {number}" if marked else "step"):
            work(2 * (1 + 5 * rank))
        if rank == 0:
            dist.send(buffer, dst=1, tag=number)
    for number in range(MICRO_BATCHES):
        if rank == 0:
            dist.recv(buffer, src=1, tag=100 + number)
        with record_function(f"Backward {number}" if marked else "step"):
            work(4 * (1 + 5 * rank))
        if rank == 1:
            dist.send(buffer, dst=0, tag=100 + number)


def main(folder: str, rank: int, port: str, marked: bool) -> None:
    """Meet, run, write."""
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group("gloo")
    plan = schedule(wait=0, warmup=1, active=ITERATIONS)
    write = lambda taken: taken.export_chrome_trace(f"{folder}/rank{rank}.json")  # noqa: E731
    every = [ProfilerActivity.CPU]
    with profile(activities=every, schedule=plan, record_shapes=True, on_trace_ready=write) as taken:
        for _ in range(ITERATIONS + 1):
            iteration(rank, marked)
            taken.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], len(sys.argv) > 4)
