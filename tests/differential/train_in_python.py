#!/usr/bin/env python3
"""Trains each case of cases.txt under Python's DistributedDataParallel with 1, 2, 3 and 4 ranks over Gloo, and writes what
came of it: what differential_test.cc compares muster with.

    python3 tests/differential/train_in_python.py [FILE]      default: golden_KIND.txt beside this script, by the kind of processor

Needs torch 2.11.0 and numpy. Each line of FILE: case, ranks, tensor, and its numbers' bits in hexadecimal.
"""
import contextlib
import os
import pathlib
import platform
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

HERE = pathlib.Path(__file__).parent
SEED, STEPS, BATCH = 7, 5, 4


def read_cases():
    for line in (HERE / "cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, *settings = line.split()
            yield name, dict(setting.split("=", 1) for setting in settings)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 3)
        self.fc2 = nn.Linear(3, 2)

    def forward(self, x, turn):
        return self.fc2(torch.relu(self.fc1(x)))


class Reused(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.out = nn.Linear(4, 2)

    def forward(self, x, turn):
        return self.out(torch.relu(self.fc(torch.relu(self.fc(x)))))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 2)
        self.b = nn.Linear(4, 2)

    def forward(self, x, turn):
        return self.a(x) if turn % 2 == 0 else self.b(x)


class Dead(Branches):
    def forward(self, x, turn):
        return self.a(x)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)
        self.bn = nn.BatchNorm2d(2)
        self.fc = nn.Linear(8, 2)

    def forward(self, x, turn):
        return self.fc(torch.relu(self.bn(self.conv(x.reshape(-1, 1, 2, 2)))).flatten(1))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 3, sparse=True)
        self.fc = nn.Linear(3, 2)

    def forward(self, x, turn):
        return self.fc(self.embedding((x * 1000).long().remainder(7)).mean(1))


class Dropping(Mlp):
    def forward(self, x, turn):
        return self.fc2(torch.dropout(self.fc1(x), 0.5, self.training))


MODELS = {"mlp": Mlp, "dropping": Dropping, "reused": Reused, "branches": Branches, "dead": Dead, "conv": Conv, "bag": Bag}


def batch_of(step, rank):
    start = (step * 8 + rank) * BATCH
    x = torch.cos(torch.arange(start * 4, (start + BATCH) * 4, dtype=torch.float32)).reshape(BATCH, 4)
    return x, torch.arange(start, start + BATCH) % 2


def user_hook(group, bucket):
    """Not an average: muster must use what the hook gives."""
    buffer = bucket.buffer().mul_(0.5)
    return dist.all_reduce(buffer, async_op=True).get_future().then(lambda future: future.value()[0])


HOOKS = {"allreduce": default_hooks.allreduce_hook, "fp16": default_hooks.fp16_compress_hook,
         "bf16": default_hooks.bf16_compress_hook, "user": user_hook}


def flat(tensors):
    return torch.cat([t.detach().float().flatten() for t in tensors])


def gradients(net):
    dense = [torch.zeros_like(p) if p.grad is None else p.grad for p in net.parameters()]
    return flat(g.to_dense() if g.is_sparse else g for g in dense)


