"""As bench/ddp_steps.cc, with Python's DistributedDataParallel: ddp_steps.py MODEL STEPS [--bare]."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, relu
from torch.nn.parallel import DistributedDataParallel

BATCH, CLASSES = 64, 10
WIDTHS = {"small": [784, 128, CLASSES], "medium": [784, 1024, 1024, CLASSES], "large": [784, 4096, 2048, CLASSES],
          "conv": [32 * 12 * 12, 64, CLASSES]}


class Net(nn.Module):
    def __init__(self, widths, with_convolutions):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3) if with_convolutions else None
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2) if with_convolutions else None
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in zip(widths, widths[1:]))

    def forward(self, x):
        if self.conv1 is not None:
            x = relu(self.conv1(x.view(-1, 1, 28, 28)))
            x = relu(self.conv2(x)).flatten(1)
        for layer in self.layers[:-1]:
            x = relu(layer(x))
        return self.layers[-1](x)


def measure(steps, step):
    not_counted = max(steps // 10, 3)
    times, first = [], 0
    for i in range(not_counted + steps):
        began = time.monotonic()
        step()
        ended = time.monotonic()
        if i == 0:
            first = ended
        if i >= not_counted:
            times.append((ended - began) * 1e6)
    return {"first_step_s": first, "median_us": sorted(times)[len(times) // 2]}


def main(model, steps, is_bare):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = Net(WIDTHS[model], model == "conv")
    inputs, targets = torch.randn(BATCH, 784), torch.randint(CLASSES, (BATCH,))
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    if not is_bare:
        dist.init_process_group("gloo")
        net = DistributedDataParallel(net)

    def step():
        optimizer.zero_grad()
        cross_entropy(net(inputs), targets).backward()
        optimizer.step()

    result = measure(steps, step)
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(result), flush=True)
    if not is_bare:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), len(sys.argv) > 3)
