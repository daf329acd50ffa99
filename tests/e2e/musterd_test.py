"""musterd: a standing master for many jobs."""

import os
import re
import signal
import socket
import tempfile
import unittest

import harness
from harness import HELLO, MUSTERD, Case

# Says where it is and then works for ever.
WORKER = ["--no-python", "bash", "-c", "echo up $RANK $WORLD_SIZE $MUSTER_GENERATION; exec sleep 1000"]


class Musterd(Case):
    def musterd(self, *args, listen="127.0.0.1:0", **kwargs):
        """A musterd that listens, with its endpoint."""
        daemon = self.start("--listen", listen, *args, program=MUSTERD, **kwargs)
        daemon.endpoint = daemon.wait_line(r"musterd [\d.]+ listens on (\S+:\d+)")[1]
        return daemon

    def node(self, daemon, name, *worker, job="job", options=()):
        return self.start("run", "--nnodes", 2, "--rdzv-endpoint", daemon.endpoint, "--rdzv-id", job, "--node-id", name,
                          "--rdzv-conf", "is_host=0", *options, *(worker or WORKER))

    def stop(self, daemon):
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0, daemon.text())


class Jobs(Musterd):
    def test_jobs_are_kept_apart_by_their_ids(self):
        daemon = self.musterd()
        nodes = [self.node(daemon, name, HELLO, job=job) for job in ("one", "two") for name in ("a", "b")]
        self.assertEqual([node.wait() for node in nodes], [0] * 4)
        for pair in (nodes[:2], nodes[2:]):
            ranks = re.findall(r"rank (\d) of 2", "".join(node.text("out") for node in pair))
            self.assertEqual(sorted(ranks), ["0", "1"])
        self.stop(daemon)

    def test_a_stop_touches_no_worker_and_the_next_one_takes_the_job_up(self):
        daemon = self.musterd()
        nodes = [self.node(daemon, name, options=["--log-level", "info"]) for name in ("a", "b")]
        for node in nodes:
            node.wait_line(r"^up \d 2 1$")
        self.stop(daemon)
        for node in nodes:
            node.wait_line(r"lost the master .*the workers go on")
        following = self.musterd(listen=daemon.endpoint)
        following.wait_line(r"job job: ")
        # What happens now is the following one's business: one restart, in which both take part.
        position = [node.position() for node in nodes]
        nodes[1].signal(signal.SIGKILL)
        nodes[1].process.wait(harness.PATIENCE)
        back = self.node(following, "b")
        back.wait_line(r"^up \d 2 2$")
        nodes[0].wait_line(r"^up \d 2 2$", start=position[0])
        self.assertEqual(len(re.findall(r"^up ", nodes[0].text("out"), re.M)), 2)
        self.terminate(nodes[0], back)
        self.stop(following)


