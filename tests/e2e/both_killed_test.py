"""Agent and warden killed in the same instant: what docs/SUPERVISION.md says stays behind, and what an operator can do about
it. Needs root for the namespaces and groups that only an operator can make."""

import os
import signal
import subprocess
import unittest
import uuid
from pathlib import Path

import harness
from harness import Case

# A worker, and a child of it in a session of its own.
FAMILY = ["--no-python", "bash", "-c", "setsid bash -c 'echo child $$; exec sleep 1000' & echo up; exec sleep 1000"]


def group_root():
    """The folder of a cgroup v2 in which this process may make groups, or None."""
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if Path(mount, "cgroup.procs").exists() and os.access(mount, os.W_OK):
            own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line[:3] == "0::"), "/")
            return Path(mount, own.lstrip("/"))
    return None


def name_of(pid):
    return Path("/proc", str(pid), "comm").read_text().strip()


class BothKilled(Case):
    def start_family(self, prefix=()):
        job = self.start("run", *FAMILY, prefix=prefix)
        job.wait_line("up")
        return job, int(job.wait_line(r"child (\d+)").group(1))

    def kill_both(self, job):
        """Stopped first, so that neither sees the other's end; the warden dies first, for a stopped one is woken by the end of
        its agent."""
        both = [pid for pid in job.marked() if name_of(pid) in ("muster", "muster-warden")]
        both.sort(key=name_of, reverse=True)
        self.assertEqual([name_of(pid) for pid in both], ["muster-warden", "muster"])
        self.warden = both[0]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in both:
                os.kill(pid, number)
        self.assertEqual(harness.wait_gone(both, harness.deadline()), [])

    def test_workers_die_and_what_they_hid_stays_until_the_next_start_where_there_are_groups(self):
        job, hidden = self.start_family()
        self.kill_both(job)
        self.assertEqual(harness.wait_gone([pid for pid in job.marked() if pid != hidden], harness.deadline()), [])
        self.assertEqual(job.marked(), [hidden])
        root = group_root()
        if root is None or not (root / f"muster-{self.warden}" / "cgroup.kill").exists():
            return  # there was no group for the workers
        self.assertEqual(self.start("run", "--no-python", "true").wait(), 0)
        self.assert_nothing_left(job)

    def test_in_a_pid_namespace_nothing_stays(self):
        own_pids = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*own_pids, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        job, _ = self.start_family(own_pids)
        self.kill_both(job)
        self.assert_nothing_left(job)

    def test_in_a_group_that_a_service_manager_ends_nothing_stays(self):
        """systemd does this with KillMode=control-group, its default; container runtimes too."""
        root = group_root()
        if root is None:
            self.skipTest("no cgroup v2 can be written here")
        group = root / f"muster-test-{uuid.uuid4().hex}"
        try:
            group.mkdir()
        except OSError as problem:
            self.skipTest(f"no cgroup v2 can be written here: {problem}")
        self.addCleanup(lambda: [os.rmdir(folder) for folder, _, _ in os.walk(group, topdown=False)])
        if not (group / "cgroup.kill").exists():
            self.skipTest("this kernel has no cgroup.kill")
        job, _ = self.start_family(["bash", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group])
        self.kill_both(job)
        (group / "cgroup.kill").write_text("1")
        self.assert_nothing_left(job)


if __name__ == "__main__":
    unittest.main()
