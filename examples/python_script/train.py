#!/usr/bin/env python3
"""An ordinary DistributedDataParallel script, written for torchrun; muster runs it unchanged.

    torchrun   --standalone --nproc-per-node 2 train.py
    muster run --standalone --nproc-per-node 2 train.py

Every rank prints who it is and, at the end, a checksum of its parameters, which is the same on all ranks and under both
launchers; rank 0 prints the loss. Without torch each only says who it is.
"""

import argparse
import os
import zlib

try:
    import torch
    import torch.distributed as dist
except ModuleNotFoundError:
    torch = None


def batch_of(rank, step, size=32):
    """Inputs and targets that depend on rank and step only."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(size, 8, generator=generator)
    return inputs, (inputs.sum(dim=1, keepdim=True) > 0).float()


def checksum(model):
    content = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    return f"{zlib.crc32(content):08x}"


def train(rank, steps):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        inputs, targets = batch_of(rank, step)
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    print(f"rank {rank}: parameters {checksum(model)}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    rank, local_rank, world_size = (int(os.environ.get(name, fallback)) for name, fallback in (
        ("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")))
    print(f"rank {rank} of {world_size}, local rank {local_rank}", flush=True)
    if torch is None:
        print(f"rank {rank}: no torch here, nothing to train", flush=True)
    elif "RANK" in os.environ:
        torch.set_num_threads(1)
        train(rank, steps)
    else:
        print("started without a launcher, nothing to train with", flush=True)


if __name__ == "__main__":
    main()
