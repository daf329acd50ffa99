"""Nodes that cannot reach each other for a while: what the job makes of it, seen in the workers' steps."""

import signal
import time
import unittest

import network
import step_log
from step_log import StepCase

NO_NETWORK = network.missing()

tearDownModule = step_log.tell_table


@unittest.skipIf(NO_NETWORK, NO_NETWORK)
class Partition(StepCase):
    """The master is on node m. Its name comes last, so that the others have the ranks from 0 on."""

    def begin(self, *names, spare=None, **kwargs):
        """A job that makes steps on these nodes, from generation `self.first` on: where fewer suffice, one may come after the last
        call. The spare comes when it does."""
        self.net = network.Network([*names, *([spare] if spare else [])])
        self.addCleanup(self.net.close)
        self.kwargs = kwargs
        self.jobs = {}
        for name in names:
            self.join(name)
        self.first = self.steps.generation_of(names)
        if spare:
            self.join(spare)
            self.jobs[spare].wait_line("spare: 3 nodes are in")
        self.steps.more_steps(10)
        if self.first == 1:
            self.assertEqual(self.steps.ranks(1), {name: rank for rank, name in enumerate(sorted(names))})

    def join(self, name):
        endpoint = f"{self.net.address('m')}:29400"
        self.jobs[name] = self.node(name, endpoint, *self.kwargs.get("options", ()), prefix=self.net.prefix_of(name),
                                    **{key: value for key, value in self.kwargs.items() if key != "options"})

    def end(self):
        self.assert_one_world()
        self.terminate(*self.jobs.values())

    def cut_off(self, name):
        fault = time.monotonic()
        self.net.part([name], self.net.others(name))
        return fault

    def heal_and_come_back(self, name):
        """The node hears of the new generation, ends its workers of the old one and waits as a spare."""
        position = self.jobs[name].position()
        self.net.heal()
        self.jobs[name].wait_line("spare: 3 nodes are in", start=position)
        self.steps.wait_ended(name, 1)

    def spare_takes_over(self, lost, fault):
        """The spare s has the rank of the lost node; that comes back, waits, and has its rank again when s is gone."""
        self.tell_recovery(fault, 2)
        ranks = self.steps.ranks(1)
        rank = ranks.pop(lost)
        self.assertEqual(self.steps.ranks(2), {**ranks, "s": rank})
        self.heal_and_come_back(lost)
        self.assertEqual(self.steps.more_steps(10), 2)
        self.jobs["s"].signal(signal.SIGTERM)
        self.assertEqual(self.jobs.pop("s").wait(), 143)
        self.steps.first_step(3)
        self.assertEqual(self.steps.ranks(3), self.steps.ranks(1))
        self.end()


class OneNode(Partition):
    def test_a_node_is_cut_off_and_a_spare_takes_its_rank(self):
        self.begin("a", "b", "m", spare="s")
        self.spare_takes_over("b", self.cut_off("b"))

    def test_the_node_of_rank_0_is_cut_off_and_a_spare_takes_its_rank(self):
        self.begin("a", "b", "m", spare="s")
        self.spare_takes_over("a", self.cut_off("a"))

    def test_a_node_is_not_heard_and_a_spare_takes_its_rank(self):
        self.begin("a", "b", "m", spare="s")
        fault = time.monotonic()
        self.net.drop(["b"], self.net.others("b"))
        self.spare_takes_over("b", fault)

    def test_a_node_does_not_hear_and_a_spare_takes_its_rank(self):
        self.begin("a", "b", "m", spare="s")
        fault = time.monotonic()
        self.net.drop(self.net.others("b"), ["b"])
        self.spare_takes_over("b", fault)

    def test_strict_fencing_waits_until_the_node_that_is_cut_off_has_stopped_its_workers(self):
        """That node gives up (69). Started again when it can reach the others, it waits as a spare."""
        self.begin("a", "b", "m", spare="s", options=["--fencing", "strict", "--master-loss-timeout", 4])
        fault = self.cut_off("b")
        self.tell_recovery(fault, 2)
        self.assertEqual(self.steps.ranks(2), {"a": 0, "s": 1, "m": 2})
        self.assert_no_workers_beside(2)
        given_up = self.jobs.pop("b")
        self.assertEqual(given_up.wait(), 69)
        self.assert_nothing_left(given_up)
        self.net.heal()
        self.join("b")
        self.jobs["b"].wait_line("spare: 3 nodes are in")
        self.assertEqual(self.steps.more_steps(10), 2)
        self.end()

    def test_a_job_of_2_to_3_nodes_goes_on_with_2_and_takes_the_third_back(self):
        self.begin("a", "b", "m", nnodes="2:3")
        fault = self.cut_off("b")
        self.tell_recovery(fault, self.first + 1)
        self.assertEqual(self.steps.ranks(self.first + 1), {"a": 0, "m": 1})
        self.net.heal()
        self.steps.first_step(self.first + 2)
        self.assertEqual(self.steps.ranks(self.first + 2).keys(), {"a", "b", "m"})
        self.end()

    def test_a_job_of_3_nodes_waits_for_the_third_which_gets_its_rank_back(self):
        self.begin("a", "b", "m")
        position = self.jobs["a"].position()
        self.cut_off("b")
        self.jobs["a"].wait_line("node b is lost: silent for ", start=position)
        self.jobs["a"].wait_line("waiting for nodes: 2 of 3 are here", start=position)
        healed = time.monotonic()
        self.net.heal()
        self.tell_recovery(healed, 2)
        self.assertEqual(self.steps.ranks(2), self.steps.ranks(1))
        self.end()


