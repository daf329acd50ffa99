"""Connections between agent and master that are slow, stall, break, or seem to be there and are not."""

import time
import unittest

import harness
import step_log
from relay import Relay
from step_log import StepCase

LEASE = 2.0  # seconds; StepCase.node

tearDownModule = step_log.tell_table


class Connections(StepCase):
    """Node a hosts the master; b reaches it through the relay. A spare, if there is one, reaches it as a does."""

    def begin(self, *options, spare=False, delay=0.0, conf=""):
        port = harness.free_port()
        self.options = options
        self.relay = Relay(("127.0.0.1", port))
        self.addCleanup(self.relay.close)
        self.relay.delay(delay)
        self.direct = f"127.0.0.1:{port}"
        self.jobs = {"a": self.join("a", self.direct, conf=conf)}
        self.jobs["a"].wait_line("waiting for nodes: 1 of 2 are here")
        self.jobs["b"] = self.join("b", f"127.0.0.1:{self.relay.port}", conf=f"is_host=0{conf and ','}{conf}")
        self.steps.first_step(1)
        if spare:
            self.jobs["s"] = self.join("s", self.direct)
            self.jobs["s"].wait_line("spare: 2 nodes are in")
        self.steps.more_steps(10)

    def join(self, name, endpoint, **kwargs):
        return self.node(name, endpoint, *self.options, nnodes=2, **kwargs)

    def end(self):
        self.assert_one_world()
        self.terminate(*self.jobs.values())

    def end_without_a_pause(self, fault):
        """Generation 1 goes on, and nobody was taken for lost."""
        self.assertEqual(self.steps.more_steps(30), 1)
        self.tell_gap(fault)
        self.assertNotIn("is lost", self.jobs["a"].text())
        self.end()

    def end_in_generation_2(self, fault):
        """The same ranks again."""
        self.tell_recovery(fault, 2)
        self.assertEqual(self.steps.ranks(2), self.steps.ranks(1))
        self.assertEqual(self.steps.more_steps(30), 2)
        self.end()


class Slow(Connections):
    def test_a_delay_longer_than_the_heartbeats_interval_does_no_harm(self):
        self.begin(delay=0.55)
        fault = time.monotonic()
        self.steps.hold(LEASE * 1.5)
        self.end_without_a_pause(fault)

    def test_a_stall_shorter_than_the_lease_does_no_harm(self):
        self.begin(conf="keep_alive_max_attempt=8")  # twice the usual lease, for a machine that is slow
        fault = time.monotonic()
        self.relay.hold("up", "down")
        self.steps.hold(LEASE)
        self.relay.release()
        self.steps.hold(2 * LEASE)
        self.end_without_a_pause(fault)

    def test_an_agent_that_hears_nothing_makes_itself_heard_and_the_workers_go_on(self):
        self.begin()
        fault = time.monotonic()
        self.relay.hold("down")
        position = self.jobs["b"].position()
        self.jobs["b"].wait_line("lost the master .*the workers go on", start=position)
        self.steps.hold(LEASE)
        self.relay.release()
        self.jobs["b"].wait_line("the master is back", start=position)
        self.end_without_a_pause(fault)

    def test_an_agent_that_is_not_heard_is_lost_and_comes_back_with_its_rank(self):
        self.begin()
        position = self.jobs["a"].position()
        self.relay.hold("up")
        self.jobs["a"].wait_line("node b is lost: silent", start=position)
        self.jobs["a"].wait_line("waiting for nodes: 1 of 2 are here", start=position)
        fault = time.monotonic()
        self.relay.release()
        self.end_in_generation_2(fault)

    def test_a_stall_longer_than_the_lease_lets_a_spare_in(self):
        self.begin(spare=True)
        fault = time.monotonic()
        self.relay.hold("up", "down")
        self.tell_recovery(fault, 2)
        self.assertEqual(self.steps.ranks(2), {"a": 0, "s": 1})
        position = self.jobs["b"].position()
        self.relay.release()
        self.steps.wait_ended("b", 1)
        self.jobs["b"].wait_line("spare: 2 nodes are in", start=position)
        self.assertEqual(self.steps.more_steps(30), 2)
        self.end()


class Cut(Connections):
    def test_a_reset_connection_is_made_again_in_the_same_ranks(self):
        self.begin()
        fault = time.monotonic()
        self.relay.reset()
        self.end_in_generation_2(fault)

    def test_a_cut_that_only_the_agent_notices_is_mended_without_a_pause(self):
        self.begin()
        fault = time.monotonic()
        position = self.jobs["b"].position()
        self.relay.cut_from("agent")
        self.jobs["b"].wait_line("the master is back", start=position)
        self.steps.hold(LEASE * 1.5)
        self.end_without_a_pause(fault)

    def test_a_cut_that_only_the_master_notices_ends_the_generation_and_the_agent_is_back_in_its_rank(self):
        self.begin()
        fault = time.monotonic()
        self.relay.cut_from("master")
        self.end_in_generation_2(fault)

    def test_a_connection_that_was_given_up_and_is_heard_late_changes_nothing(self):
        self.begin()
        # The connection there is breaks; the next one stalls with its Hello, the one after it is fine.
        fault = time.monotonic()
        self.relay.hold("up")
        self.relay.cut_from("agent")
        self.relay.wait_links(2)
        self.relay.pass_new()
        self.tell_recovery(fault, 2)
        self.relay.release()
        self.steps.hold(LEASE * 1.5)
        self.assertEqual(self.steps.more_steps(30), 2)
        self.end()


if __name__ == "__main__":
    unittest.main()
