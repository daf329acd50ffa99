"""muster check: what it finds between two hosts, and on one."""

import json
import socket
import tempfile
import unittest
from pathlib import Path

import harness
import network
from harness import Case

NO_NETWORK = network.missing()
TIMEOUT = 12  # seconds, where it has to pass for something to be found


class OneHost(Case):
    def check(self, *args, **kwargs):
        return self.start("check", *args, **kwargs)

    def test_all_is_well_on_one_node(self):
        job = self.check("--nproc-per-node", 3)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("out"), r"(?m)^RANK +NODE +HOST +ADDRESS +INTERFACE")
        self.assertRegex(job.text("out"), r"(?m)^2 +0 ")
        self.assertRegex(job.text("out"), r"(?m)^TCP +3 +[0-9.]+ [um]s +[0-9.]+ GB/s$")
        self.assertRegex(job.text("out"), r"(?m)^nothing found$")
        self.assertEqual(job.text("err"), "")
        self.assert_nothing_left(job)

    def test_json_tells_the_same(self):
        job = self.check("--nproc-per-node", 2, "-o", "json", "--backend", "nccl", env={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(job.wait(), 1, job.text())
        found = json.loads(job.text("out"))
        self.assertEqual([rank["rank"] for rank in found["ranks"]], [0, 1])
        self.assertEqual(found["all_reduces"][0]["transport"], "TCP")
        self.assertRegex(found["findings"][0]["what"], "the backend is nccl, and rank . sees no GPU")
        self.assertEqual(job.text("err"), "")

    def test_it_runs_beside_a_job_of_the_same_name(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        options = ["--nnodes", 1, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "digits"]
        job = self.start("run", *options, *harness.bash("echo up; exec sleep 1000"))
        job.wait_line("^up$")
        check = self.check(*options)
        self.assertEqual(check.wait(), 0, check.text())
        self.terminate(job)

    def test_a_local_addr_that_this_host_does_not_have(self):
        for address, pattern in (("192.0.2.7", "--local-addr 192.0.2.7 is no address of this host\n +-> give one of its own, "),
                                 ("nowhere.invalid", "--local-addr nowhere.invalid is not known here\n +-> correct the name")):
            job = self.check("--local-addr", address)
            self.assertEqual(job.wait(), 1, job.text())
            self.assertRegex(job.text("out"), rf"\n1 problem\nproblem  node 0 \(.*\): {pattern}")
        job = self.check("--local-addr", "localhost")
        self.assertEqual(job.wait(), 0, job.text())

    def test_an_interface_for_gloo_that_does_not_exist_is_a_remark(self):
        job = self.check(env={"GLOO_SOCKET_IFNAME": "nope"})
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("out"), r"\n1 remark\nremark   node 0 \(.*\): GLOO_SOCKET_IFNAME=nope names no interface ")

    def test_wrong_input_is_one_line(self):
        for args, pattern in ((("./trainer",), "unexpected './trainer': muster check runs a program of its own"),
                              (("--backend", "mpi"), "--backend: 'mpi' is not a choice: give auto, gloo or nccl"),
                              (("--max-restarts", 1), "unknown option '--max-restarts'")):
            job = self.check(*args)
            self.assertEqual(job.wait(), 2)
            self.assert_one_line(job, pattern)

    def test_a_node_that_stays_alone_says_so(self):
        port = harness.free_port()
        job = self.check("--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{port}", "--timeout", "1s")
        self.assertEqual(job.wait(), 1, job.text())
        self.assertIn(f"problem  {socket.gethostname()}: too few nodes have come to the master at --rdzv-endpoint 127.0.0.1, "
                      f"port {port}\n", job.text("out"))
        self.assert_one_line(job, r"the rendezvous timed out: 1 of 2 nodes had come after 1s: start the others, or allow more time \(--timeout\)$")
        self.assert_nothing_left(job)

    def test_a_time_from_rdzv_conf_is_named_as_such(self):
        job = self.check("--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{harness.free_port()}", "--rdzv-conf", "join_timeout=1s")
        self.assertEqual(job.wait(), 1, job.text())
        self.assert_one_line(job, r"allow more time \(--rdzv-conf join_timeout\)$")

    def test_what_listens_at_the_endpoint_and_says_nothing_is_no_master(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            job = self.check("--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{port}", "--timeout", "1s")
            self.assertEqual(job.wait(), 1, job.text())
        self.assertIn(f": what listens at --rdzv-endpoint 127.0.0.1, port {port} (127.0.0.1), takes connections and does not answer "
                      "as a muster master\n         -> correct --rdzv-endpoint, or end what listens there; ", job.text("out"))


# Gives a command a host name and a file of hosts of its own.
AS_HOST = ["unshare", "--uts", "--mount", "sh", "-c", 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"']


@unittest.skipIf(NO_NETWORK, NO_NETWORK)
class TwoHosts(Case):
    """The hosts gpu1 and gpu2, which know each other's names."""

    def setUp(self):
        self.names = ["gpu1", "gpu2"]
        self.net = network.Network(self.names)
        self.addCleanup(self.net.close)
        self.hosts = {name: "".join(f"{self.net.address(one)} {one}\n" for one in self.names) for name in self.names}
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def prefix(self, name):
        file = Path(self.folder.name, name)
        file.write_text("127.0.0.1 localhost\n" + self.hosts[name], encoding="utf-8")
        return [*self.net.prefix_of(name), *AS_HOST, name, file]

    def check(self, *options, env=(), each=lambda rank: [], timeout=None):
        """A check on both nodes: the exit codes, what each prints, and what the second says on stderr."""
        limit = ["--timeout", timeout] if timeout else []
        jobs = [self.start("check", "--nnodes", 2, "--node-id", name, *options, *each(rank), *limit,
                           env=dict(env).get(name), prefix=self.prefix(name)) for rank, name in enumerate(self.names)]
        codes = [job.wait() for job in jobs]
        self.assert_nothing_left(*jobs)
        for job in jobs:
            self.assertNotIn("Root cause", job.text())
        return codes, *(job.text("out") for job in jobs), jobs[1].text("err")

    def with_ranks(self, *options):
        """The same in static mode; what is wrong shows when the time is over."""
        return self.check(*options, each=lambda rank: ["--node-rank", rank], timeout=TIMEOUT)

    def dynamic(self):
        return ["--rdzv-endpoint", "gpu1", "--rdzv-id", "digits"]

    def test_all_is_well(self):
        codes, first, second, said = self.check(*self.dynamic(), "--nproc-per-node", 2)
        self.assertEqual(codes, [0, 0], first)
        for rank in range(4):
            name = self.names[rank // 2]
            self.assertRegex(first, rf"(?m)^{rank} +{rank // 2} +{name} +{self.net.address(name)} +eth0 +1500 +gloo ")
        self.assertRegex(first, r"(?m)^TCP +4 +[0-9.]+ [um]s +[0-9.]+ GB/s$")
        self.assertRegex(first, "(?m)^nothing found$")
        self.assertEqual((second, said), ("", ""))

    def test_a_master_addr_that_nobody_has(self):
        codes, first, second, _ = self.with_ranks("--master-addr", "10.77.0.99")
        self.assertEqual(codes, [1, 1])
        self.assertIn("problem  gpu1: --master-addr 10.77.0.99 is no address of this host, where it should be\n"
                      "         -> give the address by which the others reach it; it has 10.77.0.1", first)
        self.assertIn("problem  gpu2: cannot reach the master at --master-addr 10.77.0.99, port 29400 (10.77.0.99): "
                      "No route to host\n         -> no host answers at that address: correct --master-addr", second)

    def test_a_master_addr_that_only_the_workers_are_told(self):
        codes, first, second, _ = self.with_ranks("--rdzv-endpoint", "gpu1", "--master-addr", "gpu2")
        self.assertEqual(codes, [1, 1])
        self.assertIn("problem  rank 1: has not reached rank 0 at MASTER_ADDR gpu2, port 29500", first)
        self.assertIn("problem  node 1 (gpu2): cannot reach rank 0 at MASTER_ADDR gpu2, port 29500 (10.77.0.2): Connection refused\n"
                      "         -> that address is this host's own, and nobody listens there: correct MASTER_ADDR", second)

    def test_a_name_on_the_loopback_line(self):
        self.hosts["gpu2"] = f"127.0.1.1 gpu1\n{self.net.address('gpu2')} gpu2\n"
        codes, first, second, _ = self.check(*self.dynamic(), timeout=TIMEOUT)
        self.assertEqual(codes, [1, 1])
        self.assertIn("problem  gpu1: too few nodes have come to the master at --rdzv-endpoint gpu1, port 29400\n", first)
        self.assertIn("problem  gpu2: --rdzv-endpoint gpu1 is this host itself here (127.0.1.1): it has hosted a master that no "
                      "other host reaches\n         -> take the name off the loopback line of /etc/hosts", second)

    def test_the_own_name_on_the_loopback_line_is_a_remark(self):
        self.hosts["gpu2"] = f"127.0.1.1 gpu2\n{self.net.address('gpu1')} gpu1\n"
        codes, first, _, _ = self.check(*self.dynamic())
        self.assertEqual(codes, [0, 0])
        self.assertIn("\n1 remark\nremark   node 1 (gpu2): its own name resolves to 127.0.1.1, which no other host reaches", first)

    def test_a_firewall_before_the_workers_ports(self):
        self.net.drop(["gpu1"], ["gpu2"], when="tcp dport 32768-60999 tcp flags & (syn|ack) == syn")
        codes, first, second, said = self.check(*self.dynamic())
        self.assertEqual(codes, [1, 1])
        self.assertRegex(first, r"\n1 problem\nproblem  node 0 \(gpu1\): cannot reach node 1 \(gpu2\) at 10.77.0.2, worker port \d+: "
                                "Connection timed out\n +-> nothing comes back: let TCP through between these hosts")
        self.assertIn("No all-reduce is measured", first)
        self.assertEqual(second, "")
        # The launcher may say that it stops what has just ended.
        self.assertEqual(said.splitlines()[0], "muster: check: 1 problem, printed by rank 0 on gpu1")

    def test_a_firewall_before_master_port(self):
        self.net.drop(["gpu2"], ["gpu1"], when="tcp dport 32768-60999 tcp flags & (syn|ack) == syn")
        codes, first, second, _ = self.check(*self.dynamic(), timeout=TIMEOUT)
        self.assertEqual(codes, [1, 1])
        self.assertIn("problem  rank 1: has not reached rank 0 at MASTER_ADDR 10.77.0.1, port ", first)
        self.assertRegex(second, r"problem  node 1 \(gpu2\): cannot reach rank 0 at MASTER_ADDR 10.77.0.1, port (\d+) \(10.77.0.1\): "
                                 r"Connection timed out\n +-> nothing comes back: correct MASTER_ADDR, or let TCP port \1 in on ")

    def test_an_interface_that_does_not_exist(self):
        codes, first, _, _ = self.check(*self.dynamic(), env={"gpu2": {"GLOO_SOCKET_IFNAME": "eth9"}})
        self.assertEqual(codes, [1, 1])
        self.assertRegex(first, r"problem  node 1 \(gpu2\): GLOO_SOCKET_IFNAME=eth9 names no interface that is up on this host: "
                                "Gloo in Python fails on it, muster's SDK does not look\n +-> there are lo, eth0: name one of them")


if __name__ == "__main__":
    unittest.main()
