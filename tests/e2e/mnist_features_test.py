"""The features of the worker SDK that the mnist example switches on by flag, on two ranks: what is printed, and what is learnt."""

import os
import signal
import tempfile
from pathlib import Path

from examples_test import numbers
from harness import Case
from hold import Hold
from mnist_test import MNIST, write_pictures

# Flags that go together, and what of the output they must bring about.
TABLE = [
    (["--amp", "bf16", "--hook", "bf16", "--bucket-view"], r"gradients .*\(in single precision, sent as bf16: at most .*\) +ok$"),
    (["--amp", "fp16", "--scaler", "--accumulate", 3, "--clip", 0.5, "--warmup", 2, "--cosine", "--scale-lr"],
     r"gradients .*\(in single precision\) +ok$"),
    (["--amp", "fp16", "--hook", "fp16", "--scaler", "--clip", 1], r"sent as fp16: at most .*\) +ok$"),
    (["--sync-batch-norm", "--static-graph", "--bucket-view", "--warmup", 3], r"batch: \S+ +ok$"),
    (["--sync-batch-norm", "--accumulate", 2, "--amp", "bf16"], r"batch: \S+ \(in single precision\) +ok$"),
    (["--batch-norm", "--no-broadcast-buffers", "--drop-last"], r"overlap 0, missed 1 +ok\n(.*\n)*gradients .*statistics of rank 0\) +ok$"),
    (["--join", "--cosine", "--hook", "allreduce"], r"rank 0: 106 samples, rank 1: 213 samples, overlap 0 +ok$"),
    (["--join", "--batch-norm", "--find-unused", "--warmup", 2], r"rank 0: 106 samples, rank 1: 213 samples, overlap 0 +ok$"),
    (["--join", "--static-graph", "--amp", "bf16", "--clip", 1], r"rank 0: 106 samples, rank 1: 213 samples, overlap 0 +ok$"),
    (["--bucket-mb", 0.001, "--stats"], r"^buckets of \d+ \d+ .*bytes; forward \S+ ms, backward \S+ ms, communication \S+ ms"),
    (["--find-unused", "--no-shuffle", "--bucket-view", "--accumulate", 2], r"overlap 0 +ok$"),
    (["--backend", "gloo", "--interface", "lo", "--init-timeout", 60, "--op-timeout", 60, "--check-consistency"], r"2 ranks, gloo"),
]


class Features(Case):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        write_pictures(cls.folder, "train", 319, 1)  # odd: the shares of two ranks are not even by themselves
        write_pictures(cls.folder, "t10k", 100, 2)

    def command(self, *flags, hold=None):
        trainer = [MNIST, "--data", self.folder, "--batch-size", 16, *flags]
        return ["--standalone", "--nproc-per-node", 2, *(hold.around(*trainer) if hold else trainer)]

    def train(self, *flags):
        job, code = self.run_job(*self.command(*flags))
        self.assertEqual(code, 0, job.text())
        self.assertEqual(len([line for line in job.text("out").splitlines() if line.endswith(" ok")]), 3, job.text())
        return job

    def test_each_feature_trains_and_the_three_answers_are_ok(self):
        for flags, expected in TABLE:
            with self.subTest(flags=flags):
                job = self.train(*flags)
                self.assertRegex(job.text("out"), f"(?m){expected}")
                accuracy = float(job.text("out").split("\nheld-out accuracy ")[1].split()[0])
                self.assertGreaterEqual(accuracy, 0.9, job.text())

    def test_batches_that_are_accumulated_are_one_large_batch(self):
        models = []
        for batch, together in ((16, 1), (4, 4)):
            models.append(self.folder / f"accumulate{together}.pt")
            self.train("--no-shuffle", "--batch-size", batch, "--accumulate", together, "--save-model", models[-1])
        one, four = map(numbers, models)
        self.assertEqual(one.keys(), four.keys())
        self.assertLess(max(abs(a - b) for key in one for a, b in zip(one[key], four[key])), 1e-5)

    def test_checkpoints_in_the_background_are_kept_in_the_number_asked_for(self):
        folder = self.folder / "kept"
        self.train("--checkpoint-dir", folder, "--async", "--keep", 3)
        self.assertEqual({file.name for file in folder.iterdir()}, {"mnist.ckpt", "mnist.ckpt.previous", "mnist.ckpt.previous.2"})
        job, code = self.run_job(*self.command("--checkpoint-dir", folder, "--cosine"))
        self.assertEqual(code, 74, job.text())
        self.assertIn(f"the checkpoint {folder / 'mnist.ckpt'} does not fit this program: it lacks schedule, which this program has",
                      job.text("err"))

    def kill(self, name, step, *flags):
        """Trains twice, once with a worker killed after `step`; both must end with one model."""
        whole, killed = self.folder / f"{name}.whole.pt", self.folder / f"{name}.killed.pt"
        self.train(*flags, "--save-model", whole)
        job = self.start("run", "--max-restarts", 1, "--log-level", "debug",
                         *self.command(*flags, "--checkpoint-dir", self.folder / name, "--save-model", killed,
                                       hold=Hold(self, 1, step)))
        pid = int(job.wait_line(r"rank 1 \(local rank 1\) is pid (\d+)").group(1))
        job.wait_line(rf"rank 1 \(local rank 1\) says STEP={step}$")
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("out"), r"going on from .*mnist\.ckpt: epoch \d+, step [1-9]")
        self.assertEqual(whole.read_bytes(), killed.read_bytes(), "the parameters differ")
        self.assert_nothing_left(job)

    def test_killed_with_scaler_accumulation_and_schedule_it_ends_with_the_same_bits(self):
        self.kill("scaler", 33, "--epochs", 20, "--amp", "fp16", "--scaler", "--accumulate", 2, "--cosine", "--warmup", 9, "--clip", 1)

    def test_killed_with_parts_of_different_sizes_it_ends_with_the_same_bits(self):
        self.kill("join", 7, "--epochs", 20, "--join", "--cosine", "--batch-norm")

    def test_flags_that_do_not_fit_the_data_are_one_line(self):
        for flags, expected in ((["--sync-batch-norm", "--batch-size", 53], "--batch-size 53 leaves one of 160 pictures"),
                                (["--cosine", "--warmup", 50], "--warmup 50 is too long for a training of 50 steps")):
            job, code = self.run_job("--log-level", "error", *self.command(*flags))
            self.assertEqual(code, 2, job.text())
            self.assertEqual(len([line for line in job.text("err").splitlines() if line.startswith("mnist: ")]), 1, job.text())
            self.assertRegex(job.text("err"), expected)

    def test_nccl_without_its_component_is_a_backend_that_is_not_there(self):
        job = self.start("--data", self.folder, "--backend", "nccl", program=MNIST)
        self.assertEqual(job.wait(), 69, job.text())
        self.assert_one_line(job, "cannot (load|use) the NCCL backend")
