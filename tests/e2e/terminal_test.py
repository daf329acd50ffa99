"""muster on a terminal: typed keys, job control, closing; and what comes in by standard input or goes out to a pipe.

The terminal is a pty with an interactive bash on it, as a user has it."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

import harness
from harness import MUSTER

PROMPT = "READY> "
CTRL_C, CTRL_Z = "\x03", "\x1a"
SLEEPER = "echo up; exec sleep 1000"
# Counts for ever, a few numbers a second; says on which attempt.
COUNTER = "for ((i = 0; ; ++i)); do echo step $i of attempt $TORCHELASTIC_RESTART_COUNT by $$; read -t 0.05 <> <(:); done"
SAVES_ON_HUP = 'trap "echo saved >> $0; exit 0" HUP; echo up; sleep 1000 & wait'


class Terminal:
    """An interactive shell; what it starts carries a mark."""

    def __init__(self, folder):
        self.mark = uuid.uuid4().hex
        self.text = ""
        self.read_until = 0
        environment = {**os.environ, "PS1": PROMPT, "TERM": "dumb", "MUSTER_TEST_MARK": self.mark, "TMPDIR": folder,
                       "HISTFILE": ""}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.expect(re.escape(PROMPT))

    def type(self, text):
        os.write(self.fd, text.encode())

    def run(self, *args, prefix="", suffix=""):
        self.type(" ".join([prefix, *(shlex.quote(str(a)) for a in (MUSTER.absolute(), "run", *args)), suffix]) + "\n")

    def expect(self, pattern):
        """Reads until `pattern` comes after what was expected before; returns the match."""
        deadline = harness.deadline()
        while True:
            match = re.compile(pattern).search(self.text, self.read_until)
            if match:
                self.read_until = match.end()
                return match
            if not select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{pattern!r} does not come after:\n{self.text}")
            self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")

    def close(self):
        """The window is closed: the shell gets SIGHUP, and its jobs from it."""
        os.close(self.fd)
        self.fd = -1
        os.waitpid(self.pid, 0)

    def marked(self):
        return harness.pids_with(self.mark)

    def clean_up(self):
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.fd >= 0:
            self.close()


def wait_for_state(pid, states):
    """Until the kernel says that the process is in one of `states`; no descriptor tells that."""
    deadline = harness.deadline()
    while Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in states:
        if time.monotonic() > deadline:
            raise AssertionError(f"pid {pid} does not get into any of the states {states}")
        os.sched_yield()


class OnATerminal(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.terminal = Terminal(self.folder)
        self.addCleanup(self.terminal.clean_up)

    def assert_nothing_left(self):
        pids = [pid for pid in self.terminal.marked() if pid != self.terminal.pid]
        self.assertEqual(harness.wait_gone(pids, harness.deadline()), [])

    def exit_code(self):
        self.terminal.type("echo code=$?\n")
        return int(self.terminal.expect(r"\ncode=(\d+)").group(1))

    def test_ctrl_c_ends_in_one_line_and_130(self):
        self.terminal.run("--nproc-per-node", 2, "--no-python", "bash", "-c", SLEEPER)
        self.terminal.expect(r"\nup\nup\n")
        self.terminal.type(CTRL_C)
        self.assertEqual(self.terminal.expect(r"(?s)(.*)" + re.escape(PROMPT)).group(1), "^Cmuster: SIGINT: stopping (again to kill)\n")
        self.assertEqual(self.exit_code(), 130)
        self.assert_nothing_left()

    def test_ctrl_c_on_workers_that_ignore_it_gives_the_prompt_back_after_the_grace(self):
        self.terminal.run("--shutdown-timeout", 0.5, "--no-python", "bash", "-c", "trap '' INT; " + SLEEPER)
        self.terminal.expect(r"\nup\n")
        self.terminal.type(CTRL_C)
        self.terminal.expect(re.escape(PROMPT))
        self.assertEqual(self.exit_code(), 130)
        self.assert_nothing_left()

    def test_ctrl_z_stops_workers_and_fg_and_bg_go_on_where_they_were(self):
        self.terminal.run("--no-python", "bash", "-c", COUNTER)
        worker = int(self.terminal.expect(r"step 3 of attempt 0 by (\d+)\n").group(1))
        for resume in ("fg", "bg"):
            self.terminal.type(CTRL_Z)
            self.terminal.expect(r"\n\[1\]\+  Stopped .*\n" + re.escape(PROMPT))
            wait_for_state(worker, "T")
            last = int(re.findall(r"step (\d+) of", self.terminal.text)[-1])
            self.terminal.type(f"{resume}\n")
            # The line that it was writing may have come before or after the prompt.
            step = int(self.terminal.expect(rf"step (\d+) of attempt 0 by {worker}\n").group(1))
            self.assertLessEqual(abs(step - last - 1), 1)
        self.terminal.type("echo still $((40 + 2))\n")
        self.terminal.expect("still 42")
        self.terminal.type("fg\n")
        self.terminal.expect(rf"step \d+ of attempt 0 by {worker}\n")
        self.terminal.type(CTRL_C)
        self.terminal.expect("SIGINT: stopping")
        self.terminal.expect(re.escape(PROMPT))
        self.assertEqual(self.exit_code(), 130)
        self.assert_nothing_left()

    def test_ctrl_z_stops_what_the_workers_started_too(self):
        self.terminal.run("--no-python", "bash", "-c", "setsid bash -c 'echo child $$; exec sleep 1000' & exec sleep 1000")
        child = int(self.terminal.expect(r"\nchild (\d+)\n").group(1))
        self.terminal.type(CTRL_Z)
        self.terminal.expect(r"Stopped")
        wait_for_state(child, "T")
        self.terminal.type("kill %1\n")
        self.assert_nothing_left()

    def test_a_node_among_two_that_is_stopped_for_less_than_a_lease_goes_on(self):
        other = Terminal(self.folder)
        self.addCleanup(other.clean_up)
        meeting = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-id", "stopped", "--rdzv-endpoint",
                   f"127.0.0.1:{harness.free_port()}")
        for name, terminal in (("a", other), ("b", self.terminal)):
            terminal.run(*meeting, "--node-id", name, "--no-python", "bash", "-c", COUNTER)
        worker = int(self.terminal.expect(r"step 3 of attempt 0 by (\d+)\n").group(1))
        self.terminal.type(CTRL_Z)
        self.terminal.expect(r"Stopped")
        wait_for_state(worker, "T")
        position = int(other.expect(r"(?s:.*)step (\d+) of").group(1))
        other.expect(rf"step {position + 3} of attempt 0 by")
        self.terminal.type("fg\n")
        for _ in range(10):
            self.terminal.expect(rf"step \d+ of attempt 0 by {worker}\n")
        for terminal in (self.terminal, other):
            terminal.type(CTRL_C)
            terminal.expect("SIGINT: stopping")
            terminal.expect(re.escape(PROMPT))
        self.assert_nothing_left()

    def test_a_stopped_job_that_is_killed_leaves_nothing(self):
        self.terminal.run("--no-python", "bash", "-c", SLEEPER)
        self.terminal.expect(r"\nup\n")
        self.terminal.type(CTRL_Z)
        self.terminal.expect(r"Stopped")
        self.terminal.type("kill -9 %1\n")
        self.assert_nothing_left()

    def closed(self, suffix):
        saved = os.path.join(self.folder, "saved")
        self.terminal.run("--no-python", "bash", "-c", SAVES_ON_HUP, saved, suffix=suffix)
        self.terminal.expect(rf"(\n|{PROMPT})up\n")
        self.terminal.close()
        self.assert_nothing_left()
        self.assertEqual(Path(saved).read_text(), "saved\n")

    def test_closing_the_terminal_ends_the_job_orderly(self):
        self.closed("")

    def test_closing_the_terminal_ends_a_job_in_the_background_orderly(self):
        self.closed("&")

    def test_under_nohup_closing_the_terminal_changes_nothing(self):
        self.terminal.run("--no-python", "bash", "-c", COUNTER, prefix="nohup", suffix="&")
        self.terminal.expect(r"nohup.out")
        launcher = self.wait_for_launcher()
        self.terminal.close()
        os.kill(launcher, signal.SIGHUP)  # once more, whatever the shell did
        os.kill(launcher, signal.SIGTERM)
        self.assert_nothing_left()
        text = Path(self.folder, "nohup.out").read_text()
        self.assertRegex(text, r"muster: SIGTERM from pid \d+: stopping\n")
        self.assertNotIn("SIGHUP", text)

    def wait_for_launcher(self):
        """The pid, once its workers run: nohup.out has their first line."""
        self.terminal.type("tail -f -n +1 nohup.out | grep -m 1 'step 0'; echo pid=$!\n")
        return int(self.terminal.expect(r"\nstep 0(?s:.*)\npid=(\d+)").group(1))


class Streams(unittest.TestCase):
    def run_in_shell(self, line):
        """Ends, or the time-out fails the test."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "MUSTER_"))}
        return subprocess.run(["bash", "-c", line], env={**environment, "muster": str(MUSTER)}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=harness.PATIENCE, check=False)

    def test_stdin_reaches_the_chosen_worker_alone(self):
        done = self.run_in_shell(r"""printf 'a\nb\n' | $muster run --nproc-per-node 2 --stdin 1 --no-python bash -c '
            while read line; do echo "$RANK $line"; done'""")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("1 a\n1 b\n", "", 0))

    def test_stdin_is_inherited(self):
        done = self.run_in_shell(r"printf 'a\nb\n' | $muster run --no-python cat")
        self.assertEqual((done.stdout, done.returncode), ("a\nb\n", 0))

    def test_stdin_can_be_none(self):
        done = self.run_in_shell(r"printf 'a\nb\n' | $muster run --stdin none --no-python cat")
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    def test_a_reader_that_goes_ends_a_worker_that_writes_on(self):
        done = self.run_in_shell("$muster run --no-python bash -c 'while echo y; do :; done' | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(done.stdout, f"y\n{128 + signal.SIGPIPE}\n")

    def test_a_reader_ends_with_the_job(self):
        done = self.run_in_shell("$muster run --nproc-per-node 2 --no-python bash -c 'echo x; (sleep 1000 &)' | tee /dev/stderr")
        self.assertEqual((done.stdout, done.returncode), ("x\nx\n", 0))

    def test_a_reader_ends_when_the_launcher_is_killed(self):
        done = self.run_in_shell("$muster run --orphan-grace 0.1 --no-python bash -c "
                                 "'trap \"\" TERM; echo up; kill -9 $(ps -o ppid= -p $PPID); exec sleep 1000' | tee /dev/null")
        self.assertEqual(done.stdout, "up\n")


if __name__ == "__main__":
    unittest.main()
