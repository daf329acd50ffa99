"""Processes that stop for a while, or for good: the master, an agent, an agent beside a waiting spare."""

import signal
import time
import unittest

import harness
import step_log
from step_log import StepCase

LEASE = 2.0  # seconds; StepCase.node

tearDownModule = step_log.tell_table


class Processes(StepCase):
    """Node m hosts the master, unless a musterd does. Its name comes last, so that the others have the ranks from 0 on."""

    def begin(self, *options, spare=False, daemon=False, hangs=False):
        self.options = options
        self.kwargs = {"hangs": hangs}
        self.jobs = {}
        if daemon:
            self.master = self.start("--listen", "127.0.0.1:0", program=harness.MUSTERD)
            self.endpoint = self.master.wait_line(r"musterd [\d.]+ listens on (\S+:\d+)")[1]
            self.kwargs["conf"] = "is_host=0"
            self.join("m")
        else:
            self.endpoint = f"127.0.0.1:{harness.free_port()}"
            self.master = self.join("m")
            self.master.wait_line("the master listens")
        for name in "ab":
            self.join(name)
        self.steps.first_step(1)
        if spare:
            self.join("s").wait_line("spare: 3 nodes are in")
        self.steps.more_steps(10)
        self.assertEqual(self.steps.ranks(1), {"a": 0, "b": 1, "m": 2})

    def join(self, name):
        self.jobs[name] = self.node(name, self.endpoint, *self.options, **self.kwargs)
        return self.jobs[name]

    def end(self):
        self.assert_one_world()
        self.terminate(*self.jobs.values())


class Master(Processes):
    def frozen_for(self, leases, **kwargs):
        self.begin(**kwargs)
        positions = {name: self.jobs[name].position() for name in "ab"}
        fault = time.monotonic()
        self.master.signal(signal.SIGSTOP)
        for name in "ab":
            self.jobs[name].wait_line("lost the master .*the workers go on", start=positions[name])
        self.steps.hold(leases * LEASE - (time.monotonic() - fault))
        self.master.signal(signal.SIGCONT)
        for name in "ab":
            self.jobs[name].wait_line("the master is back", start=positions[name])
        self.steps.hold(2 * LEASE)
        self.assertEqual(self.steps.more_steps(10), 1)
        self.tell_gap(fault)
        self.assertNotIn("is lost", self.master.text())
        self.end()

    def test_a_master_that_was_frozen_for_more_than_a_lease_takes_nobody_for_lost(self):
        self.frozen_for(1.5)

    def test_a_master_that_was_frozen_for_many_leases_takes_nobody_for_lost(self):
        self.frozen_for(4)

    def test_a_musterd_that_was_frozen_for_many_leases_takes_nobody_for_lost(self):
        self.frozen_for(4, daemon=True)


class Agent(Processes):
    def freeze(self, name):
        self.jobs[name].signal(signal.SIGSTOP)
        return time.monotonic()

    def spare_takes_over(self, fault):
        self.tell_recovery(fault, 2)
        self.assertEqual(self.steps.ranks(2), {"a": 0, "s": 1, "m": 2})

    def test_a_frozen_agent_is_replaced_and_waits_as_a_spare_when_it_wakes(self):
        self.begin(spare=True)
        self.spare_takes_over(self.freeze("b"))
        position = self.jobs["b"].position()
        self.jobs["b"].signal(signal.SIGCONT)
        self.steps.wait_ended("b", 1)
        self.jobs["b"].wait_line("spare: 3 nodes are in", start=position)
        self.assertEqual(self.steps.more_steps(30), 2)
        self.end()

    def test_strict_fencing_holds_for_a_frozen_agent_too(self):
        self.begin("--fencing", "strict", "--master-loss-timeout", 4, spare=True, hangs=True)
        self.spare_takes_over(self.freeze("b"))
        self.steps.more_steps(20)
        self.assert_no_workers_beside(2)
        position = self.jobs["b"].position()
        self.jobs["b"].signal(signal.SIGCONT)
        self.jobs["b"].wait_line("spare: 3 nodes are in", start=position)
        self.end()

    def test_an_agent_that_is_killed_is_replaced_by_a_spare(self):
        self.begin(spare=True)
        fault = time.monotonic()
        self.jobs["b"].signal(signal.SIGKILL)
        self.spare_takes_over(fault)
        self.assert_no_workers_beside(2)
        killed = self.jobs.pop("b")
        self.assertEqual(killed.wait(), 137)
        self.assert_nothing_left(killed)
        self.end()


if __name__ == "__main__":
    unittest.main()
