#!/usr/bin/env python3
"""Writes sampler.txt and ddp.txt beside this file: what Python's torch does, for the tests of the worker SDK.

Run with torch 2.11.0 and numpy:  python3 tests/worker_sdk/golden/make_golden.py
"""
import os
import pathlib
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

HERE = pathlib.Path(__file__).parent
STEPS = 10
BATCH = 8


def sampler_lines():
    cases = [
        (n, ranks, seed, epoch, shuffle, drop_last)
        for n, ranks in [(1, 1), (1, 4), (3, 8), (10, 1), (10, 4), (12, 4), (101, 3), (1000, 2)]
        for seed, epoch in [(0, 0), (0, 1), (7, 3)]
        for shuffle in [True, False]
        for drop_last in [False, True]
    ]
    for n, ranks, seed, epoch, shuffle, drop_last in cases:
        for rank in range(ranks):
            sampler = DistributedSampler(
                range(n), num_replicas=ranks, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last
            )
            sampler.set_epoch(epoch)
            indices = " ".join(str(i) for i in sampler)
            yield f"{n} {ranks} {rank} {seed} {epoch} {int(shuffle)} {int(drop_last)} {len(sampler)} {indices}".rstrip()


class Net(torch.nn.Module):
    """6-5-3, with parameters from a formula, so that no generator has to agree."""

    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(6, 5)
        self.fc2 = torch.nn.Linear(5, 3)
        with torch.no_grad():
            for k, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel(), dtype=torch.float32)
                parameter.copy_((torch.sin(values + k) * 0.5).reshape(parameter.shape))

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def batch_of(step, rank):
    start = (step * 16 + rank) * BATCH
    x = torch.cos(torch.arange(start * 6, (start + BATCH) * 6, dtype=torch.float32)).reshape(BATCH, 6)
    return x, torch.arange(start, start + BATCH) % 3


def train(rank, ranks, port, results):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    net = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        x, y = batch_of(step, rank)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    if rank == 0:
        results.put([p.detach().flatten().tolist() for p in net.module.parameters()])
    dist.barrier()
    dist.destroy_process_group()


def ddp_lines():
    for ranks in [1, 2, 4]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        results = mp.get_context("spawn").SimpleQueue()
        workers = mp.spawn(train, args=(ranks, port, results), nprocs=ranks, join=False)
        parameters = results.get()
        workers.join()
        for k, values in enumerate(parameters):
            yield f"{ranks} {k} " + " ".join(f"{v:.9g}" for v in values)


if __name__ == "__main__":
    assert torch.__version__.startswith("2.11.0"), torch.__version__
    head = f"# Written by make_golden.py with torch {torch.__version__}.\n"
    (HERE / "sampler.txt").write_text(
        head + "# n ranks rank seed epoch shuffle drop_last len indices…\n" + "\n".join(sampler_lines()) + "\n"
    )
    (HERE / "ddp.txt").write_text(head + "# ranks parameter values…\n" + "\n".join(ddp_lines()) + "\n")
