"""What Accelerate and the detection that Lightning uses make of the variables."""

import os
import sys

import torch
from accelerate import PartialState

# As lightning.fabric.plugins.environments.TorchElasticEnvironment does it.
required = {"RANK", "GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}
is_elastic = torch.distributed.is_torchelastic_launched() and required <= os.environ.keys()
state = PartialState(cpu=True)
sys.stdout.write(f"elastic {is_elastic}, process {state.process_index} of {state.num_processes}, "
                 f"local {state.local_process_index}, backend {state.backend}, {state.distributed_type}\n")
state.destroy_process_group()
