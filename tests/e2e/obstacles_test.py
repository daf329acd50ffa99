"""What stands in the way of a job at its start: ports that others have, and nodes that do not fit together."""

import os
import signal
import socket
import subprocess
import threading
import unittest
from pathlib import Path

import harness
from harness import HELLO, SLEEPER, Case

# A worker that listens on the port which the job was given and cannot be asked to end.
LISTENER = ["--no-python", "python3", "-c",
            "import os, signal, socket; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "server = socket.create_server(('127.0.0.1', int(os.environ['MASTER_PORT']))); print('up', flush=True); signal.pause()"]


class WebServer:
    """Answers everything as a web server does that is not understood."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


class Ports(Case):
    def test_another_program_at_the_endpoint_is_named_long_before_the_time_to_join_is_over(self):
        server = WebServer()
        self.addCleanup(server.listener.close)
        job = self.start("run", "--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{server.port}", "--rdzv-id", "j", HELLO)
        self.assertEqual(job.wait(), 78, job.text())
        last = job.text("err").splitlines()[-1]
        self.assertRegex(last, rf"^muster: no master: 127\.0\.0\.1:{server.port}: what listens there is no master: it says "
                               rf"'HTTP/1.1 400 Bad Request' \(pid {os.getpid()}, .*\): choose another port \(--rdzv-endpoint\)$")
        self.assert_nothing_left(job)

    def test_a_port_that_only_root_may_use_is_refused_at_once(self):
        first = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
        powerless = ["unshare", "--user"]
        if first < 2 or subprocess.run([*powerless, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("every port may be used, or no user namespace can be made")
        job = self.start("run", "--nnodes", 2, "--rdzv-endpoint", "127.0.0.1:1", "--rdzv-id", "j", "--node-id", "a",
                         HELLO, prefix=powerless)
        self.assertEqual(job.wait(), 78, job.text())
        self.assert_one_line(job, r"no master: 127\.0\.0\.1:1: cannot listen on .*: a port below 1024 needs privileges: choose a "
                                  r"port above 1023 \(--rdzv-endpoint\)")

    def test_the_port_of_rank_0_is_tried_by_the_node_that_will_need_it(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            options = ["--nnodes", 2, "--master-addr", "127.0.0.1", "--master-port", port, "--rdzv-id", "j"]
            job = self.start("run", *options, "--node-rank", 0, *SLEEPER)
            self.assertEqual(job.wait(), 78, job.text())
            self.assert_one_line(job, rf"port {port} on 127.0.0.1 is in use by pid {os.getpid()}, .*: choose another --master-port")

    def test_a_port_that_a_killed_launchers_worker_still_holds_is_waited_for(self):
        port = harness.free_port()
        first = self.start("run", "--master-port", port, *LISTENER)
        first.wait_line("^up$")
        first.signal(signal.SIGKILL)
        first.process.wait(harness.PATIENCE)
        second = self.start("run", "--master-port", port, *LISTENER)
        second.wait_line("^up$")
        second.signal(signal.SIGKILL)
        second.process.wait(harness.PATIENCE)
        self.assert_nothing_left(first, second)


class Settings(Case):
    def node(self, name, endpoint, *options):
        return self.start("run", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "j", "--node-id", name, *options)

    def test_times_that_a_node_keeps_for_itself_may_differ(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        jobs = [self.node("a", endpoint, "--nnodes", 2, "--rdzv-conf", "join_timeout=60,last_call_timeout=9", HELLO),
                self.node("b", endpoint, "--nnodes", 2, "--stall-timeout", 5, "--exit-barrier-timeout", 60, HELLO)]
        self.assertEqual([job.wait() for job in jobs], [0, 0], "\n".join(job.text() for job in jobs))

    def test_a_difference_is_told_by_the_names_of_the_options_also_to_a_node_too_many(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        members = [self.node(name, endpoint, "--nnodes", 2, "--no-python", "bash", "-c", "echo up; exec sleep 1000")
                   for name in "ab"]
        for member in members:
            member.wait_line("^up$")
        third = self.node("c", endpoint, "--nnodes", 3, "--max-restarts", 3, HELLO)
        self.assertEqual(third.wait(), 78, third.text())
        self.assert_one_line(third, r"^muster: node c is refused: --nnodes is 2 in the job and 3 on this node; --max-restarts is 0 in "
                                    r"the job and 3 on this node: give all nodes the same$")
        for member in members:
            member.signal(signal.SIGTERM)
        self.assertEqual([member.wait() for member in members], [143, 143])
        self.assert_nothing_left(*members)


if __name__ == "__main__":
    unittest.main()
