"""The same Python scripts under the real torchrun and under muster: same ranks, same results."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import harness
from harness import ROOT, Case

PEERS = Path(os.environ.get("MUSTER_PEERS", "/nonexistent"))
SCRIPT = ROOT / "examples/python_script/train.py"
SCRIPTS = ROOT / "tests/e2e/peer_scripts"

# Variables whose values are different in each job.
OF_THE_JOB = {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"}
# Those that muster sets to something else on purpose: an address needs no name service, and the store is in rank 0's worker.
DIFFERENT = {"MASTER_ADDR": ("localhost", "127.0.0.1"), "TORCHELASTIC_USE_AGENT_STORE": ("True", "False")}


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
        # Not torchrun's own `python -u`, whose workers write into one pipe, a line and its end apart.
        command = ["--standalone", "--nproc-per-node", 3, "--no-python", "python3"]
        lines = self.both(lambda program, first: [self.under(program, first, *command)])
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


@unittest.skipUnless((PEERS / "bin/torchrun").exists(), "no torchrun in $MUSTER_PEERS (tools/get_peers)")
class Scripts(Case):
    environment = Torchrun.environment

    def launchers(self):
        """(name, program, first arguments): torchrun, muster, and muster by the name of torchrun."""
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "torchrun").symlink_to(harness.MUSTER.resolve())
        return [("torchrun", PEERS / "bin/torchrun", []), ("muster", harness.MUSTER, ["run"]),
                ("muster as torchrun", folder / "torchrun", [])]

    def under_each(self, *args):
        """{launcher: (exit code, output, error output)}"""
        results = {}
        for name, program, first in self.launchers():
            job = self.start(*first, *args, program=program, env=self.environment)
            results[name] = (job.wait(), job.text("out"), job.text("err"))
            self.assert_nothing_left(job)
        return results

    def test_every_variable_that_a_worker_reads_has_the_same_value(self):
        results = self.under_each("--standalone", "--nproc-per-node", 2, "--max-restarts", 3, "--role", "trainer",
                                  SCRIPTS / "environment.py")
        seen = {}
        for name, (code, out, err) in results.items():
            self.assertEqual(code, 0, err)
            workers = sorted(map(json.loads, out.splitlines()), key=lambda worker: worker["RANK"])
            self.assertEqual(len(workers), 2)
            for worker in workers:
                self.assertTrue(OF_THE_JOB <= worker.keys())
            seen[name] = [{key: value for key, value in worker.items()
                           if key not in OF_THE_JOB | {"_"} and not key.startswith("MUSTER_")} for worker in workers]
        for name, (theirs, ours) in DIFFERENT.items():
            self.assertEqual([worker.pop(name) for worker in seen["torchrun"]], [theirs] * 2)
            for launcher in ("muster", "muster as torchrun"):
                self.assertEqual([worker.pop(name) for worker in seen[launcher]], [ours] * 2)
        self.assertEqual(seen["muster"], seen["muster as torchrun"])
        self.assertEqual(seen["muster"], seen["torchrun"])

    def test_an_exception_within_record_is_in_the_report(self):
        for name, (code, _, err) in self.under_each("--standalone", "--nproc-per-node", 2, SCRIPTS / "recorded.py").items():
            with self.subTest(name):
                self.assertEqual(code, 1, err)
                self.assertIn("ValueError: the loss is not finite", err)
                self.assertRegex(err, r"error[ _]file *:? +/")

    def test_accelerate_and_lightning_detect_the_launcher(self):
        for name, (code, out, err) in self.under_each("--standalone", "--nproc-per-node", 2, SCRIPTS / "detect.py").items():
            with self.subTest(name):
                self.assertEqual(code, 0, err)
                self.assertEqual(sorted(out.splitlines()),
                                 [f"elastic True, process {rank} of 2, local {rank}, backend gloo, DistributedType.MULTI_CPU"
                                  for rank in (0, 1)])
