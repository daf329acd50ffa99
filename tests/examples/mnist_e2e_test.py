"""The mnist example as a user meets it: trained, interrupted, resumed, and given bad input; without a launcher.

Usage: mnist_e2e_test.py MNIST_BINARY
"""
import gzip
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, "tests/e2e")
from hold import Hold  # noqa: E402

MNIST = str(Path(sys.argv.pop(1)).resolve())
TIMEOUT = 120
ENDLESS = 1_000_000  # epochs: the test ends them
WORKER_VARIABLES = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MUSTER_SOCKET"]


def clean_environment(**more):
    environment = {k: v for k, v in os.environ.items() if k not in WORKER_VARIABLES}
    return {**environment, "OMP_NUM_THREADS": "1", **more}


def write_split(folder, prefix, count, zipped):
    """Pictures that show their label as a bright row, in noise: learnt in a few steps."""
    numbers = random.Random(prefix)
    pictures, labels = bytearray(), bytearray()
    for i in range(count):
        picture = bytearray(numbers.randrange(60) for _ in range(784))
        row = (i % 10) * 2 + 4
        picture[row * 28 : row * 28 + 28] = bytes([230] * 28)
        pictures += picture
        labels.append(i % 10)
    files = {
        f"{prefix}-images-idx3-ubyte": struct.pack(">IIII", 0x803, count, 28, 28) + pictures,
        f"{prefix}-labels-idx1-ubyte": struct.pack(">II", 0x801, count) + labels,
    }
    for name, content in files.items():
        if zipped:
            (folder / (name + ".gz")).write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