class MastersNode(Partition):
    def test_the_masters_node_is_cut_off_and_a_job_of_3_nodes_goes_on_when_it_is_back(self):
        self.begin("a", "b", "m")
        position = self.jobs["m"].position()
        self.cut_off("m")
        self.jobs["m"].wait_line("waiting for nodes: 1 of 3 are here", start=position)
        healed = time.monotonic()
        self.net.heal()
        self.tell_recovery(healed, 2)
        self.assertEqual(self.steps.ranks(2), self.steps.ranks(1))
        self.end()

    def test_the_masters_node_is_cut_off_and_goes_on_alone_until_the_others_are_back(self):
        self.begin("a", "b", "m", nnodes="1:3")
        fault = self.cut_off("m")
        self.tell_recovery(fault, self.first + 1)
        self.assertEqual(self.steps.ranks(self.first + 1), {"m": 0})
        self.net.heal()
        self.steps.wait("steps of all three", lambda r: r.event == "step" and r.generation > self.first + 1 and r.rank == 2)
        self.end()


class Loss(Partition):
    """TCP sends a packet that is lost again and again; the lease leaves it the time."""

    def under_loss(self, percent, lease, steps):
        self.begin("a", "b", "m", conf=f"keep_alive_interval=1,keep_alive_max_attempt={lease}")
        fault = time.monotonic()
        for name in self.net.names:
            self.net.drop(self.net.others(name), [name], when=f"numgen random mod 100 < {percent}")
        self.assertEqual(self.steps.more_steps(steps), 1)
        self.net.heal()
        self.tell_gap(fault)
        self.assertEqual(self.steps.more_steps(10), 1)
        self.assertNotIn("is lost", self.jobs["m"].text())
        self.end()

    def test_one_packet_in_ten_is_lost(self):
        self.under_loss(percent=10, lease=15, steps=50)

    def test_one_packet_in_five_is_lost(self):
        self.under_loss(percent=20, lease=15, steps=30)

    def test_three_packets_in_ten_are_lost(self):
        self.under_loss(percent=30, lease=60, steps=10)


class Workers(Partition):
    def cut_apart(self):
        """Two workers cannot reach each other; both reach the master."""
        self.net.part(["a"], ["b"])
        return time.monotonic()

    def test_workers_that_cannot_reach_each_other_for_a_while_go_on_in_their_generation(self):
        self.begin("a", "b", "m")
        fault = self.cut_apart()
        # Longer than a lease: the master hears all of them.
        self.steps.hold(2.5)
        self.net.heal()
        self.assertEqual(self.steps.more_steps(20), 1)
        self.tell_gap(fault)
        self.end()

    def test_workers_that_give_up_on_each_other_cost_one_restart(self):
        self.begin("a", "b", "m", limit=1, options=["--max-restarts", 1])
        self.cut_apart()
        self.steps.wait("a worker gives up", lambda r: r.event == "fail")
        healed = time.monotonic()
        self.net.heal()
        self.tell_recovery(healed, 2)
        self.assertEqual(self.steps.ranks(2), self.steps.ranks(1))
        self.assertEqual(self.steps.more_steps(20), 2)
        self.end()


if __name__ == "__main__":
    unittest.main()
