"""What a master tells of a real job at each stage: muster status, stop, metrics, incident log."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import harness
from harness import MUSTERD, Case

# Says READY and a step over its socket, as the SDK does, and works until it is drained or the socket closes.
WORKER = ["--no-python", "python3", "-c", """
import os, socket
agent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
agent.connect(os.environ["MUSTER_SOCKET"])
agent.send(b"READY=1\\nSTEP=7")
print("up", os.environ["RANK"], os.environ["MUSTER_GENERATION"], flush=True)
while True:
    if agent.recv(4096) in (b"", b"DRAIN=1"):
        break
"""]


class Status(Case):
    def musterd(self, *args):
        daemon = self.start("--listen", "127.0.0.1:0", *args, program=MUSTERD)
        self.endpoint = daemon.wait_line(r"listens on (127\.0\.0\.1:\d+)")[1]
        return daemon

    def node(self, name, *options, conf=()):
        conf = ",".join(["keep_alive_interval=1", "keep_alive_max_attempt=30", *conf])
        return self.start("run", "--nnodes", 2, "--nproc-per-node", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint",
                          self.endpoint, "--rdzv-id", "digits", "--node-id", name, "--max-restarts", 3, "--rdzv-conf", conf,
                          *options, *WORKER)

    def ask(self, *args, endpoint=None):
        done = subprocess.run([str(harness.MUSTER), *map(str, args), "--rdzv-endpoint", endpoint or self.endpoint], text=True,
                              capture_output=True, timeout=harness.PATIENCE, check=False)
        return done.returncode, done.stdout, done.stderr

    def status(self, job="digits"):
        code, out, err = self.ask("status", job, "-o", "json")
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)["jobs"][0]

    def watch(self, *options):
        return self.start("status", "digits", "--watch", "-o", "json", "--rdzv-endpoint", self.endpoint, *options)

    def answers(self, watch):
        """All complete documents that the watch has printed so far."""
        decoder, text, found = json.JSONDecoder(), watch.text("out"), []
        while (text := text.lstrip()):
            try:
                document, end = decoder.raw_decode(text)
            except ValueError:
                break
            found.append(document["jobs"][0])
            text = text[end:]
        return found

    def wait_answer(self, watch, fits, since=0):
        """The first answer from number `since` on for which `fits` is true."""
        limit = harness.deadline()
        while True:
            position = watch.position()
            found = [answer for answer in self.answers(watch)[since:] if fits(answer)]
            if found:
                return found[0]
            with watch.changed:
                while len(watch.lines) == position:
                    if not watch.changed.wait(limit - time.monotonic()):
                        self.fail("no such answer:\n" + watch._text_locked())

    def http(self, path):
        with urllib.request.urlopen(f"http://{self.http_endpoint}{path}", timeout=harness.PATIENCE) as answer:
            return answer.read().decode()


class EmbeddedMaster(Status):
    def setUp(self):
        self.endpoint = f"127.0.0.1:{harness.free_port()}"

    def test_nobody_there_an_unknown_job_and_a_job_that_has_ended_are_told_apart(self):
        code, out, err = self.ask("status")
        self.assertEqual((code, out), (69, ""))
        self.assertEqual(err, f"muster: no master at {self.endpoint}: connection refused\n")
        node = self.node("a", "--log-level", "info")
        node.wait_line(r"1 of 2")
        code, _, err = self.ask("status", "digist")
        self.assertEqual((code, err), (1, "muster: there is no job 'digist' at this master: did you mean 'digits'?\n"))
        self.assertEqual(self.ask("stop", "digits")[:2], (0, "job digits is stopped\n"))
        self.assertEqual(node.wait(), 143)
        self.assert_nothing_left(node)

    def test_a_waiting_job_says_why_and_how_long_at_most(self):
        node = self.node("a", "--log-level", "info")
        node.wait_line(r"1 of 2")
        # Of several endpoints the one is asked where a master serves.
        code, out, _ = self.ask("status", endpoint=f"127.0.0.1:{harness.free_port()},{self.endpoint}")
        self.assertEqual(code, 0)
        head, columns, row = out.splitlines()
        self.assertRegex(head, r"^digits: forming: waiting for nodes: 1 of 2 are here; at most 9m\d\ds more$")
        self.assertEqual(columns.split(), ["NODE", "STATE", "RANKS", "STEP", "PROGRESS", "HEARTBEAT", "REASON"])
        self.assertRegex(row, r"^a +waiting +- +- +- +\d+m?s +waiting for nodes: 1 of 2 are here; at most 9m\d\ds more$")
        node.signal(signal.SIGTERM)
        self.assertEqual(node.wait(), 143)

    def test_what_listens_there_may_be_something_else(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.endpoint = f"127.0.0.1:{server.getsockname()[1]}"

            def answer():
                connection, _ = server.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.close()

            thread = threading.Thread(target=answer)
            thread.start()
            code, _, err = self.ask("status")
            thread.join()
        self.assertEqual(code, 78, err)
        self.assertIn(self.endpoint, err)

    def test_a_node_and_then_the_job_end_at_a_commit_point(self):
        a = self.node("a", "--log-level", "info", conf=["last_call_timeout=1"])
        a.wait_line("the master listens on")  # who hosts the master stays until the job has ended
        b = self.node("b", conf=["last_call_timeout=1"])
        for job in (a, b):
            job.wait_line(r"^up \d 1$", count=2)
        self.assertEqual(self.ask("drain", "digits", "--node", "c"),
                         (1, "", "muster: there is no node 'c' in job digits\n"))
        position = a.position()
        self.assertEqual(self.ask("drain", "digits", "--node", "b")[0], 0)
        self.assertEqual(b.wait(), 0)
        a.wait_line(r"1 of 2", start=position)
        self.assertEqual(self.status()["why"]["reason"], "waiting_for_nodes")
        self.assertEqual(self.ask("drain", "digits")[0], 0)
        self.assertEqual(a.wait(), 0)
        self.assert_nothing_left(a, b)

    def test_workers_that_come_to_no_commit_point_in_time_are_stopped_and_the_launchers_return_143(self):
        deaf = [self.start("run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", self.endpoint, "--rdzv-id",
                           "digits", "--node-id", name, *harness.bash("echo up; exec sleep 1000")) for name in "ab"]
        for job in deaf:
            job.wait_line("^up$")
        self.assertEqual(self.ask("drain", "digits", "--at-most", "100ms")[0], 0)
        self.assertEqual([job.wait() for job in deaf], [143, 143])
        self.assertRegex(deaf[0].text("err"), "job ended while it was drained by ")
        self.assert_nothing_left(*deaf)


class LocalJobs(Status):
    """Jobs of one node: no master to ask, the launchers answer themselves."""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.env = {"TMPDIR": folder}

    def local(self, *args):
        return subprocess.run([str(harness.MUSTER), "status", "--local", *map(str, args)], text=True, env={**os.environ, **self.env},
                              capture_output=True, timeout=harness.PATIENCE, check=False)

    def jobs(self):
        """Of this test: others may run on the machine."""
        return {job["job"]: job for job in json.loads(self.local("-o", "json").stdout)["jobs"] if job["job"].startswith("local-")}

    def test_each_is_told_with_its_workers(self):
        a, b = (self.start("run", "--nproc-per-node", 2, "--max-restarts", 3, "--rdzv-id", name, *WORKER, env=self.env)
                for name in ("local-a", "local-b"))
        for job in (a, b):
            job.wait_line(r"^up \d 1$", count=2)
        jobs = self.jobs()
        self.assertEqual(sorted(jobs), ["local-a", "local-b"])
        told = jobs["local-a"]
        self.assertEqual((told["pid"], told["phase"], told["generation"], told["restarts_used"], told["restarts_max"]),
                         (a.pid, "running", 1, 0, 3))
        self.assertEqual([worker["rank"] for worker in told["workers"]], [0, 1])
        self.assertLessEqual({worker["pid"] for worker in told["workers"]}, set(a.marked()))
        table = self.local("local-a").stdout
        self.assertRegex(table, rf"^local-a: running: generation 1 of 2 workers on this node; .*0 of 3 restarts used; pid {a.pid}\n")
        self.assertEqual(len(table.splitlines()), 4)

        os.kill(told["workers"][1]["pid"], signal.SIGKILL)
        a.wait_line(r"^up \d 2$", count=2)
        told = self.jobs()["local-a"]
        self.assertEqual((told["generation"], told["restarts_used"]), (2, 1))

        b.signal(signal.SIGKILL)
        b.process.wait(harness.PATIENCE)
        self.assertEqual(sorted(self.jobs()), ["local-a"])
        unknown = self.local("local-c")
        self.assertEqual((unknown.returncode, unknown.stdout), (1, ""))
        # Launchers of others on this machine may be stopped, and are told before.
        self.assertEqual(unknown.stderr.splitlines()[-1], "muster: no launcher of yours on this machine runs job 'local-c'")
        a.signal(signal.SIGTERM)
        self.assertEqual(a.wait(), 143)
        self.assertEqual(self.jobs(), {})
        self.assert_nothing_left(a, b)

    def test_one_that_is_stopped_is_named_and_the_others_are_told(self):
        a, b = (self.start("run", "--nproc-per-node", 1, "--rdzv-id", name, *WORKER, env=self.env) for name in ("local-a", "local-b"))
        for job in (a, b):
            job.wait_line(r"^up 0 1$")
        b.signal(signal.SIGSTOP)
        told = self.local("--timeout", "2")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn(f"your launcher with pid {b.pid} does not answer: is it stopped (Ctrl-Z, SIGSTOP)?", told.stderr)
        self.assertIn("local-a: running", told.stdout)
        b.signal(signal.SIGCONT)
        for job in (a, b):
            job.signal(signal.SIGTERM)
            self.assertEqual(job.wait(), 143)

    def test_there_is_nothing_to_watch(self):
        refused = self.local("--watch")
        self.assertEqual((refused.returncode, len(refused.stderr.splitlines())), (2, 1))


class MasterInAnAgent(Case):
    def test_a_watch_ends_with_the_job_though_its_master_goes_with_it(self):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        for end, verdict in (("stop", "stopped by"), ("done", "succeeded")):
            job = f"watched-{end}"
            with tempfile.TemporaryDirectory() as folder:
                gate = f"{folder}/gate"
                os.mkfifo(gate)
                held = os.open(gate, os.O_RDWR)  # whoever reads, whenever, finds what is written
                self.addCleanup(os.close, held)
                nodes = [self.start("run", "--nnodes", 2, "--rdzv-endpoint", endpoint, "--rdzv-id", job, "--node-id", name,
                                    *harness.bash(f"echo up; read _ < {gate}")) for name in "ab"]
                for node in nodes:
                    node.wait_line("^up$")
                watch = self.start("status", "--rdzv-endpoint", endpoint, job, "--watch")
                watch.wait_line("running")
                if end == "stop":
                    self.assertEqual(self.start("stop", "--rdzv-endpoint", endpoint, job).wait(), 0)
                else:
                    os.write(held, b"\n\n")
                for node in nodes:
                    node.wait()
                self.assertEqual(watch.wait(), 0, watch.text())
                self.assertRegex(watch.text("out"), f"closed: .*{verdict}")


class StandingMaster(Status):
    def setUp(self):
        self.log = Path(os.environ.get("TEST_TMPDIR", "/tmp")) / f"incidents-{os.getpid()}.jsonl"
        self.log.unlink(missing_ok=True)
        daemon = self.musterd("--http-endpoint", "127.0.0.1:0", "--incident-log", self.log)
        self.http_endpoint = daemon.wait_line(r"HTTP on (127\.0\.0\.1:\d+)")[1]

    def assert_phases(self, incident):
        phases = [incident[name] for name in ("detect_ms", "stop_ms", "rendezvous_ms", "start_ms", "ready_ms")]
        self.assertNotIn(None, phases)
        self.assertEqual(sum(phases), incident["total_ms"])

    def test_a_failing_worker_and_a_lost_node_are_told_at_each_stage(self):
        a, b = self.node("a"), self.node("b")
        for job in (a, b):
            job.wait_line(r"^up \d 1$", count=2)
        watch = self.watch()
        running = self.wait_answer(watch, lambda job: [node["state"] for node in job["nodes"]] == ["ready", "ready"])
        self.assertEqual((running["phase"], running["generation"], running["world_size"]), ("running", 1, 4))
        self.assertEqual([(node["node"], node["first_rank"], node["slots"]) for node in running["nodes"]],
                         [("a", 0, 2), ("b", 2, 2)])
        far = self.wait_answer(watch, lambda job: [node["step"] for node in job["nodes"]] == [7, 7])
        self.assertEqual(far["step"], 7)
        self.assertGreaterEqual(far["progress_ago_ms"], 0)

        victim = next(pid for pid in b.marked() if self.rank_of(pid) == "3")
        os.kill(victim, signal.SIGKILL)
        recovered = self.wait_answer(watch, lambda job: [i["outcome"] for i in job["incidents"]] == ["recovered"])
        incident = recovered["incidents"][0]
        self.assertEqual((incident["reason"], incident["failed_node"], incident["failed_rank"], incident["charged"]),
                         ("worker_failed", "b", 3, True))
        self.assertEqual((incident["kind"], incident["failed_status"], incident["failed_signal"], incident["failed_exit_code"],
                          incident["out_of_memory"]), ("signal", "signal 9 (SIGKILL)", "SIGKILL", None, False))
        self.assertEqual((incident["generation"], incident["next_generation"]), (1, 2))
        self.assertEqual(recovered["restarts_used"], 1)
        self.assert_phases(incident)

        b.signal(signal.SIGKILL)
        waiting = self.wait_answer(watch, lambda job: job["phase"] == "forming")
        self.assertEqual(waiting["why"]["text"], "waiting for nodes: 1 of 2 are here; missing: b")
        self.assertGreater(waiting["why"]["time_left_ms"], 0)
        b.process.wait(harness.PATIENCE)
        b = self.node("b")
        back = self.wait_answer(watch, lambda job: [i["outcome"] for i in job["incidents"]] == ["recovered"] * 2)
        self.assertEqual(back["incidents"][1]["reason"], "node_lost_stream")
        self.assertEqual((back["incidents"][1]["kind"], back["incidents"][1]["failed_node"]), ("node_lost", None))
        self.assertEqual((back["generation"], back["restarts_used"]), (3, 1))
        self.assert_phases(back["incidents"][1])
        self.assertEqual(self.status()["generation"], 3)

        self.check_pages()
        self.assertEqual(self.ask("stop", "digits")[0], 0)
        self.assertEqual([a.wait(), b.wait(), watch.wait()], [143, 143, 0])
        order = [(job["phase"], job["generation"]) for job in self.answers(watch)]
        self.assertEqual(order[-1], ("closed", 3))
        self.assertEqual([generation for _, generation in order], sorted(generation for _, generation in order))
        self.check_log(back)
        self.assert_nothing_left(a, b)

    def test_a_watch_goes_on_with_the_master_that_comes_back(self):
        state = self.enterContext(tempfile.TemporaryDirectory())
        daemon = self.musterd("--state-dir", state)
        a, b = self.node("a", conf=["is_host=0"]), self.node("b", conf=["is_host=0"])
        a.wait_line(r"^up \d 1$")  # the master knows the job
        watch = self.watch("--reconnect", 5400)
        self.wait_answer(watch, lambda job: job["step"] == 7)
        impatient = self.start("status", "digits", "--watch", "--reconnect", 0, "--rdzv-endpoint", self.endpoint)
        impatient.wait_line("^b +ready")
        daemon.signal(signal.SIGKILL)
        self.assertEqual(impatient.wait(), 69)
        watch.wait_line(rf"^muster: {self.endpoint}: .*; looking for a master for up to 90m$", stream="err")
        told = len(self.answers(watch))
        following = self.start("--listen", self.endpoint, "--state-dir", state, program=MUSTERD)
        following.wait_line("listens on")
        self.wait_answer(watch, lambda job: job["step"] == 7, since=told)
        self.assertEqual(self.ask("stop", "digits")[0], 0)
        self.assertEqual([a.wait(), b.wait(), watch.wait()], [143, 143, 0])
        self.assertEqual(watch.text("err").count("looking for a master"), 1, "one line a loss")
        self.assertEqual({job["generation"] for job in self.answers(watch)[told:]}, {1})
        # Both have heard the verdict, and the next master knows that, too.
        for master in (following, None):
            self.assertEqual([node["state"] for node in self.status()["nodes"]], ["left", "left"])
            if master:
                master.signal(signal.SIGKILL)
                master.process.wait(harness.PATIENCE)
                self.start("--listen", self.endpoint, "--state-dir", state, program=MUSTERD).wait_line("listens on")

    def test_a_watch_of_several_masters_goes_on_with_another_one(self):
        first = self.musterd()
        second = f"127.0.0.1:{harness.free_port()}"
        self.endpoint += "," + second
        a, b = self.node("a"), self.node("b")
        a.wait_line(r"^up \d 1$")  # the master knows the job
        watch = self.watch()
        self.wait_answer(watch, lambda job: job["step"] == 7)
        first.signal(signal.SIGTERM)
        watch.wait_line("the master stops; looking for a master", stream="err")
        told = len(self.answers(watch))
        # It has no memory, and knows the job when the agents have come.
        following = self.start("--listen", second, program=MUSTERD)
        following.wait_line(r"job digits: generation 1 started with 2 nodes")
        back = self.wait_answer(watch, lambda job: job["phase"] == "running", since=told)
        self.assertEqual(back["generation"], 1)
        self.assertEqual(self.ask("stop", "digits")[0], 0)
        self.assertEqual([a.wait(), b.wait(), watch.wait()], [143, 143, 0])

    def rank_of(self, pid):
        environment = Path("/proc", str(pid), "environ").read_bytes().decode(errors="replace")
        command = Path("/proc", str(pid), "comm").read_text()
        match = re.search(r"(?:^|\0)RANK=(\d+)\0", environment)
        return match[1] if match and command.startswith("python3") else None

    def check_pages(self):
        metrics = self.http("/metrics")
        self.assertIn('muster_rendezvous_generation{job="digits"} 3\n', metrics)
        self.assertIn('muster_worker_exits_total{job="digits",kind="signal"} 1\n', metrics)
        self.assertIn('muster_recovery_duration_seconds_count{job="digits"} 2\n', metrics)
        self.assertIn('muster_incidents_total{job="digits",kind="node_lost"} 1\n', metrics)
        self.assertIn('muster_incidents_total{job="digits",kind="signal"} 1\n', metrics)
        self.assertIn('muster_agent_workers{job="digits",state="ready"} 4\n', metrics)
        self.assertIn("muster_store_trouble 0\n", metrics)
        self.assertRegex(metrics, r"\nmuster_heartbeat_lag_seconds_count [1-9]\d*\n")
        self.assertIn('muster_rendezvous_generations_total{job="digits",reason="node_lost_stream"} 1\n', metrics)
        self.assertEqual(json.loads(self.http("/api/v1/status"))["jobs"][0]["generation"], 3)
        self.assertEqual([self.http(path) for path in ("/healthz", "/readyz")], ["ok\n", "ok\n"])
        self.assertIn("<h1>muster</h1>", self.http("/"))

    def check_log(self, back):
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        self.assertEqual([(line["incident"], line["outcome"]) for line in lines],
                         [(1, "open"), (1, "recovered"), (2, "open"), (2, "recovered")])
        for line, told in zip(lines[1::2], back["incidents"]):
            self.assertEqual({key: value for key, value in line.items() if key not in ("job", "instance")}, told)
            self.assertEqual((line["job"], line["instance"]), ("digits", 1))
