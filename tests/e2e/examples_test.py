"""The examples cnn and branches on two ranks: what they print, and that it is what one process would have done."""

import socket
import struct
import tempfile
import zipfile
from pathlib import Path

from harness import PATIENCE, ROOT, Case, free_port
from hold import Hold
from mnist_test import write_pictures

CNN = ROOT / "examples/cnn/cnn"
BRANCHES = ROOT / "examples/branches/branches"
# Sums in another order, through 20 steps of a network with ten layers.
ROUNDING = 1e-3


def numbers(model):
    """The tensors of a file of torch::save, in its order: lists of floats, and as bytes what is not single precision."""
    with zipfile.ZipFile(model) as archive:
        tensors = {name.rpartition("/")[2]: archive.read(name) for name in archive.namelist() if "/data/" in name}
    counts = [key for key, content in tensors.items() if len(content) == 8]  # num_batches_tracked
    return {key: content if key in counts else struct.unpack(f"<{len(content) // 4}f", content)
            for key, content in tensors.items()}


class Examples(Case):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def ranks(self, ranks, *command):
        return self.run_job("--standalone", "--nproc-per-node", ranks, *command)

    def pictures(self):
        write_pictures(self.folder, "train", 320, 1)
        write_pictures(self.folder, "t10k", 100, 2)
        return ["--data", self.folder]

    def test_the_cnn_learns_in_low_precision_and_its_three_answers_are_ok(self):
        job, code = self.ranks(2, CNN, *self.pictures(), "--epochs", 6)
        self.assertEqual(code, 0, job.text())
        accuracy = float(job.text("out").split("\nheld-out accuracy ")[1].split()[0])
        self.assertGreaterEqual(accuracy, 0.9, job.text())
        self.assertRegex(job.text("out"), r"(?m)^data split .*rank 0: 160 samples, rank 1: 160 samples, overlap 0 +ok$")
        self.assertRegex(job.text("out"), r"(?m)^parameters .*over 2 ranks: 0 +ok$")
        self.assertRegex(job.text("out"), r"(?m)^gradients .* +ok$")
        self.assert_nothing_left(job)

    def test_the_cnn_on_two_ranks_ends_as_one_process_on_the_joined_batches_does(self):
        common = ["--no-amp", "--shift", 0, "--epochs", 4, *self.pictures(), "--save-model"]
        for ranks, batch, lr in ((1, 32, 0.05), (2, 16, 0.025)):  # the rate is multiplied by the ranks
            job, code = self.ranks(ranks, CNN, *common, self.folder / f"{ranks}.pt", "--batch-size", batch, "--lr", lr)
            self.assertEqual(code, 0, job.text())
        one, two = (numbers(self.folder / f"{ranks}.pt") for ranks in (1, 2))
        self.assertEqual(one.keys(), two.keys())
        floats = [key for key, values in one.items() if isinstance(values, tuple)]
        self.assertEqual(len(floats), 40)
        difference = max(abs(a - b) for key in floats for a, b in zip(one[key], two[key]))
        self.assertLess(difference, ROUNDING)
        self.assertTrue(all(one[key] == two[key] for key in one if key not in floats), "the numbers of batches differ")

    def test_the_cnn_without_batch_norm_over_all_ranks_is_ok_too(self):
        job, code = self.ranks(2, CNN, *self.pictures(), "--no-sync-batch-norm", "--accumulate", 3, "--warmup", 2, "--epochs", 1)
        self.assertEqual(code, 0, job.text())

    def test_the_cnn_drained_ends_with_0_and_a_later_run_goes_on_to_the_same_bits(self):
        flags = [*self.pictures(), "--epochs", 8, "--save-model"]
        job, code = self.ranks(2, CNN, *flags, self.folder / "whole.pt")
        self.assertEqual(code, 0, job.text())
        again = [*flags, self.folder / "drained.pt", "--checkpoint-dir", self.folder / "run", "--checkpoint-every", 7]
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(agent.close)
        agent.bind(str(self.folder / "agent"))
        agent.listen()
        agent.settimeout(PATIENCE)
        place = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        hold = Hold(self, 1, 6)
        ranks = [self.start(*again, program=CNN, env={**place, **hold.env, "RANK": rank, "LOCAL_RANK": rank, "MUSTER_SOCKET": end})
                 for rank, end in (("0", ""), ("1", str(self.folder / "agent")))]
        line, _ = agent.accept()
        self.addCleanup(line.close)
        line.settimeout(PATIENCE)
        while b"STEP=6" not in (said := line.recv(65536)):
            self.assertTrue(said, ranks[1].text())
        line.send(b"DRAIN=1")
        hold.let_go()
        self.assertEqual([rank.wait() for rank in ranks], [0, 0], ranks[0].text() + ranks[1].text())
        self.assertIn("drained", ranks[0].text("out"))
        self.assertFalse((self.folder / "drained.pt").exists())
        job, code = self.ranks(2, CNN, *again)
        self.assertEqual(code, 0, job.text())
        self.assertNotIn("epoch 1/8", job.text("out"))  # there are five steps in it
        self.assertEqual(numbers(self.folder / "whole.pt"), numbers(self.folder / "drained.pt"), "the parameters differ")

    def test_the_cnn_says_when_nothing_is_left_to_do(self):
        for every in (0, 5):  # there are five steps in the epoch
            folder = self.folder / f"run{every}"
            flags = [*self.pictures(), "--warmup", 0, "--epochs", 1, "--checkpoint-dir", folder, "--checkpoint-every", every]
            job, code = self.ranks(2, CNN, *flags)
            self.assertEqual(code, 0, job.text())
            self.assertNotIn("nothing left to do", job.text("out"))
            job, code = self.ranks(2, CNN, *flags)
            self.assertEqual(code, 0, job.text())
            line = f"nothing left to do: 1 of 1 epochs are in {folder / 'cnn.ckpt'}; say more with --epochs\n"
            self.assertEqual(job.text("out").count(line), 1, job.text())
            self.assertNotIn("epoch 1/1", job.text("out"))

    def test_the_cnn_looks_at_the_places_where_it_will_write_before_it_trains(self):
        in_the_way = self.folder / "file"
        in_the_way.write_text("")
        pictures = self.pictures()
        for option, path, problem in (("--checkpoint-dir", in_the_way / "run", "cannot make it: Not a directory"),
                                      ("--save-model", self.folder / "none" / "model.pt", "none cannot be written: No such file")):
            job = self.start(*pictures, option, path, program=CNN)
            self.assertEqual(job.wait(), 74, job.text())
            self.assert_one_line(job, f"{option} {path}: .*{problem}")
            self.assertEqual(job.text("out"), "")

    def test_a_warm_up_longer_than_the_training_is_wrong_usage(self):
        job = self.start(*self.pictures(), "--epochs", 1, "--warmup", 10, program=CNN)
        self.assertEqual(job.wait(), 2, job.text())
        self.assert_one_line(job, "--warmup 10 is too long for a training of 10 steps")

    def test_the_cnn_refuses_what_it_does_not_understand_in_one_line(self):
        for arguments, expected in ((["--data", "d", "--speed", 9], "unknown argument '--speed'"), ([], "--data DIR is missing"),
                                    (["--data", "d", "--checkpoint-every", 2], "--checkpoint-every needs --checkpoint-dir"),
                                    (["--data", "d", "--no-amp=1"], "--no-amp takes no value")):
            job = self.start(*arguments, program=CNN)
            self.assertEqual(job.wait(), 2, job.text())
            self.assert_one_line(job, expected)
        job = self.start("--data", self.folder / "none", program=CNN)
        self.assertEqual(job.wait(), 66, job.text())
        self.assert_one_line(job, "there is no such folder")

    def test_branches_train_where_each_rank_uses_other_parameters(self):
        job, code = self.ranks(2, BRANCHES)
        self.assertEqual(code, 0, job.text())
        losses = [float(line.split()[-1]) for line in job.text("out").splitlines() if line.startswith("expert ")]
        self.assertEqual(len(losses), 3, job.text())
        self.assertLess(max(losses), 0.05)
        self.assertIn("parameters  max difference over 2 ranks: 0  ok", job.text("out"))

    def test_branches_without_find_unused_end_on_each_rank_with_the_names(self):
        job, code = self.ranks(2, BRANCHES, "--no-find-unused")
        self.assertEqual(code, 70, job.text())
        self.assertRegex(job.text("err"), r"message .*no gradient came for parameter experts\.\d\.weight, experts\.\d\.bias")
