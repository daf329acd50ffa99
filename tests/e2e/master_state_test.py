"""A musterd that is killed and starts again on the same folder: no worker notices, nothing that happened is forgotten."""

import os
import re
import signal
import tempfile
import unittest
from pathlib import Path

import harness
from harness import MUSTERD, Case

# Takes a step every 10 ms and writes down when, until the file `stop` is there; then it has succeeded. Tells every 25th.
STEPS = r"""
import os, time
folder = os.environ["STEP_FOLDER"]
rank = os.environ["RANK"]
print("up", rank, os.environ["WORLD_SIZE"], os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["MUSTER_GENERATION"],
      os.getpid(), flush=True)
with open(f"{folder}/steps.{rank}", "a", buffering=1) as log:
    step = 0
    while not os.path.exists(f"{folder}/stop"):
        log.write(f"{time.monotonic()}\n")
        time.sleep(0.01)
        step += 1
        if step % 25 == 0:
            print("step", step, flush=True)
"""


class MasterState(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.state = self.folder / "state"

    def musterd(self, listen="127.0.0.1:0"):
        daemon = self.start("--listen", listen, "--state-dir", self.state, program=MUSTERD)
        daemon.endpoint = daemon.wait_line(r"musterd [\d.]+ listens on (\S+:\d+)")[1]
        return daemon

    def refused(self, code, pattern):
        """A musterd that does not start: its exit code, and one line that says why."""
        daemon = self.start("--listen", "127.0.0.1:0", "--state-dir", self.state, program=MUSTERD)
        self.assertEqual(daemon.wait(), code, daemon.text())
        self.assertRegex(daemon.text(), pattern)
        self.assertEqual(len(daemon.text().splitlines()), 1, daemon.text())

    def node(self, daemon, name):
        return self.start("run", "--nnodes", 2, "--max-restarts", 3, "--rdzv-endpoint", daemon.endpoint, "--rdzv-id", "job",
                          "--node-id", name, "--rdzv-conf", "is_host=0", "--no-python", "python3", "-c", STEPS,
                          env={"STEP_FOLDER": str(self.folder)})

    def up(self, node, start=0):
        """Waits for a worker and returns (rank, restarts, generation, pid)."""
        match = node.wait_line(r"^up (\d) 2 (\d) (\d+) (\d+)$", start=start)
        return tuple(int(group) for group in match.groups())

    def steps(self, rank):
        text = (self.folder / f"steps.{rank}").read_text()
        return [float(line) for line in text.splitlines()[:-1]]

    def wait_steps(self, *nodes):
        """Waits until each worker has taken some more steps."""
        for node, start in [(node, node.position()) for node in nodes]:
            node.wait_line(r"^step \d+$", count=3, start=start)

    def print_longest_gap(self, what):
        gaps = []
        for rank in (0, 1):
            steps = self.steps(rank)
            gaps.append(max(b - a for a, b in zip(steps, steps[1:])))
        print(f"{what}: longest gap between two steps: rank 0 {gaps[0] * 1000:.0f} ms, rank 1 {gaps[1] * 1000:.0f} ms",
              flush=True)

    def kill(self, daemon):
        daemon.signal(signal.SIGKILL)
        self.assertEqual(daemon.wait(), 137)

    def finish(self, daemon, *nodes):
        (self.folder / "stop").touch()
        self.assertEqual([node.wait() for node in nodes], [0] * len(nodes))
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0, daemon.text())
        self.assert_nothing_left(*nodes, daemon)

    def test_no_worker_notices_that_the_master_was_killed(self):
        daemon = self.musterd()
        nodes = [self.node(daemon, name) for name in ("a", "b")]
        before = [self.up(node) for node in nodes]
        self.wait_steps(*nodes)
        for _ in range(3):
            self.kill(daemon)
            self.wait_steps(*nodes)
            daemon = self.musterd(listen=daemon.endpoint)
            daemon.wait_line(r"goes on with 1 job$")
            daemon.wait_line(r"job job: generation 1 started with 2 nodes")
            self.wait_steps(*nodes)
        self.print_longest_gap("master killed three times")
        self.finish(daemon, *nodes)
        for node, was in zip(nodes, before):
            self.assertEqual(re.findall(r"^up .*", node.text("out"), re.M), [f"up {was[0]} 2 0 1 {was[3]}"])

    def test_a_worker_that_is_killed_while_no_master_is_there_is_handled_after(self):
        daemon = self.musterd()
        nodes = [self.node(daemon, name) for name in ("a", "b")]
        before = [self.up(node) for node in nodes]
        self.wait_steps(*nodes)
        self.kill(daemon)
        positions = [node.position() for node in nodes]
        os.kill(before[1][3], signal.SIGKILL)
        harness.wait_gone([before[1][3]], harness.deadline())
        daemon = self.musterd(listen=daemon.endpoint)
        after = [self.up(node, start=position) for node, position in zip(nodes, positions)]
        self.assertEqual([(rank, restarts, generation) for rank, restarts, generation, _ in after],
                         [(was[0], 1, 2) for was in before])
        self.wait_steps(*nodes)
        self.print_longest_gap("worker killed without a master")
        # The restart that was charged is not forgotten by the next master either.
        self.kill(daemon)
        daemon = self.musterd(listen=daemon.endpoint)
        daemon.wait_line(r"job job: generation 2 started with 2 nodes")
        positions = [node.position() for node in nodes]
        os.kill(after[0][3], signal.SIGKILL)
        again = [self.up(node, start=position) for node, position in zip(nodes, positions)]
        self.assertEqual([(rank, restarts, generation) for rank, restarts, generation, _ in again],
                         [(was[0], 2, 3) for was in before])
        self.finish(daemon, *nodes)

    def test_a_folder_that_cannot_be_used_is_one_line_and_an_exit_code(self):
        daemon = self.musterd()
        self.refused(75, rf"state: another master works on it \(process {daemon.pid}\)")
        node = self.node(daemon, "a")
        other = self.node(daemon, "b")
        self.up(node)
        self.up(other)
        self.finish(daemon, node, other)
        files = sorted(path.name for path in self.state.iterdir())
        self.assertEqual(files, ["1.state", "format", "lock"])
        whole = (self.state / "1.state").read_bytes()
        (self.state / "1.state").write_bytes(whole[:-1])
        self.refused(65, r"state/1\.state: it is cut short")
        (self.state / "1.state").write_bytes(whole.replace(b"muster-state 1", b"muster-state 9"))
        self.refused(65, r"state/1\.state: it has version 9 and this program knows 1")
        (self.state / "1.state").write_bytes(whole)
        (self.state / "format").unlink()
        self.refused(73, r"it holds 1\.state and no master's state")


if __name__ == "__main__":
    unittest.main()
