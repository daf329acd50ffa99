"""--rdzv-backend etcd: the agents elect the master among themselves, and what happens to it is no concern of the workers."""

import os
import re
import shutil
import signal
import tempfile
import unittest
from pathlib import Path

import etcd
from certificates import Authority
from etcd import await_steps, report_gaps, steps
from harness import HELLO, Case

NODES = "abc"


class EtcdBackend(Case):
    def setUp(self):
        self.etcd = etcd.Etcd(self)

    def node(self, name, *options, nnodes=3, worker=etcd.WORKER, backend="etcd"):
        return self.start("run", "--nnodes", nnodes, "--rdzv-backend", backend, "--rdzv-endpoint", self.etcd.endpoints,
                          "--rdzv-id", "job", "--node-id", name, "--log-level", "info", *options, *worker)

    def nodes(self, *options, **kwargs):
        return {name: self.node(name, *options, **kwargs) for name in NODES}

    def host_of_master(self, jobs):
        """The name of the node whose agent is the master."""
        address = self.etcd.value("/muster/jobs/job/leader")
        return next(name for name, job in jobs.items() if f"the master listens on {address}" in job.text("err"))

    def assert_undisturbed(self, jobs, workers):
        """The same processes with the same ranks make steps, in the generation of the beginning."""
        self.assertEqual(await_steps(*jobs.values(), generation=1), workers)
        for job in jobs.values():
            self.assertEqual({step[2] for step in steps(job)}, {1})

    def test_a_job_runs_to_its_end_and_both_names_of_the_backend_mean_it(self):
        jobs = [self.node(name, nnodes=2, worker=[HELLO], backend=backend)
                for name, backend in (("a", "etcd"), ("b", "etcd-v2"))]
        self.assertEqual([job.wait() for job in jobs], [0, 0], "\n".join(job.text() for job in jobs))
        self.assertEqual(sorted(re.findall(r"rank (\d) of 2", "".join(job.text("out") for job in jobs))), ["0", "1"])
        self.assertEqual(self.etcd.value("/muster/jobs/job/leader"), "")
        self.assert_nothing_left(*jobs)

    def test_the_elected_agent_asks_who_connects_and_proves_who_it_is(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        authority = Authority(folder / "authority")
        cert, key = authority.issue("node", "IP:127.0.0.1")
        secured = ["--tls-ca", authority.ca, "--tls-cert", cert, "--tls-key", key, "--require-auth"]
        jobs = [self.node(name, *secured, nnodes=2, worker=[HELLO]) for name in "ab"]
        self.assertEqual([job.wait() for job in jobs], [0, 0], "\n".join(job.text() for job in jobs))
        without = self.node("c", "--tls-ca", authority.ca, nnodes=2, worker=[HELLO])
        self.assertEqual(without.wait(), 2)
        self.assert_one_line(without, "any node can be elected: one that hosts the master over TLS needs --tls-cert and --tls-key")

    def test_the_agent_that_is_the_master_is_killed(self):
        jobs = self.nodes("--rdzv-conf", "last_call_timeout=1,leader_lease=2", nnodes="2:3")
        await_steps(*jobs.values(), generation=1)
        host = self.host_of_master(jobs)
        jobs[host].signal(signal.SIGKILL)
        others = {name: job for name, job in jobs.items() if name != host}
        await_steps(*others.values(), generation=2)
        self.assert_nothing_left(jobs[host])
        for job in others.values():
            self.assertIn("the master is back", job.text("err"))
        report_gaps("the master's agent killed", **others)
        self.terminate(*others.values())

    def test_only_the_master_moves(self):
        jobs = self.nodes()
        workers = await_steps(*jobs.values(), generation=1)
        host = self.host_of_master(jobs)
        self.etcd.control("del", "/muster/jobs/job/leader")
        for job in jobs.values():
            job.wait_line("the master is back")
        self.assertNotEqual(self.host_of_master(jobs), host)
        self.assert_undisturbed(jobs, workers)
        report_gaps("the master moved", **jobs)
        self.terminate(*jobs.values())

    def test_the_leader_of_etcd_is_killed_and_nobody_notices(self):
        jobs = self.nodes()
        workers = await_steps(*jobs.values(), generation=1)
        self.etcd.kill_leader()
        self.assert_undisturbed(jobs, workers)
        for job in jobs.values():
            self.assertNotIn("lost the master", job.text("err"))
        report_gaps("etcd's leader killed", **jobs)
        self.terminate(*jobs.values())

    def test_without_etcd_the_workers_go_on_and_a_failure_of_that_time_is_handled_when_it_is_back(self):
        jobs = self.nodes("--max-restarts", 1, "--rdzv-conf", "leader_lease=2")
        workers = dict(zip(jobs, await_steps(*jobs.values(), generation=1)))
        self.etcd.kill_all()
        for job in jobs.values():
            job.wait_line("lost the master")
        self.assertEqual(await_steps(*jobs.values(), generation=1), list(workers.values()))
        os.kill(workers["b"][1], signal.SIGKILL)
        await_steps(jobs["a"], jobs["c"], generation=1)
        report_gaps("without etcd", a=jobs["a"], c=jobs["c"])
        self.etcd.start_all()
        after = dict(zip(jobs, await_steps(*jobs.values(), generation=2)))
        self.assertEqual({name: rank for name, (rank, _) in after.items()},
                         {name: rank for name, (rank, _) in workers.items()})
        self.terminate(*jobs.values())


if __name__ == "__main__":
    unittest.main()
