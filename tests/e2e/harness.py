"""Runs muster as a user would and sees to it that nothing is left: for tests in this folder.

A Job is one `muster` process. Its output is read by a thread, so that a test can wait for a line. Every process that it
starts carries a mark in its environment, by which survivors are found."""

import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
import unittest
import uuid
from pathlib import Path

ROOT = Path.cwd()  # the runfiles folder under Bazel
MUSTER = ROOT / "launcher/muster"
MUSTERD = ROOT / "rendezvous/musterd"
FLAKY = ROOT / "examples/flaky/flaky"
HELLO = ROOT / "examples/hello/hello"
PATIENCE = 60.0  # seconds; a limit for what never comes, nothing is asserted by it

# Workers of the tests, in bash: nothing to compile and quick to start.
SLEEPER = ["--no-python", "bash", "-c", "exec sleep 1000"]


def free_port():
    """A port that was free a moment ago on the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


EXITING, KERNEL_THREAD = 0x4, 0x200000  # flags of a process, as /proc has them


def environment_of(pid):
    """What a process was started with, as bytes; OSError once it has ended, empty for threads of the kernel.

    While a process executes another program, as a warden does with its last will, the kernel shows it without any for a
    moment: then it is looked at again. A process that sleeps or is stopped is past that."""
    while True:
        environment = Path("/proc", str(pid), "environ").read_bytes()
        if environment:
            return environment
        fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()  # from the third one on, the state
        begin, end = fields[47:49]
        has_none = begin == end != "0" and fields[0] in "ST"
        if fields[0] in "ZX" or int(fields[6]) & (EXITING | KERNEL_THREAD) or has_none:
            return environment


def pids_with(mark):
    """Living processes (no zombies) whose environment contains `mark`, without this one."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = environment_of(entry)
            state = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in environment and state not in "ZX":
            found.append(int(entry))
    return found


def deadline():
    return time.monotonic() + PATIENCE


def wait_gone(pids, deadline):
    """Waits until each pid has ended, through pidfds; returns those that have not by `deadline`."""
    left = []
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                left.append(pid)
        finally:
            os.close(fd)
    return left


class Job:
    """One `muster` process: `Job("run", "--nproc-per-node", 2, ...)`."""

    def __init__(self, *args, env=None, prefix=(), mark=None, stdin=subprocess.DEVNULL, program=MUSTER):
        self.mark = mark or f"MUSTER_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "MUSTER_", "MUSTERD_", "SLURM_"))}
        environment.update(env or {})
        environment[name] = value
        self.process = subprocess.Popen([*map(str, prefix), str(program), *map(str, args)], env=environment, stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        self.lines = []  # (stream, line), in the order of arrival
        self.open = 2  # streams that may bring more
        self.changed = threading.Condition()
        self.readers = [threading.Thread(target=self._read, args=item, daemon=True)
                        for item in (("out", self.process.stdout), ("err", self.process.stderr))]
        for reader in self.readers:
            reader.start()

    def _read(self, stream, file):
        for line in file:
            with self.changed:
                self.lines.append((stream, line.rstrip("\n")))
                self.changed.notify_all()
        with self.changed:
            self.lines.append((stream, None))
            self.open -= 1
            self.changed.notify_all()

    @property
    def pid(self):
        return self.process.pid

    def text(self, stream=None):
        with self.changed:
            return "\n".join(line for s, line in self.lines if line is not None and stream in (None, s))

    def wait_line(self, pattern, count=1, stream=None, start=0):
        """The `count`-th match of `pattern` in a line from number `start` on; fails when the output ends without it."""
        deadline = time.monotonic() + PATIENCE
        regex = re.compile(pattern)
        found = []
        with self.changed:
            while True:
                # Each line once: a test that looks at all of them again and again comes too late for what it waits for.
                found += [match for s, line in self.lines[start:] if line is not None and stream in (None, s)
                          for match in [regex.search(line)] if match]
                if len(found) >= count:
                    return found[count - 1]
                start = len(self.lines)
                if not self.open or not self.changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no line {count} x {pattern!r} in the output:\n" + self._text_locked())

    def _text_locked(self):
        return "\n".join(f"{s}: {line}" for s, line in self.lines if line is not None)

    def position(self):
        with self.changed:
            return len(self.lines)

    def wait(self):
        """The exit code, as a shell would report it; all output has been read then."""
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("still running after %g s:\n%s" % (PATIENCE, self.text())) from None
        for reader in self.readers:
            reader.join(PATIENCE)
        return 128 - code if code < 0 else code

    def signal(self, number):
        self.process.send_signal(number)

    def marked(self):
        return pids_with(self.mark)

    def clean_up(self):
        for pid in self.marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()


def bash(script, *args):
    """The words of a command line that make each worker a shell."""
    return ["--no-python", "bash", "-c", script, *args]


class Case(unittest.TestCase):
    maxDiff = None

    def start(self, *args, **kwargs):
        job = Job(*args, **kwargs)
        self.addCleanup(job.clean_up)
        return job

    def run_job(self, *args, **kwargs):
        """A job that ends by itself, and its exit code."""
        job = self.start("run", *args, **kwargs)
        return job, job.wait()

    def terminate(self, *jobs):
        """Ends jobs as an operator does."""
        for job in jobs:
            job.signal(signal.SIGTERM)
        for job in jobs:
            self.assertEqual(job.wait(), 143, job.text("err"))
        self.assert_nothing_left(*jobs)

    def assert_nothing_left(self, *jobs):
        """At most a second after the launcher's end nothing of it is alive (the orphan grace is half of that)."""
        for job in jobs:
            left = wait_gone(job.marked(), time.monotonic() + PATIENCE)
            self.assertEqual(left, [], "processes left behind")
            self.assertEqual(job.marked(), [], "processes left behind")

    def assert_one_line(self, job, pattern):
        lines = job.text("err").splitlines()
        self.assertEqual(len(lines), 1, "\n".join(lines))
        self.assertRegex(lines[0], pattern)
