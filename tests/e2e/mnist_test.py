"""The mnist example under the launcher: what is killed comes back and ends with the same bits."""

import os
import random
import signal
import struct
import subprocess
import tempfile
import uuid
from pathlib import Path

import harness
from harness import ROOT, Case
from hold import Hold

MNIST = ROOT / "examples/mnist/mnist"
EPOCHS = 30
TRAINING = ["--batch-size", 16, "--epochs", EPOCHS, "--checkpoint-every", 5]


def write_pictures(folder, name, count, seed):
    """IDX files as MNIST's: each class is a bright column pattern with noise, so that a few epochs learn it."""
    dice = random.Random(seed)
    labels = bytes(i % 10 for i in range(count))
    pixels = bytearray()
    for label in labels:
        pixels += bytes(min(255, (200 if (i % 28) // 2 == label else 0) + dice.randrange(56)) for i in range(784))
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + pixels)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)


class Mnist(Case):
    """Runs the trainer on pictures of its own; no test in it."""

    reference = None  # the bytes of the model that nobody interrupted

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        write_pictures(cls.folder, "train", 320, 1)
        write_pictures(cls.folder, "t10k", 100, 2)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def trainer(self, name):
        return [MNIST, "--data", self.folder, "--checkpoint-dir", self.folder / name, "--save-model",
                self.folder / f"{name}.pt", *TRAINING]

    def one_node(self, name, *options, hold=None):
        command = self.trainer(name)
        return self.start("run", "--standalone", "--nproc-per-node", 2, *options, *(hold.around(*command) if hold else command))

    def model(self, name):
        return (self.folder / f"{name}.pt").read_bytes()

    def uninterrupted(self):
        if Mnist.reference is None:
            job = self.one_node("reference")
            self.assertEqual(job.wait(), 0, job.text())
            self.assertIn("overlap 0", job.text("out"))
            self.assertNotIn("generation 2", job.text())
            Mnist.reference = self.model("reference")
        return Mnist.reference


class OneNode(Mnist):
    def kill_worker(self, rank, step):
        name = f"killed{rank}"
        job = self.one_node(name, "--max-restarts", 1, "--log-level", "debug", hold=Hold(self, 1, step))
        pid = int(job.wait_line(rf"rank {rank} \(local rank {rank}\) is pid (\d+)").group(1))
        job.wait_line(rf"rank {rank} \(local rank {rank}\) says STEP={step}$")
        self.assertNotRegex(job.text("err"), rf"says STEP={step + 1}\b")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("err"), rf"rank {rank} .* failed: signal 9 \(SIGKILL\); restart 1 of 1")
        self.assertRegex(job.text("out"), r"generation 2")
        self.assertEqual(self.model(name), self.uninterrupted(), "the parameters differ")
        self.assert_nothing_left(job)

    def test_a_worker_killed_mid_epoch_ends_with_the_same_bits(self):
        self.kill_worker(rank=1, step=73)

    def test_the_worker_that_writes_the_checkpoints_killed_mid_epoch_ends_with_the_same_bits(self):
        self.kill_worker(rank=0, step=47)

    def test_accuracy_and_the_three_answers_are_printed(self):
        job = self.one_node("answers")
        self.assertEqual(job.wait(), 0)
        self.assertRegex(job.text("out"), r"held-out accuracy 0\.9|held-out accuracy 1\.0")
        self.assertRegex(job.text("out"), r"(?m)^data split .*rank 0: 160 samples, rank 1: 160 samples, overlap 0 +ok$")
        self.assertRegex(job.text("out"), r"(?m)^parameters .*over 2 ranks: 0 +ok$")
        self.assertRegex(job.text("out"), r"(?m)^gradients .* +ok$")


    def test_a_worker_killed_before_any_checkpoint_costs_no_more_than_the_last_commits(self):
        # Each picture is a step: 160 in the first epoch, after which the first checkpoint would be.
        training = [MNIST, "--data", self.folder, "--epochs", 2, "--batch-size", 1]
        whole, killed = self.folder / "long.pt", self.folder / "saved.pt"
        job = self.start("run", "--standalone", "--nproc-per-node", 2, *training, "--save-model", whole)
        self.assertEqual(job.wait(), 0, job.text())
        job = self.start("run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "--log-level", "debug",
                         *Hold(self, 1, 20).around(*training, "--save-model", killed, "--checkpoint-dir", self.folder / "saved"))
        pid = int(job.wait_line(r"rank 1 \(local rank 1\) is pid (\d+)").group(1))
        job.wait_line(r"rank 1 \(local rank 1\) says STEP=20$")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("out"), r"going on from .*: epoch 1, step [1-9]")
        self.assertEqual(killed.read_bytes(), whole.read_bytes(), "the parameters differ")
        self.assert_nothing_left(job)


class TwoNodes(Mnist):
    """Two agents train one model; the bits are those of two workers on one node."""

    def node(self, name, job_name, endpoint, prefix=()):
        return self.start("run", "--nnodes", 2, "--nproc-per-node", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint,
                          "--rdzv-id", "mnist", "--node-id", name, "--log-level", "debug",
                          *Hold(self, 1, 60).around(*self.trainer(job_name)), prefix=prefix)

    def kill_and_restart_agent(self, job_name, endpoint, prefixes=((), ())):
        jobs = [self.node(name, job_name, endpoint, prefix) for name, prefix in zip("ab", prefixes)]
        jobs[1].wait_line(r"rank 1 \(local rank 0\) says STEP=60$")
        position = jobs[0].position()
        jobs[1].signal(signal.SIGKILL)
        jobs[1].process.wait(harness.PATIENCE)
        self.assert_nothing_left(jobs[1])
        self.assertNotIn("says STEP=61", jobs[1].text("err"))
        jobs[1] = self.node("b", job_name, endpoint, prefixes[1])
        jobs[1].wait_line(r"rank 1 \(local rank 0\) is pid")
        jobs[0].wait_line(r"rank 0 \(local rank 0\) is pid", start=position)
        self.assertEqual([job.wait() for job in jobs], [0, 0], jobs[0].text() + jobs[1].text())
        self.assertEqual(self.model(job_name), self.uninterrupted(), "the parameters differ")

    def test_an_agent_killed_and_started_again_ends_with_the_same_bits(self):
        self.kill_and_restart_agent("agents", f"127.0.0.1:{harness.free_port()}")

    def test_the_same_in_two_network_namespaces_with_different_addresses(self):
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        names = [f"muster{uuid.uuid4().hex[:6]}{side}" for side in "ab"]

        def ip(*args, netns=None):
            subprocess.run(["ip", *(["-n", netns] if netns else []), *args], check=True)

        for name in names:
            ip("netns", "add", name)
            self.addCleanup(ip, "netns", "delete", name)
        ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for name, address in zip(names, ("10.77.0.1/24", "10.77.0.2/24")):
            ip("address", "add", address, "dev", "eth0", netns=name)
            ip("link", "set", "eth0", "up", netns=name)
            ip("link", "set", "lo", "up", netns=name)
        prefixes = [("ip", "netns", "exec", name) for name in names]
        self.kill_and_restart_agent("namespaces", "10.77.0.1:29400", prefixes)
