"""Several musterd of which one leads: a trainer does not notice when that one is killed."""

import os
import shutil
import signal
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import etcd
import harness
from certificates import Authority
from etcd import await_steps, report_gaps, steps
from harness import MUSTERD, Case


class SeveralMusterd(Case):
    def setUp(self):
        self.etcd = etcd.Etcd(self)

    def musterd(self, *options):
        daemon = self.start("--listen", f"127.0.0.1:{etcd.reserved_port(self)}", "--etcd-endpoints", self.etcd.endpoints,
                            "--etcd-lease", 2, *options, program=MUSTERD)
        daemon.endpoint = daemon.wait_line(r"listens on (127\.0\.0\.1:\d+)")[1]
        return daemon

    def node(self, name, masters):
        return self.start("run", "--nnodes", 2, "--max-restarts", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint",
                          ",".join(master.endpoint for master in masters), "--rdzv-id", "job", "--node-id", name,
                          "--log-level", "info", *etcd.WORKER)

    def test_the_leader_is_killed_and_a_standby_takes_over(self):
        leader = self.musterd()
        leader.wait_line("leads and serves at")
        standby = self.musterd()
        standby.wait_line(f"the master is at {leader.endpoint}")
        jobs = {name: self.node(name, [standby, leader]) for name in "ab"}
        workers = await_steps(*jobs.values(), generation=1)
        leader.signal(signal.SIGKILL)
        standby.wait_line("leads and serves at")
        for job in jobs.values():
            job.wait_line("the master is back")
        self.assertEqual(await_steps(*jobs.values(), generation=1), workers)
        self.assertEqual({step[2] for job in jobs.values() for step in steps(job)}, {1})
        report_gaps("the leading musterd killed", **jobs)
        # The next failure is the new leader's to handle.
        os.kill(workers[1][1], signal.SIGKILL)
        self.assertEqual([rank for rank, _ in await_steps(*jobs.values(), generation=2)], [0, 1])
        for job in jobs.values():
            job.signal(signal.SIGTERM)
        self.assertEqual([job.wait() for job in jobs.values()], [143, 143])
        self.assert_nothing_left(*jobs.values())

    def http(self, daemon, path):
        """Status and text of a page of its HTTP endpoint."""
        endpoint = daemon.wait_line(r"HTTP on (127\.0\.0\.1:\d+)")[1]
        try:
            with urllib.request.urlopen(f"http://{endpoint}{path}", timeout=harness.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def test_a_standby_shows_that_it_lives_and_where_the_leader_is(self):
        leader = self.musterd("--http-endpoint", "127.0.0.1:0")
        leader.wait_line("leads and serves at")
        standby = self.musterd("--http-endpoint", "127.0.0.1:0")
        standby.wait_line(f"the master is at {leader.endpoint}")
        self.assertEqual(self.http(leader, "/readyz"), (200, "ok\n"))
        self.assertIn("\nmuster_serving 1\n", self.http(leader, "/metrics")[1])
        self.assertEqual(self.http(standby, "/healthz"), (200, "ok\n"))
        self.assertIn("\nmuster_serving 0\n", self.http(standby, "/metrics")[1])
        stands_by = (503, f"this master stands by: the master is at {leader.endpoint}\n")
        self.assertEqual([self.http(standby, path) for path in ("/readyz", "/api/v1/status")], [stands_by] * 2)
        leader.signal(signal.SIGTERM)
        standby.wait_line("leads and serves at")
        self.assertEqual(self.http(standby, "/readyz"), (200, "ok\n"))

    def test_a_leader_that_is_told_to_stop_hands_over_at_once(self):
        leader = self.musterd()
        leader.wait_line("leads and serves at")
        standby = self.musterd()
        standby.wait_line(f"the master is at {leader.endpoint}")
        leader.signal(signal.SIGTERM)
        self.assertEqual(leader.wait(), 0)
        standby.wait_line("leads and serves at")
        standby.signal(signal.SIGTERM)
        self.assertEqual(standby.wait(), 0)

    def test_each_asks_who_connects_and_proves_who_it_is(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        authority = Authority(folder / "authority")
        cert, key = authority.issue("master", "IP:127.0.0.1")
        token = folder / "token"
        token.write_text("0123456789abcdef-token")
        token.chmod(0o600)
        secured = ["--tls-cert", cert, "--tls-key", key, "--token-file", token]
        leader = self.musterd(*secured)
        leader.wait_line("leads and serves at")
        standby = self.musterd(*secured)
        standby.wait_line(f"the master is at {leader.endpoint}")
        run = ["run", "--nnodes", 1, "--rdzv-endpoint", f"{standby.endpoint},{leader.endpoint}", "--rdzv-id", "job"]
        for code, words in ((0, ["--token-file", token]), (77, [])):
            node = self.start(*run, "--tls-ca", authority.ca, *words, "/bin/true")
            self.assertEqual(node.wait(), code, node.text())
        leader.signal(signal.SIGTERM)
        standby.wait_line("leads and serves at")
        node = self.start(*run, "--tls-ca", authority.ca, "--token-file", token, "/bin/true")
        self.assertEqual(node.wait(), 0, node.text())


if __name__ == "__main__":
    unittest.main()