class Training:
    def __init__(self, settings, rank, ranks):
        self.settings, self.rank, self.ranks = settings, rank, ranks
        torch.manual_seed(SEED)
        self.net = MODELS[settings.get("model", "mlp")]()
        self.results = {"initial": flat(self.net.parameters())}
        self.dtype = torch.bfloat16 if settings.get("dtype") == "bf16" else torch.float32
        self.net.to(self.dtype)
        self.ddp = self.wrap()
        self.optimizer = self.make_optimizer()
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=2, enabled="scaler" in settings)
        self.schedule = self.make_schedule()
        torch.manual_seed(100 * SEED + rank)

    def wrap(self):
        s = self.settings
        if "ignore" in s:
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.net, [s["ignore"]])
        more = {"bucket_cap_mb": float(s["bucket_cap_mb"])} if "bucket_cap_mb" in s else {}
        ddp = DistributedDataParallel(
            self.net, find_unused_parameters=s.get("find_unused") == "1", static_graph=s.get("static") == "1",
            gradient_as_bucket_view=s.get("view") == "1", broadcast_buffers=s.get("buffers") != "0", **more)
        if "hook" in s:
            ddp.register_comm_hook(None, HOOKS[s["hook"]])
        return ddp

    def make_optimizer(self):
        if self.settings.get("optimizer") == "adam":
            return torch.optim.Adam(self.net.parameters(), lr=0.01)
        momentum = 0 if self.settings.get("model") == "bag" else 0.9  # none for sparse gradients
        return torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=momentum)

    def make_schedule(self):
        name = self.settings.get("schedule")
        if name == "warmup":
            return torch.optim.lr_scheduler.LinearLR(self.optimizer, start_factor=0.1, total_iters=3)
        if name == "cosine":
            return torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=6, eta_min=0.01)
        return None

    def loss(self, step):
        x, y = batch_of(step, self.rank)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled="autocast" in self.settings):
            loss = cross_entropy(self.ddp(x.to(self.dtype), step + self.rank).float(), y)
        if self.settings.get("inf") == "1" and step == 1 and self.rank == self.ranks - 1:
            loss = loss * float("inf")
        return self.scaler.scale(loss)

    def backward(self, step):
        loop = self.settings.get("loop")
        if loop == "no_sync":
            with self.ddp.no_sync():
                self.loss(2 * step).backward()
            self.loss(2 * step + 1).backward()
        elif loop == "two_forwards":
            (self.loss(2 * step) + self.loss(2 * step + 1)).backward()
        else:
            self.loss(step).backward()

    def run(self):
        loop = self.settings.get("loop", "")
        uneven = loop.startswith("join")
        joined = self.ddp.join(divide_by_initial_world_size=loop == "join") if uneven else contextlib.nullcontext()
        with joined:
            for step in range(STEPS - self.rank if uneven else STEPS):
                self.optimizer.zero_grad(set_to_none=self.settings.get("zero") != "in_place")
                self.backward(step)
                self.update()
        self.results["parameters"] = flat(self.net.parameters())
        if self.settings.get("scaler"):
            self.results["scale"] = torch.tensor([self.scaler.get_scale()])
        if self.schedule:
            self.results["rate"] = torch.tensor([self.optimizer.param_groups[0]["lr"]])
        buffers = list(self.net.buffers())
        if buffers:
            self.results["buffers"] = flat(buffers)
        return self.results

    def update(self):
        if "clip" in self.settings:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), float(self.settings["clip"]))
        self.results["gradients"] = gradients(self.net)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.schedule:
            self.schedule.step()


class InOneProcess(Training):
    """What batch norm over all ranks must come to: one process that sees all batches, of rank r the first BATCH - r."""

    def wrap(self):
        return self.net

    def loss(self, step):
        parts = [(x[: BATCH - r], y[: BATCH - r]) for r in range(self.ranks) for x, y in [batch_of(step, r)]]
        outputs = self.net(torch.cat([x for x, _ in parts]), 0).split([len(x) for x, _ in parts])
        return sum(cross_entropy(output, y) for output, (_, y) in zip(outputs, parts)) / self.ranks


def bits(tensor):
    return " ".join(f"{int(v) & 0xFFFFFFFF:08x}" for v in tensor.float().contiguous().view(torch.int32))


def train_all(rank, ranks, port, target):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    mine = []
    for name, settings in read_cases():
        kind = InOneProcess if "sync_bn" in settings else Training
        results = kind(settings, rank, ranks).run()
        mine += [f"{name} {ranks} {what} {bits(tensor)}" for what, tensor in results.items()
                 if what != "initial" or ranks == 1]
    if rank == 0:
        target.write_text("\n".join(mine) + "\n")
    dist.barrier()
    dist.destroy_process_group()


def processor():
    """Other processors may add up in another order."""
    names = [line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("vendor_id")]
    vendor = names[0].split()[-1] if names else platform.machine()
    return f"{vendor}/{torch.backends.cpu.get_cpu_capability()}"


def main():
    assert torch.__version__.startswith("2.11.0"), torch.__version__
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / f"golden_{torch.backends.cpu.get_cpu_capability().lower()}.txt"
    lines = ""
    for ranks in (1, 2, 3, 4):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        mp.spawn(train_all, args=(ranks, port, target), nprocs=ranks)
        lines += target.read_text()
    target.write_text(f"# Written by train_in_python.py with torch {torch.__version__}.\n"
                      f"# processor {processor()}\n{lines}")


if __name__ == "__main__":
    main()
