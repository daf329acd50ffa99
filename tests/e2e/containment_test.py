"""Containment: how the launcher dies x how the workers misbehave x one or two nodes. Whatever the combination, nothing
of the job stays alive, nothing else is touched, and exit code and lines are the documented ones.

The combinations run side by side before the first case; each case looks up the outcome of its own."""

import concurrent.futures
import itertools
import os
import re
import signal
import subprocess
import sys
import traceback
import unittest
import uuid
from pathlib import Path

import harness

AT_ONCE = 12
QUICK = ("--shutdown-timeout", "0.5", "--orphan-grace", "0.2")
SLOW = ("--shutdown-timeout", "600", "--orphan-grace", "600")
DEAF = "trap '' TERM INT HUP QUIT;"
SLEEP = "exec sleep 1000"
UP = f"echo up; {SLEEP}"

# How the workers of a node misbehave: a script in bash that says `up` once it does. Each node has two of them.
WORKERS = {
    "obeys": UP,
    "ignores_term": f"{DEAF} {UP}",
    "is_stopped": f"echo stop $$; {SLEEP}",  # the test stops it
    "has_a_child_in_its_own_session": f"setsid bash -c '{UP}' & {SLEEP}",
    "has_a_child_forked_twice": f"((setsid bash -c '{UP}' &) &); {SLEEP}",
    "has_a_child_that_ignores_term": f"({DEAF} exec setsid bash -c '{UP}') & {SLEEP}",
    # Each process forks the next one and ends, so that it also forks while the tree is being killed.
    "forks_while_it_is_killed": f"{DEAF} chain() {{ (( $1 )) || {SLEEP}; (chain $(($1 - 1))) & }}; "
                                f"echo up; chain 300; {SLEEP}",
    # The child reads to the end of what only the worker writes: then its parent is gone.
    "is_dead_and_its_child_lives": f"(( LOCAL_RANK )) && {{ {UP}; }}; "
                                   f"exec 3> >(exec setsid bash -c 'read -r; {UP}'); exit 0",
}

# What a node says besides when its peer goes.
OF_A_PEER = r"muster: (stopping the workers of generation \d+: node n\d|lost the master \(|no master|still waiting)"
STOPPING = r"muster: {name} from pid \d+: stopping"
AGAIN = r"muster: again {name}: not waiting any longer"


def stopping(number):
    return STOPPING.format(name=signal.Signals(number).name)


def warden_of(job):
    for pid in job.marked():
        if Path("/proc", str(pid), "comm").read_text() == "muster-warden\n":
            return pid
    raise AssertionError("no warden")


def by_signal(number):
    def die(job):
        job.signal(number)
        return 128 + number, [stopping(number)]
    return die


def by_two_signals(job):
    """The second one counts only a second after the first was heard; many jobs have ended by then."""
    job.signal(signal.SIGTERM)
    job.wait_line(stopping(signal.SIGTERM))
    try:
        job.process.wait(1.2)
    except subprocess.TimeoutExpired:
        job.signal(signal.SIGTERM)
        return 143, [stopping(signal.SIGTERM), AGAIN.format(name="SIGTERM")]
    return 143, [stopping(signal.SIGTERM)]


def by_kill(job):
    job.signal(signal.SIGKILL)
    return 137, []


def by_loss_of_the_warden(job):
    os.kill(warden_of(job), signal.SIGKILL)
    return 70, ["muster: the warden process is gone and its workers with it; leaving the job"]


# How the launcher dies: the act, which returns exit code and lines to be expected, and the options of the job.
DEATHS = {
    "term": (by_signal(signal.SIGTERM), QUICK),
    "int": (by_signal(signal.SIGINT), QUICK),
    "hup": (by_signal(signal.SIGHUP), QUICK),
    "quit": (by_signal(signal.SIGQUIT), QUICK),
    "two_signals": (by_two_signals, SLOW),
    "kill": (by_kill, QUICK),
    "kill_of_the_warden": (by_loss_of_the_warden, QUICK),
}