class Mnist(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.data = Path(cls.root.name) / "data"
        cls.data.mkdir()
        write_split(cls.data, "train", 301, zipped=False)  # odd: two ranks need one sample twice
        write_split(cls.data, "t10k", 100, zipped=True)

    @classmethod
    def tearDownClass(cls):
        cls.root.cleanup()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=self.root.name))

    def run_alone(self, *arguments, **variables):
        return subprocess.run(
            [MNIST, *map(str, arguments)],
            env=clean_environment(**variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )

    def start_ranks(self, ranks, *arguments, sockets=None, hold=None):
        port = free_port()
        workers = []
        for rank in range(ranks):
            variables = {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_WORLD_SIZE": str(ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            if sockets:
                variables["MUSTER_SOCKET"] = sockets[rank]
            worker = subprocess.Popen(
                [MNIST, *map(str, arguments)],
                env=clean_environment(**variables, **(hold.env if hold else {})),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.addCleanup(end, worker)
            workers.append(worker)
        return workers

    def finish(self, workers, codes=None):
        outputs = [worker.communicate(timeout=TIMEOUT) for worker in workers]
        self.assertEqual([worker.returncode for worker in workers], codes or [0] * len(workers), outputs)
        return outputs

    def assert_one_line(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_one_process_learns_and_answers_the_three_questions(self):
        result = self.run_alone("--data", self.data, "--batch-size", 32)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("301 training and 100 held-out pictures, 1 rank, gloo", result.stdout)
        self.assertGreaterEqual(float(result.stdout.split("held-out accuracy ")[-1].split()[0]), 0.9)
        self.assertEqual(result.stdout.count(" ok\n"), 3, result.stdout)
        self.assertNotIn("\033", result.stdout + result.stderr)

    def test_two_ranks_interrupted_by_kill_9_end_bit_identical(self):
        arguments = ["--data", self.data, "--epochs", 3, "--batch-size", 16, "--checkpoint-every", 4]
        whole, resumed = self.folder / "whole.pt", self.folder / "resumed.pt"
        outputs = self.finish(
            self.start_ranks(2, *arguments, "--checkpoint-dir", self.folder / "a", "--save-model", whole)
        )
        self.assertIn("rank 0: 151 samples, rank 1: 150 samples, overlap 0", outputs[0][0])
        self.assertEqual(outputs[0][0].count(" ok\n"), 3, outputs[0][0])
        self.assertEqual(outputs[1][0].replace(gloo_chatter(outputs[1][0]), ""), "")

        agents = [FakeAgent(self.folder / f"s{rank}") for rank in range(2)]
        again = [*arguments, "--checkpoint-dir", self.folder / "b", "--save-model", resumed]
        hold = Hold(self, 1, 14)  # in the second epoch, not at a checkpoint
        workers = self.start_ranks(2, *again, sockets=[agent.path for agent in agents], hold=hold)
        agents[0].wait_for("STEP=14")
        workers[0].send_signal(signal.SIGKILL)
        hold.let_go()
        _, (_, stderr) = self.finish(workers, [-signal.SIGKILL, 75])
        self.assertEqual(len(stderr.splitlines()), 1, stderr)
        self.assertIn("mnist: rank 1: ", stderr)
        self.assertRegex(stderr, "rank 0 is gone|a peer is gone: rank 0 ")  # the store tells, or the connection that broke
        self.assertFalse(resumed.exists())

        outputs = self.finish(self.start_ranks(2, *again))
        self.assertIn("going on from", outputs[0][0])
        self.assertEqual(whole.read_bytes(), resumed.read_bytes())

    def test_reports_to_the_agent_and_drains_when_asked(self):
        agents = [FakeAgent(self.folder / f"s{rank}") for rank in range(2)]
        arguments = ["--data", self.data, "--epochs", ENDLESS, "--checkpoint-dir", self.folder / "c"]
        workers = self.start_ranks(2, *arguments, sockets=[agent.path for agent in agents])
        agents[0].wait_for("READY=1")
        agents[0].wait_for("STEP=1")
        agents[0].wait_for(f"CHECKPOINT={self.folder}/c/mnist.ckpt")
        agents[1].say("DRAIN=1")
        outputs = self.finish(workers)
        self.assertIn("drained", outputs[0][0])
        self.assertTrue((self.folder / "c" / "mnist.ckpt").exists())

    def test_an_abort_of_the_agent_frees_a_rank_that_waits_for_one_that_is_frozen(self):
        for frozen, waiting in [(1, 0), (0, 1)]:  # rank 0 has the store
            agents = [FakeAgent(self.folder / f"{frozen}{rank}") for rank in range(2)]
            folder = self.folder / f"frozen{frozen}"
            arguments = ["--data", self.data, "--epochs", ENDLESS, "--checkpoint-dir", folder, "--batch-size", 1]
            workers = self.start_ranks(2, *arguments, sockets=[agent.path for agent in agents])
            agents[waiting].wait_for("STEP=20")
            workers[frozen].send_signal(signal.SIGSTOP)
            agents[waiting].say("ABORT=0")
            said = time.monotonic()
            output = workers[waiting].communicate(timeout=TIMEOUT)
            print(f"rank {waiting} left {time.monotonic() - said:.2f} s after the ABORT", file=sys.stderr)
            self.assertEqual(workers[waiting].returncode, 75, output)
            self.assertEqual(len(output[1].splitlines()), 1, output)
            self.assertIn(f"mnist: rank {waiting}: ", output[1])
            self.assertIn("the agent says that a peer of this generation is gone (ABORT)", output[1])
            # Rank 0 saves the last commit that it remembers.
            self.assertEqual((folder / "mnist.ckpt").exists(), waiting == 0)
            workers[frozen].kill()

    def test_a_terminated_leader_saves_its_last_commit(self):
        agents = [FakeAgent(self.folder / f"t{rank}") for rank in range(2)]
        arguments = ["--data", self.data, "--epochs", 3, "--checkpoint-dir", self.folder / "t", "--batch-size", 1,
                     "--save-model", self.folder / "t.pt"]
        hold = Hold(self, 1, 40)
        workers = self.start_ranks(2, *arguments, sockets=[agent.path for agent in agents], hold=hold)
        agents[0].wait_for("STEP=40")
        workers[0].terminate()
        hold.let_go()
        self.finish(workers, [-signal.SIGTERM, 75])
        outputs = self.finish(self.start_ranks(2, *arguments))
        self.assertRegex(outputs[0][0], r"going on from .*mnist.ckpt: epoch 1, step [1-9]")
        whole = self.folder / "whole.pt"
        self.finish(self.start_ranks(2, *arguments[:4], "--batch-size", 1, "--save-model", whole))
        self.assertEqual(whole.read_bytes(), (self.folder / "t.pt").read_bytes())

    def test_damaged_data_is_one_line_with_file_offset_and_cause(self):
        whole = (self.data / "train-images-idx3-ubyte").read_bytes()
        for size in [3, 17, len(whole) - 1]:
            broken = self.folder / "data"
            subprocess.run(["cp", "-r", str(self.data) + "/.", broken], check=True)
            (broken / "train-images-idx3-ubyte").write_bytes(whole[:size])
            self.assert_one_line(
                self.run_alone("--data", broken), 65, f"train-images-idx3-ubyte: offset {size}: the file ends"
            )

    def test_missing_data_wrong_flags_and_half_an_environment(self):
        self.assert_one_line(self.run_alone("--data", self.folder / "none"), 66, "there is no such folder")
        self.assert_one_line(self.run_alone("--data", self.folder), 66, "train-images-idx3-ubyte: there is no such file")
        self.assert_one_line(self.run_alone("--epochs", "3"), 2, "--data DIR is missing")
        self.assert_one_line(self.run_alone("--data", self.data, "--speed", "9"), 2, "'--speed'")
        self.assert_one_line(self.run_alone("--data", self.data, WORLD_SIZE="2"), 78, "but not RANK, LOCAL_RANK")
        self.assertEqual(self.run_alone("--help").returncode, 0)

    def test_a_truncated_checkpoint_falls_back_or_is_one_line(self):
        arguments = ["--data", self.data, "--checkpoint-dir", self.folder, "--epochs"]
        self.assertEqual(self.run_alone(*arguments, 2).returncode, 0)
        newest = self.folder / "mnist.ckpt"
        newest.write_bytes(newest.read_bytes()[:1000])
        result = self.run_alone(*arguments, 3)
        self.assert_one_line(result, 0, "ends at byte 1000 of", "going on from")
        self.assertIn("epoch 2, step 5", result.stdout)
        for file in self.folder.glob("mnist.ckpt*"):
            file.write_bytes(file.read_bytes()[:1000])
        self.assert_one_line(self.run_alone(*arguments, 3), 65, "no whole checkpoint", "remove it to start over")

    def test_a_run_that_has_all_its_epochs_says_so_and_answers_again(self):
        arguments = ["--data", self.data, "--checkpoint-dir", self.folder, "--epochs"]
        self.assertNotIn("nothing left to do", self.run_alone(*arguments, 2).stdout)
        for epochs in (2, 1):
            result = self.run_alone(*arguments, epochs)
            self.assertEqual(result.returncode, 0, result)
            self.assertIn(f"\nnothing left to do: {epochs} of {epochs} epochs are in {self.folder / 'mnist.ckpt'}; "
                          "say more with --epochs\n", result.stdout)
            self.assertEqual(result.stdout.count(" ok\n"), 3, result.stdout)
        result = self.run_alone(*arguments, 3)
        self.assertNotIn("nothing left to do", result.stdout)
        self.assertIn("epoch 3/3", result.stdout)

    def test_what_cannot_be_written_is_one_line(self):
        (self.folder / "file").write_text("in the way")
        # Before the training, whose end nobody would wait for otherwise.
        for option, path, problem in (("--checkpoint-dir", self.folder / "file" / "ckpt", "cannot make it: Not a directory"),
                                      ("--save-model", self.folder / "none" / "model.pt", "none cannot be written: No such file"),
                                      ("--save-model", self.folder, "is a folder; give the name of a file")):
            result = self.run_alone("--data", self.data, option, path)
            self.assert_one_line(result, 74, option, problem)
            self.assertEqual(result.stdout, "")

    def test_values_that_are_not_finite_are_no_answer(self):
        result = self.run_alone("--data", self.data, "--lr", "1e30", "--epochs", 1)
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stdout, r"parameters .* values are not finite +NOT OK")
        self.assertRegex(result.stdout, r"gradients .* values are not finite +NOT OK")


class FakeAgent:
    def __init__(self, path):
        self.path = str(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(TIMEOUT)
        self.worker = None

    def connected(self):
        if self.worker is None:
            self.worker, _ = self.listener.accept()
            self.worker.settimeout(TIMEOUT)
        return self.worker

    def wait_for(self, line):
        while True:
            datagram = self.connected().recv(1 << 16).decode()
            if line in datagram.splitlines():
                return
            if not datagram:
                raise AssertionError(f"the worker left before {line}")

    def say(self, line):
        self.connected().send(line.encode())


def gloo_chatter(text):
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("[Gloo]"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end(worker):
    if worker.poll() is None:
        worker.kill()
    worker.communicate()


if __name__ == "__main__":
    unittest.main()