class Limits(Musterd):
    def refuse(self, node, code, pattern):
        self.assertEqual(node.wait(), code, node.text())
        self.assert_one_line(node, pattern)

    def test_who_is_too_many_is_told_and_the_others_go_on(self):
        daemon = self.musterd("--max-jobs", 1, "--max-nodes", 2)
        nodes = [self.node(daemon, name) for name in "ab"]
        for node in nodes:
            node.wait_line(r"^up \d 2 1$")
        self.refuse(self.node(daemon, "c", job="other"), 75,
                    r"^muster: node c is refused: this master has 1 job and takes no more \(--max-jobs\): try again later$")
        self.refuse(self.node(daemon, "c"), 75,
                    r"^muster: node c is refused: the job has 2 nodes and gets no more \(--max-nodes\): try again later$")
        self.refuse(self.node(daemon, "c", job="other", options=["--nnodes", "1:3"]), 78,
                    r"^muster: node c is refused: --nnodes asks for up to 3 nodes, and this master takes 2 in a job "
                    r"\(--max-nodes\): give fewer$")
        daemon.wait_line(r"job other: node c is refused: this master has 1 job")
        status = self.start("status", "--rdzv-endpoint", daemon.endpoint, "other")
        self.assertEqual(status.wait(), 1, status.text())
        # Workers that run are let in, whatever the next master's limits are.
        self.stop(daemon)
        following = self.musterd("--max-jobs", 1, "--max-nodes", 1, listen=daemon.endpoint)
        following.wait_line(r"job job: generation 1 started with 2 nodes")
        self.assertEqual([len(re.findall("^up ", node.text("out"), re.M)) for node in nodes], [1, 1])
        self.terminate(*nodes)
        self.stop(following)

    def test_a_node_whose_first_message_is_too_large_ends_in_one_line(self):
        daemon = self.musterd("--max-message-bytes", "1K")
        self.refuse(self.node(daemon, "n" * 255, job="j" * 255, options=["--role", "r" * 255, "--topology-key", "t" * 255]), 78,
                    r"^muster: no master: 127\.0\.0\.1:\d+: a message is larger than the other side takes \(.* vs\. 1024\)\): "
                    r"correct that, or run the same version of muster on all nodes and as their master$")
        self.stop(daemon)

    def test_a_job_whose_nodes_are_all_gone_is_given_up(self):
        daemon = self.musterd("--job-idle-timeout", "200ms")
        node = self.node(daemon, "a")
        daemon.wait_line("job job: node a joined")
        node.signal(signal.SIGKILL)
        node.process.wait(harness.PATIENCE)
        daemon.wait_line(r"job job: job given up: none of its nodes was here for 200ms \(--job-idle-timeout\)$")
        status = self.start("status", "--rdzv-endpoint", daemon.endpoint)
        self.assertEqual(status.wait(), 0, status.text())
        self.assertNotIn("job", status.text("out").split())
        self.stop(daemon)


class Service(Musterd):
    def test_the_service_manager_hears_of_readiness_life_and_stop(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"{folder}/notify")
            manager.settimeout(harness.PATIENCE)
            daemon = self.musterd(env={"NOTIFY_SOCKET": f"{folder}/notify", "WATCHDOG_USEC": "20000"})
            self.assertEqual(manager.recv(4096).decode(), f"READY=1\nSTATUS=listens on {daemon.endpoint}")
            self.assertEqual([manager.recv(4096) for _ in range(3)], [b"WATCHDOG=1"] * 3)
            daemon.signal(signal.SIGTERM)
            while (said := manager.recv(4096)) == b"WATCHDOG=1":
                pass
            self.assertEqual(said, b"STOPPING=1")
            self.assertEqual(daemon.wait(), 0)

    def test_lines_are_objects_where_json_is_asked_for(self):
        daemon = self.start("--listen=127.0.0.1:0", "--log-format=json", program=MUSTERD)
        daemon.wait_line(r'^\{"ts":"[^"]+Z","level":"info","component":"musterd","msg":"musterd [\d.]+ listens on [^"]+"\}$')
        self.stop(daemon)


