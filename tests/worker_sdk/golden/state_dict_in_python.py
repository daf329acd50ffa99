"""Python's side of state_dict_test.cc.

  state_dict_in_python.py write FILE    writes FILE, as golden/state_dict.pt was (torch 2.11.0), and FILE.nested
  state_dict_in_python.py check FILE    reads what muster::save_state_dict wrote
"""
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 5)
        self.bn = nn.BatchNorm1d(5)
        self.fc2 = nn.Linear(5, 3)
        self.register_buffer("low", torch.zeros(4, dtype=torch.bfloat16))
        self.register_buffer("none", torch.zeros(0, 3))
        self.register_buffer("wave", torch.zeros(2, dtype=torch.complex64))


def fill(net):
    """Values that are exact in every dtype: eighths, another whole number for each name."""
    with torch.no_grad():
        for k, (_, tensor) in enumerate(sorted(net.state_dict().items())):
            tensor.copy_((torch.arange(tensor.numel()) / 8 + k).reshape(tensor.shape))
    return net


def write(file):
    state = fill(Net()).state_dict()
    # As views of larger storages, which a file holds whole.
    state["fc2.weight"] = state["fc2.weight"].t().contiguous().t()
    state["fc1.bias"] = torch.cat([torch.full((3,), 99.0), state["fc1.bias"]])[3:]
    torch.save(state, file)
    torch.save({"model": state, "epoch": 3, "lr": 0.1, "names": ["a", "b"], "big": 1 << 40}, file + ".nested")


def check(file):
    state = torch.load(file, weights_only=True)
    net = Net()
    net.load_state_dict(state)
    for name, tensor in fill(Net()).state_dict().items():
        assert tensor.dtype == state[name].dtype and torch.equal(tensor, net.state_dict()[name]), name
    print(f"Python {torch.__version__} reads {len(state)} tensors of {file} with weights_only=True")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](sys.argv[2])
