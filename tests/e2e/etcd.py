"""A real etcd of several members for a test, and workers that tell each of their steps."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import harness

# Prints "step TIME RANK GENERATION PID" some 50 times a second, as a trainer would that makes progress.
STEPPER = """
import os, time
while True:
    print("step", time.monotonic(), os.environ["RANK"], os.environ["MUSTER_GENERATION"], os.getpid(), flush=True)
    time.sleep(0.02)
"""
WORKER = ["--no-python", sys.executable, "-c", STEPPER]


def reserved_port(case):
    """A port of the loopback address that nobody gets who does not ask for this very one, until the case ends."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    case.addCleanup(holder.close)
    return holder.getsockname()[1]


class Member:
    def __init__(self, name, folder, case):
        self.name = name
        self.folder = folder
        self.client = f"http://127.0.0.1:{reserved_port(case)}"
        self.peer = f"http://127.0.0.1:{reserved_port(case)}"
        self.process = None
        self.lines = []


class Etcd:
    """`Etcd(case)`: three members, ready; killed when the test case ends."""

    def __init__(self, case, members=3):
        self.folder = tempfile.TemporaryDirectory()
        self.changed = threading.Condition()
        self.members = [Member(f"m{i}", Path(self.folder.name), case) for i in range(members)]
        case.addCleanup(self.folder.cleanup)
        case.addCleanup(self.kill_all)
        self.start_all()

    @property
    def endpoints(self):
        return ",".join(member.client[len("http://"):] for member in self.members)

    def start(self, member):
        cluster = ",".join(f"{each.name}={each.peer}" for each in self.members)
        member.lines = []
        member.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "etcd", "--name", member.name, "--data-dir", member.folder / member.name,
             "--listen-client-urls", member.client, "--advertise-client-urls", member.client,
             "--listen-peer-urls", member.peer, "--initial-advertise-peer-urls", member.peer,
             "--initial-cluster", cluster, "--initial-cluster-token", member.folder.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(member, member.process, member.lines), daemon=True).start()

    def _read(self, member, process, lines):
        for line in process.stderr:
            with self.changed:
                lines.append(line)
                self.changed.notify_all()
        process.stderr.close()
        with self.changed:
            lines.append("")
            self.changed.notify_all()

    def await_ready(self, member):
        with self.changed:
            found = self.changed.wait_for(
                lambda: any("ready to serve client requests" in line or not line for line in member.lines),
                harness.PATIENCE)
            assert found and member.lines[-1], "etcd does not start:\n" + "".join(member.lines[-20:])

    def start_all(self):
        for member in self.members:
            self.start(member)
        for member in self.members:
            self.await_ready(member)

    def kill(self, member):
        if member.process is not None:
            member.process.kill()
            member.process.wait()
            member.process = None

    def kill_leader(self):
        """Kills the member that the others follow, and waits until they follow another one."""
        leader = self.leader()
        others = [member for member in self.members if member.process is not None and member is not leader]
        with self.changed:
            before = {member.name: len(member.lines) for member in others}
        self.kill(leader)
        with self.changed:
            found = self.changed.wait_for(
                lambda: any("became leader at term" in line for member in others
                            for line in member.lines[before[member.name]:]), harness.PATIENCE)
            assert found, "etcd has no new leader"

    def kill_all(self):
        for member in self.members:
            self.kill(member)

    def control(self, *words):
        return subprocess.run(["etcdctl", "--endpoints", self.endpoints, *words], check=True, text=True,
                              stdout=subprocess.PIPE, env=dict(os.environ, ETCDCTL_API="3")).stdout

    def leader(self):
        """The member that the others follow."""
        answers = json.loads(self.control("endpoint", "status", "-w", "json"))
        return next(member for answer in answers for member in self.members
                    if answer["Endpoint"] == member.client[len("http://"):]
                    and answer["Status"]["leader"] == answer["Status"]["header"]["member_id"])

    def value(self, key):
        return self.control("get", "--print-value-only", key).strip()


def steps(job):
    """[(time, rank, generation, pid)] of the steps that the worker of a job's node has made."""
    return [(float(time), int(rank), int(generation), int(pid)) for time, rank, generation, pid in
            re.findall(r"^step (\S+) (\d+) (\d+) (\d+)$", job.text("out"), re.MULTILINE)]


def await_steps(*jobs, generation, more=10):
    """Waits until the worker of each job has made `more` further steps in that generation; who they are then:
    [(rank, pid)]."""
    positions = [job.position() for job in jobs]
    lines = [job.wait_line(rf"^step \S+ (\d+) {generation} (\d+)$", count=more, start=position)
             for job, position in zip(jobs, positions)]
    return [(int(line[1]), int(line[2])) for line in lines]


def report_gaps(title, **jobs):
    """Prints the longest pause between two steps of each node: evidence, nothing is asserted by it."""
    for name, job in jobs.items():
        times = [step[0] for step in steps(job)]
        gap = max((b - a for a, b in zip(times, times[1:])), default=0.0)
        print(f"{title}: node {name}: {len(times)} steps, longest gap {1000 * gap:.0f} ms", flush=True)