class WrongInput(Musterd):
    def refuse(self, code, pattern, *args, env=None):
        daemon = self.start(*args, program=MUSTERD, env=env)
        self.assertEqual(daemon.wait(), code)
        self.assert_one_line(daemon, "^musterd: " + pattern)
        self.assertEqual(daemon.text("out"), "")

    def test_it_is_one_line_and_a_documented_code(self):
        self.refuse(2, "unknown option '--lisen': did you mean --listen", "--lisen", "x")
        self.refuse(2, "MUSTERD_LOG_LEVEL: 'loud'", env={"MUSTERD_LOG_LEVEL": "loud"})
        self.refuse(2, "MUSTERD_STATE_DIR is empty: give FOLDER, or leave it out$", env={"MUSTERD_STATE_DIR": ""})
        self.refuse(78, "anybody who reaches 0.0.0.0:29400 .* or say --insecure", "--listen", "0.0.0.0")
        self.refuse(69, "cannot listen on 192.0.2.1:1: this host does not have the address", "--insecure", "--listen",
                    "192.0.2.1:1")

    def test_a_port_in_use_is_named(self):
        daemon = self.musterd()
        self.refuse(69, f"cannot listen on {re.escape(daemon.endpoint)}: the port is in use", "--listen", daemon.endpoint)
        self.stop(daemon)

    def test_a_path_that_cannot_be_used_is_named_and_its_code_says_whether_it_was_to_be_read_or_made(self):
        etcd = ["--etcd-endpoints", "127.0.0.1:1", "--etcd-tls"]
        listen = ["--listen", "127.0.0.1:0"]
        with tempfile.TemporaryDirectory() as folder:
            none = f"{folder}/none"
            self.refuse(73, f"state folder {none}/state: cannot make it: No such file", *listen, "--state-dir", f"{none}/state")
            self.refuse(73, f"cannot write the incident log {none}/log: No such file", *listen, "--incident-log", f"{none}/log")
            self.refuse(73, f"cannot write the incident log {folder}: Is a directory", *listen, "--incident-log", folder)
            for options in (["--config"], ["--token-file"], ["--tls-key", none, "--tls-cert"],
                            ["--tls-cert", none, "--tls-key", none, "--tls-ca"], [*etcd, "--etcd-ca"],
                            [*etcd, "--etcd-key", none, "--etcd-cert"], [*etcd, "--etcd-user", "muster", "--etcd-password-file"]):
                self.refuse(78, f".*cannot read {none}: No such file or directory$", *listen, *options, none)
                if "--tls-key" not in options and "--etcd-key" not in options:
                    self.refuse(78, f".*cannot read {folder}: it is no file$", *listen, *options, folder)

    def test_check_config_starts_nothing(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("listen = 127.0.0.1:4  # here\n")
            file.flush()
            check = self.start("--check-config", "--config", file.name, program=MUSTERD)
            self.assertEqual(check.wait(), 0)
            self.assertIn(f"listen = 127.0.0.1:4  # {file.name}:1", check.text("out"))
            os.truncate(file.name, 0)
            file.seek(0)
            file.write("jobs = 4\n")
            file.flush()
            self.refuse(2, f"{re.escape(file.name)}:1: unknown entry 'jobs'", "--check-config", "--config", file.name)

    def test_a_misspelt_variable_is_warned_of_by_the_check_and_by_a_start(self):
        misspelt = {"MUSTERD_STATE_DRI": "/state"}
        warning = "MUSTERD_STATE_DRI belongs to no option and is ignored: did you mean MUSTERD_STATE_DIR\\?$"
        check = self.start("--check-config", program=MUSTERD, env=misspelt)
        self.assertEqual(check.wait(), 0)
        self.assert_one_line(check, f"^musterd: {warning}")
        daemon = self.musterd(env=misspelt)
        daemon.wait_line(f" warning musterd: {warning}")
        self.stop(daemon)

    def test_check_config_finds_files_that_cannot_be_used(self):
        etcd = ["--etcd-endpoints", "127.0.0.1:1", "--etcd-user", "muster"]
        with tempfile.TemporaryDirectory() as folder:
            for options in (["--token-file"], [*etcd, "--etcd-password-file"]):
                self.refuse(78, f"cannot read {folder}/none: No such file or directory", "--check-config", *options,
                            f"{folder}/none")

    def test_output_that_cannot_be_written_is_an_error(self):
        for option in ("--help", "--version", "--check-config"):
            full = self.start(option, program=MUSTERD, prefix=["bash", "-c", 'exec "$@" >/dev/full', "-"])
            self.assertEqual(full.wait(), 73)
            self.assert_one_line(full, "^musterd: cannot write to standard output: No space left")


if __name__ == "__main__":
    unittest.main()
