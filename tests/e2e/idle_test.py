"""A launcher whose workers are busy with themselves does nothing at all."""

import os
import tempfile
import unittest
from pathlib import Path

from harness import Case


def switches(pid):
    """How often the threads of a process have gone to sleep so far: once for each time that they woke up."""
    total = 0
    for status in Path("/proc", str(pid), "task").glob("*/status"):
        total += int(status.read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return total


def parent_of(pid):
    return int(Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[1])


class Idle(Case):
    def wake_ups(self, *options):
        """Of launcher and warden between two lines of a worker that are two seconds apart on its clock."""
        own = tempfile.TemporaryDirectory(dir="/tmp")  # `muster status --local` of other tests does not look there
        self.addCleanup(own.cleanup)
        job = self.start("run", "--nproc-per-node", 2, *options, "--no-python", "bash", "-c",
                         "[ $RANK = 0 ] || exec sleep 1000; for word in up settled later; do echo $word; sleep 2; done; sleep 1000",
                         env={"TMPDIR": own.name})
        job.wait_line("^up$")
        launcher = job.pid
        warden, = (pid for pid in job.marked() if parent_of(pid) == launcher)
        counts = []
        for word in ("settled", "later"):
            job.wait_line(f"^{word}$")
            counts.append((switches(launcher), switches(warden)))
        return [later - settled for settled, later in zip(*counts)]

    def test_nothing_wakes_launcher_or_warden(self):
        self.assertEqual(self.wake_ups(), [0, 0])

    def test_nothing_wakes_them_with_logs_and_a_stall_timeout_either(self):
        folder = os.environ.get("TEST_TMPDIR", "/tmp")
        self.assertEqual(self.wake_ups("--log-dir", folder, "--redirects", "1:3", "--stall-timeout", "1s"), [0, 0])


if __name__ == "__main__":
    unittest.main()
