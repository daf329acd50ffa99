#!/usr/bin/env python3
"""Writes sampler.txt beside this file: what Python's DistributedSampler does, for the tests of the worker SDK.

Run with torch 2.11.0 and numpy:  python3 tests/worker_sdk/golden/make_golden.py
"""
import pathlib

import torch
from torch.utils.data import DistributedSampler

HERE = pathlib.Path(__file__).parent


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


if __name__ == "__main__":
    assert torch.__version__.startswith("2.11.0"), torch.__version__
    head = f"# Written by make_golden.py with torch {torch.__version__}.\n"
    (HERE / "sampler.txt").write_text(
        head + "# n ranks rank seed epoch shuffle drop_last len indices…\n" + "\n".join(sampler_lines()) + "\n"
    )
