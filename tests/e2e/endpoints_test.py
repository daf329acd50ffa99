"""Where nodes meet: the ways in which users and schedulers write an endpoint."""

import os
import re
import socket
import unittest

import harness
from harness import HELLO, Case


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


class Endpoints(Case):
    def node(self, *options, worker=(HELLO,), env=None):
        return self.start("run", *options, *worker, env=env)

    def assert_all_ran(self, jobs, world):
        """Every job ends well; together the workers have all ranks, and one master."""
        self.assertEqual([job.wait() for job in jobs], [0] * len(jobs), "\n".join(job.text() for job in jobs))
        output = "\n".join(job.text("out") for job in jobs)
        ranks = sorted(int(rank) for rank in re.findall(rf"rank (\d+) of {world}\b", output))
        self.assertEqual(ranks, list(range(world)), output)
        masters = set(re.findall(r"master (\S+)", output))
        self.assertEqual(len(masters), 1, output)
        self.assert_nothing_left(*jobs)
        return masters.pop()

    def test_two_jobs_with_different_ids_share_an_endpoint(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        # Nobody's workers end before both jobs run: each waits for a word on its standard input.
        worker = ["--no-python", "bash", "-c", f'echo up; read; exec {HELLO}']
        jobs = {(name, node): self.start("run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint,
                                         "--rdzv-id", name, "--node-id", node, *worker, stdin=-1)
                for name in ("one", "two") for node in "ab"}
        for job in jobs.values():
            job.wait_line(r"^up$")
        for job in jobs.values():
            job.process.stdin.close()
        masters = {self.assert_all_ran([jobs[name, node] for node in "ab"], 2) for name in ("one", "two")}
        self.assertEqual(len(masters), 2)

    @unittest.skipUnless(has_ipv6(), "this machine has no IPv6 loopback address")
    def test_an_ipv6_endpoint(self):
        endpoint = f"[::1]:{harness.free_port()}"
        jobs = [self.node("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "six",
                          "--node-id", name) for name in "ab"]
        self.assertRegex(self.assert_all_ran(jobs, 2), r"^(\[?::1\]?|127\.0\.0\.1):\d+$")

    def test_the_local_address_is_what_the_other_nodes_get(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        jobs = [self.node("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "addr",
                          "--node-id", name, "--local-addr", address)
                for name, address in (("a", "127.0.0.2"), ("b", "127.0.0.3"))]
        self.assertRegex(self.assert_all_ran(jobs, 2), r"^127\.0\.0\.2:\d+$")

    def test_a_host_name_that_resolves_to_loopback(self):
        endpoint = f"localhost:{harness.free_port()}"
        jobs = [self.node("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "name",
                          "--node-id", name) for name in "ab"]
        self.assert_all_ran(jobs, 2)

    def test_a_forgotten_id_is_warned_of_and_works(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        jobs = [self.node("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--node-id", name)
                for name in "ab"]
        self.assert_all_ran(jobs, 2)
        for job in jobs:
            self.assertIn("no --rdzv-id", job.text("err"))


class Schedulers(Endpoints):
    def test_kubeflows_five_variables(self):
        port = harness.free_port()
        jobs = [self.node(env={"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": str(rank),
                               "PET_MASTER_ADDR": "localhost", "PET_MASTER_PORT": str(port)}) for rank in (1, 0)]
        self.assertEqual(self.assert_all_ran(jobs, 4), f"localhost:{port}")

    def test_a_step_of_slurm(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        jobs = [self.node("--rdzv-endpoint", endpoint,
                          env={"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "4711", "SLURM_NNODES": "2",
                               "SLURM_NODEID": str(rank), "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}) for rank in (1, 0)]
        self.assert_all_ran(jobs, 2)
        self.assertIn("rank 1 of 2", jobs[0].text("out"))

    def test_an_indexed_job_of_kubernetes(self):
        port = harness.free_port()
        jobs = [self.node("--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", port, "--rdzv-id", "k8s",
                          env={"JOB_COMPLETION_INDEX": str(index)}) for index in (1, 0)]
        self.assertEqual(self.assert_all_ran(jobs, 2), f"127.0.0.1:{port}")
        self.assertIn("rank 1 of 2", jobs[0].text("out"))


class Binding(Case):
    SHOW = ["--no-python", "bash", "-c", "echo $LOCAL_RANK $(grep Cpus_allowed_list: /proc/self/status)"]

    def cpus(self, *options):
        """The CPUs that each worker may use, in the order of the local ranks."""
        job = self.start("run", *options, *self.SHOW)
        self.assertEqual(job.wait(), 0, job.text())
        return [line.split()[-1] for line in sorted(job.text("out").splitlines())]

    def test_without_a_binding_workers_run_where_the_launcher_may(self):
        allowed = re.search(r"Cpus_allowed_list:\s+(\S+)", open("/proc/self/status").read())[1]
        self.assertEqual(self.cpus("--nproc-per-node", 2), [allowed] * 2)

    @unittest.skipUnless(len(os.sched_getaffinity(0)) >= 2, "one CPU")
    def test_exclusive_workers_share_no_cpu(self):
        try:
            first, second = self.cpus("--nproc-per-node", 2, "--numa-binding", "exclusive")
        except AssertionError as error:
            if "1 cores for 2 workers" in str(error):
                self.skipTest("one core")
            raise
        self.assertNotEqual(first, second)

    def test_every_mode_starts(self):
        for mode in ("node", "socket", "core-complex"):
            self.assertEqual(len(self.cpus("--nproc-per-node", 2, "--numa-binding", mode)), 2)


class Programs(Case):
    def test_run_path_runs_any_file_under_python(self):
        job = self.start("run", "--run-path", "--no-python", "/dev/stdin", stdin=-1)
        job.process.stdin.write("import sys; print('python', sys.version_info[0])\n")
        job.process.stdin.close()
        self.assertEqual(job.wait(), 0, job.text())
        self.assertEqual(job.text("out"), "python 3")


if __name__ == "__main__":
    unittest.main()
