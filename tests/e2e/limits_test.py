"""Jobs in a cgroup that gives them too little: memory, processes. Needs root, and a cgroup (version 1 or 2) that can be made."""

import json
import os
import tempfile
import unittest
import uuid
from pathlib import Path

from harness import Case, bash


def parent_group(controller):
    """The folder of this process's own cgroup where groups with this controller can be made, or None."""
    root = Path("/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return root / controller / path.lstrip("/")
        if not controllers and (root / "cgroup.subtree_control").exists():
            group = root / path.lstrip("/")
            if controller in (group / "cgroup.subtree_control").read_text().split():
                return group
    return None


class Limited(Case):
    def group(self, controller, limits):
        """A prefix for Job that runs it in a new group with these limits: files and what to write, of either version."""
        parent = parent_group(controller)
        if parent is None or not os.access(parent, os.W_OK):
            self.skipTest(f"no cgroup with the controller {controller} can be made here")
        group = parent / f"muster-test-{uuid.uuid4().hex}"
        try:
            group.mkdir()
        except OSError as problem:
            self.skipTest(f"no cgroup can be made here: {problem}")
        self.addCleanup(group.rmdir)
        for name, value in limits.items():
            if (group / name).exists():
                (group / name).write_text(str(value))
        return ["bash", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group]

    def test_a_worker_that_is_killed_for_lack_of_memory_is_said_to_be(self):
        limit = 96 * 1024 * 1024
        prefix = self.group("memory", {"memory.limit_in_bytes": limit, "memory.max": limit, "memory.swap.max": 0,
                                       "memory.swappiness": 0})
        report = Path(self.enterContext(tempfile.TemporaryDirectory()), "report.json")
        job = self.start("run", "--nproc-per-node", 2, "--report-file", report,
                         *bash("[ $RANK = 1 ] && exec python3 -c 'b\"x\" * (1 << 30)'; exec sleep 1000"), prefix=prefix)
        self.assertEqual(job.wait(), 137, job.text())
        self.assertRegex(job.text("err"), r"Root cause: rank 1 .*signal 9 \(SIGKILL\)")
        self.assertRegex(job.text("err"), r"hint +out of memory: the kernel killed 1 of the processes")
        cause = json.loads(report.read_text())["cause"]
        self.assertEqual((cause["rank"], cause["signal_name"]), (1, "SIGKILL"))
        self.assertIn("out of memory", cause["hint"])
        self.assert_nothing_left(job)

    def test_a_worker_that_gets_no_process_is_one_line(self):
        # muster, its warden and the first worker.
        prefix = self.group("pids", {"pids.max": 3})
        job = self.start("run", "--nproc-per-node", 2, *bash("exec sleep 1000"), prefix=prefix)
        self.assertEqual(job.wait(), 71, job.text())
        self.assert_one_line(job, r"^muster: rank 1 .* never started: exit code 71: cannot start .*/bash: "
                                  r"Resource temporarily unavailable: raise the limit of processes")
        self.assert_nothing_left(job)

    def test_a_launcher_that_gets_no_process_is_one_line(self):
        prefix = self.group("pids", {"pids.max": 1})
        job = self.start("run", *bash("exec sleep 1000"), prefix=prefix)
        self.assertEqual(job.wait(), 71, job.text())
        self.assert_one_line(job, r"^muster: cannot fork the warden: .*: raise the limit of processes")


if __name__ == "__main__":
    unittest.main()
