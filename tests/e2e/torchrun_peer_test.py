"""The same Python script under the real torchrun and under muster: same ranks, same results."""

import os
import unittest
from pathlib import Path

import harness
from harness import ROOT, Case

PEERS = Path(os.environ.get("MUSTER_PEERS", "/nonexistent"))
SCRIPT = ROOT / "examples/python_script/train.py"


@unittest.skipUnless((PEERS / "bin/torchrun").exists(), "no torchrun in $MUSTER_PEERS (tools/get_peers)")
class Torchrun(Case):
    # An activated virtual environment: its python3 is the first on PATH.
    environment = {"PATH": f"{PEERS / 'bin'}:{os.environ['PATH']}", "GLOO_SOCKET_IFNAME": "lo"}

    def under(self, program, first, *args):
        return self.start(*first, *args, SCRIPT, "--steps", 40, program=program, env=self.environment)

    def lines(self, *jobs):
        self.assertEqual([job.wait() for job in jobs], [0] * len(jobs), "\n".join(job.text() for job in jobs))
        return sorted(line for job in jobs for line in job.text("out").splitlines())

    def both(self, run):
        """What the jobs that `run(program, first arguments)` starts print under torchrun and under muster."""
        theirs = self.lines(*run(PEERS / "bin/torchrun", []))
        ours = self.lines(*run(harness.MUSTER, ["run"]))
        self.assertEqual(ours, theirs)
        return ours

    def test_one_node_with_three_workers(self):
        lines = self.both(lambda program, first: [self.under(program, first, "--standalone", "--nproc-per-node", 3)])
        self.assertEqual(sum("parameters" in line for line in lines), 3)
        self.assertEqual(len({line.split()[-1] for line in lines if "parameters" in line}), 1)

    def test_two_static_nodes(self):
        def run(program, first):
            port = harness.free_port()
            return [self.under(program, first, "--nnodes", 2, "--node-rank", rank, "--nproc-per-node", 1, "--master-addr",
                               "127.0.0.1", "--master-port", port) for rank in (0, 1)]

        self.assertIn("rank 1 of 2, local rank 0", self.both(run))

    def test_two_c10d_nodes(self):
        def run(program, first):
            endpoint = f"127.0.0.1:{harness.free_port()}"
            return [self.under(program, first, "--nnodes", 2, "--nproc-per-node", 1, "--rdzv-backend", "c10d",
                               "--rdzv-endpoint", endpoint, "--rdzv-id", "peer", "--local-addr", "127.0.0.1")
                    for _ in range(2)]

        self.both(run)