class Combination:
    """One job of one or two nodes. `run` raises AssertionError when something is not as it must be."""

    def __init__(self, number, death, worker, nodes):
        self.number, self.death, self.worker, self.nodes = number, death, worker, nodes
        self.jobs = []

    @property
    def name(self):
        return f"test_{self.death}__{self.worker}__{self.nodes}_node{'s' if self.nodes > 1 else ''}"

    def start(self, options, nnodes, script):
        meeting = ("--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-id", self.name, "--rdzv-endpoint",
                   f"127.0.0.1:{harness.free_port()}") if nnodes != 1 else ()
        for node in range(self.nodes):
            name = ("--node-id", f"n{node}") if meeting else ()
            self.jobs.append(harness.Job("run", "--nproc-per-node", 2, *options, *meeting, *name, "--stdin", "none",
                                         "--no-python", "bash", "-c", script))

    def wait_until_workers_misbehave(self):
        for job in self.jobs:
            for count in (1, 2):
                match = job.wait_line(r"^(up|stop (\d+))$", count=count)
                if match.group(2):
                    os.kill(int(match.group(2)), signal.SIGSTOP)

    def run(self):
        try:
            act, options = DEATHS[self.death]
            self.start(options, self.nodes, WORKERS[self.worker])
            self.wait_until_workers_misbehave()
            # With two nodes, each of them is the victim in half of the combinations: the first hosts the master.
            victim = self.jobs[self.number % self.nodes]
            self.check_end(victim, *act(victim))
            for other in self.jobs:
                if other is not victim:
                    self.check_end(other, *by_two_signals(other), OF_A_PEER)
        finally:
            for job in self.jobs:
                job.clean_up()

    def check_end(self, job, code, lines, besides="(?!)"):
        if code == 137:
            job.process.wait(harness.PATIENCE)
            harness.wait_gone(job.marked(), harness.deadline())
        ended = job.wait()
        assert ended == code, f"exit code {ended} and not {code}:\n{job.text()}"
        left = harness.wait_gone(job.marked(), harness.deadline())
        assert not left, f"left behind: {left}"
        said = [line for line in job.text("err").splitlines() if not re.match(besides, line)]
        assert len(said) == len(lines) and all(map(re.fullmatch, lines, said)), \
            "stderr is\n" + job.text("err") + "\nand not\n" + "\n".join(lines)


class DuringRendezvous(Combination):
    """There are no workers yet: the job waits for one node more."""

    def __init__(self, nodes):
        super().__init__(0, "term_during_the_first_rendezvous", "is_not_there", nodes)

    def run(self):
        try:
            self.start((*QUICK, "--log-level", "info"), self.nodes + 1, UP)
            self.jobs[0].wait_line(rf"{self.nodes} of {self.nodes + 1}")
            for job in self.jobs:
                job.signal(signal.SIGTERM)
            for job in self.jobs:
                assert job.wait() == 143, job.text()
                assert re.search(stopping(signal.SIGTERM), job.text("err")), job.text()
                assert "up" not in job.text("out").splitlines()
                left = harness.wait_gone(job.marked(), harness.deadline())
                assert not left, f"left behind: {left}"
        finally:
            for job in self.jobs:
                job.clean_up()


COMBINATIONS = [Combination(number, *row)
                for number, row in enumerate(itertools.product(DEATHS, WORKERS, (1, 2)))]
COMBINATIONS += [DuringRendezvous(nodes) for nodes in (1, 2)]


def outcome(combination):
    try:
        combination.run()
    except Exception:  # a case reports it
        return traceback.format_exc()
    return None


class Containment(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment = {**os.environ, "MUSTER_TEST_MARK": uuid.uuid4().hex}
        cls.bystander = subprocess.Popen(["sleep", "1000"], env=environment)
        # It starts nothing after it has spoken, so that the list of its processes is complete.
        speaks = "import signal; print('up', flush=True); signal.pause()"
        cls.bystander_job = harness.Job("run", "--no-python", "python3", "-c", speaks)
        cls.addClassCleanup(cls.bystander_job.clean_up)
        cls.addClassCleanup(cls.bystander.wait)
        cls.addClassCleanup(cls.bystander.kill)
        cls.bystander_job.wait_line("up")
        cls.bystanders = cls.bystander_job.marked()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            cls.outcomes = dict(zip((c.name for c in COMBINATIONS), pool.map(outcome, COMBINATIONS)))
        failed = sum(problem is not None for problem in cls.outcomes.values())
        print(f"{len(cls.outcomes)} combinations: {len(DEATHS)} deaths x {len(WORKERS)} workers x 2 sizes, and 2 without "
              f"workers; {failed} failed", file=sys.stderr, flush=True)

    def test_processes_outside_the_jobs_were_left_alone(self):
        self.assertIsNone(self.bystander.poll())
        self.assertEqual(sorted(self.bystander_job.marked()), sorted(self.bystanders))


def case(name):
    def check(self):
        if self.outcomes[name]:
            self.fail(self.outcomes[name])
    return check


for combination in COMBINATIONS:
    setattr(Containment, combination.name, case(combination.name))


if __name__ == "__main__":
    unittest.main()
