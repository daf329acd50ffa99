"""Jobs of several nodes on the loopback address: one agent a node, told apart by --node-id."""

import re
import signal

import harness
from harness import HELLO, Case

# Says where it is and then works for ever.
WORKER = ["--no-python", "bash", "-c",
          "echo up $GROUP_RANK $RANK $WORLD_SIZE $TORCHELASTIC_RESTART_COUNT $MUSTER_GENERATION $$; exec sleep 1000"]


class Nodes(Case):
    def setUp(self):
        self.endpoint = f"127.0.0.1:{harness.free_port()}"

    def node(self, name, *args, nnodes=2, nproc=1, worker=WORKER, options=()):
        return self.start("run", "--nnodes", nnodes, "--nproc-per-node", nproc, "--rdzv-backend", "c10d",
                          "--rdzv-endpoint", self.endpoint, "--rdzv-id", "job", "--node-id", name, *options, *worker, *args)

    def up(self, job, group_rank=r"\d+", world=r"\d+", restarts=r"\d+", start=0, count=1):
        """Waits for a worker of that description and returns (group rank, rank, generation, pid)."""
        match = job.wait_line(rf"^up ({group_rank}) (\d+) {world} {restarts} (\d+) (\d+)$", start=start, count=count)
        return tuple(int(group) for group in match.groups())


class TwoNodes(Nodes):
    def test_ranks_follow_node_names_in_natural_order_whoever_comes_first(self):
        jobs = [self.node(name, nnodes=3) for name in ("node10", "node2", "node1")]
        self.assertEqual([self.up(job, world=3)[0] for job in jobs], [2, 1, 0])
        self.terminate(*jobs)

    def test_different_numbers_of_workers_get_ranks_without_gaps(self):
        jobs = [self.node("a", nproc=1, worker=[HELLO]), self.node("b", nproc=3, worker=[HELLO])]
        self.assertEqual([job.wait() for job in jobs], [0, 0])
        ranks = re.findall(r"rank (\d) of 4", jobs[0].text("out") + jobs[1].text("out"))
        self.assertEqual(sorted(ranks), ["0", "1", "2", "3"])

    def test_a_failure_on_one_node_restarts_all_nodes_once(self):
        worker = ["--no-python", "bash", "-c", WORKER[-1].replace(
            "exec sleep", "[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 9; exec sleep")]
        jobs = [self.node(name, worker=worker, options=["--max-restarts", 1]) for name in "ab"]
        for job in jobs:
            self.up(job, restarts=1)
        self.terminate(*jobs)

    def test_a_spent_budget_ends_all_nodes_with_the_same_code_and_cause(self):
        worker = ["--no-python", "bash", "-c", "[ $RANK = 1 ] && exit 9; exec sleep 1000"]
        jobs = [self.node(name, worker=worker) for name in "ab"]
        self.assertEqual([job.wait() for job in jobs], [9, 9])
        for job in jobs:
            self.assertRegex(job.text("err"), r"(?s)rank 1.*exit code 9")
        self.assert_nothing_left(*jobs)

    def kill_and_return(self, killed, other):
        """The killed agent comes back under its name: same ranks, no restart charged."""
        jobs = {name: self.node(name) for name in "ab"}
        before = {name: self.up(job)[:2] for name, job in jobs.items()}
        position = jobs[other].position()
        old = jobs[killed]
        old.signal(signal.SIGKILL)
        old.process.wait(harness.PATIENCE)
        jobs[killed] = self.node(killed)
        after = {killed: self.up(jobs[killed], world=2, restarts=0)[:2],
                 other: self.up(jobs[other], world=2, restarts=0, start=position)[:2]}
        self.assertEqual(after, before)
        self.assert_nothing_left(old)
        self.terminate(*jobs.values())

    def test_an_agent_that_is_killed_and_started_again_gets_its_ranks_back(self):
        self.kill_and_return("b", "a")

    def test_the_agent_that_hosts_the_master_is_killed_and_started_again(self):
        self.kill_and_return("a", "b")

    def test_a_newcomer_below_max_is_taken_in_and_a_leaver_is_let_go(self):
        options = ["--rdzv-conf", "last_call_timeout=1"]
        a = self.node("a", nnodes="1:2", options=options)
        self.up(a, world=1)
        position = a.position()
        b = self.node("b", nnodes="1:2", options=options)
        self.up(b, world=2)
        self.assertEqual(self.up(a, world=2, start=position)[0], 0)
        position = a.position()
        b.signal(signal.SIGTERM)
        self.assertEqual(b.wait(), 143)
        self.up(a, world=1, restarts=0, start=position)
        self.terminate(a)

    def test_other_settings_are_refused_with_the_difference(self):
        a = self.node("a", options=["--log-level", "info"])
        a.wait_line(r"1 of 2")
        b = self.node("b", options=["--max-restarts", 3])
        self.assertEqual(b.wait(), 78)
        self.assertRegex(b.text("err"), r"--max-restarts is 0 .* and 3 ")
        a.signal(signal.SIGTERM)
        self.assertEqual(a.wait(), 143)

    def test_a_signal_while_waiting_for_nodes_ends_at_once(self):
        a = self.node("a", options=["--log-level", "info"])
        a.wait_line(r"1 of 2")
        a.signal(signal.SIGTERM)
        self.assertEqual(a.wait(), 143)

    def test_too_few_nodes_end_in_a_rendezvous_time_out(self):
        a = self.node("a", options=["--rdzv-conf", "join_timeout=1"])
        self.assertEqual(a.wait(), 75)
        self.assert_one_line(a, r"^muster: the rendezvous timed out: 1 of 2 nodes had come after 1s: start the others, or ")

    def test_an_unreachable_master_is_named(self):
        a = self.node("a", options=["--rdzv-conf", "join_timeout=1,is_host=0"])
        self.assertEqual(a.wait(), 69)
        self.assertIn(self.endpoint, a.text("err"))

    def test_static_nodes_get_the_given_master(self):
        port = harness.free_port()
        jobs = [self.start("run", "--nnodes", 2, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port,
                           "--rdzv-id", "s", HELLO) for rank in (1, 0)]
        self.assertEqual([job.wait() for job in jobs], [0, 0])
        self.assertIn(f"rank 1 of 2, local rank 0 of 1, master 127.0.0.1:{port}", jobs[0].text("out"))
