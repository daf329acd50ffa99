"""What a failed job leaves to read: the block on stderr, --report-file, the error file, the termination log."""

import json
import os
import signal
import tempfile
from pathlib import Path

import harness
from harness import HELLO, Case, bash


class Report(Case):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def report(self, *args, name="report.json", **kwargs):
        path = self.folder / name
        job, code = self.run_job("--report-file", path, *args, **kwargs)
        self.assert_nothing_left(job)
        return job, code, json.loads(path.read_text())

    def test_success_is_reported_too(self):
        _, code, report = self.report("--nproc-per-node", 2, "--rdzv-id", "j", "--max-restarts", 4, HELLO)
        self.assertEqual(code, 0)
        self.assertEqual((report["version"], report["job"], report["succeeded"], report["exit_code"], report["cause"]),
                         (1, "j", True, 0, None))
        self.assertEqual([(w["rank"], w["exit_code"]) for w in report["workers"]], [(0, 0), (1, 0)])
        self.assertEqual(report["incidents"], [])
        self.assertEqual(report["restarts_max"], 4)
        self.assertLessEqual(report["began_ms"], report["ended_ms"])
        self.assertEqual(os.listdir(self.folder), ["report.json"])

    def test_cause_workers_and_incidents_of_a_failed_job(self):
        _, code, report = self.report("--nproc-per-node", 2, "--max-restarts", 1, "--log-dir", self.folder / "logs", "-r", 3,
                                      *bash("[ $RANK = 1 ] && { echo loading >&2; echo BOOM >&2; exit 7; }; exec sleep 1000"))
        self.assertEqual((code, report["exit_code"]), (7, 7))
        cause = report["cause"]
        self.assertEqual((cause["rank"], cause["local_rank"], cause["exit_code"]), (1, 1, 7))
        self.assertEqual(cause["stderr"], "loading\nBOOM")
        self.assertTrue(Path(cause["log"]).is_file())
        self.assertEqual([i["failure"]["rank"] for i in report["incidents"]], [1, 1])
        self.assertEqual([i["restart_count"] for i in report["incidents"]], [0, 1])
        stopped = report["workers"][0]
        self.assertEqual((stopped["signal_name"], stopped["stopped_by_launcher"]), ("SIGTERM", True))

    def test_a_report_file_that_cannot_be_written_is_refused_before_the_start(self):
        job, code = self.run_job("--report-file", self.folder / "no/such/report.json", *bash("echo started"))
        self.assertEqual(code, 73)
        self.assert_one_line(job, r"report file .*no/such/report.json cannot be written")
        self.assertNotIn("started", job.text("out"))

    def test_a_stop_from_outside_has_no_cause(self):
        path = self.folder / "report.json"
        job = self.start("run", "--report-file", path, *bash("echo up; exec sleep 1000"))
        job.wait_line("up")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)
        report = json.loads(path.read_text())
        self.assertEqual((report["exit_code"], report["cause"], report["stopped_by"]), (143, None, "SIGTERM"))

    def test_a_message_of_several_lines_stays_as_it_is(self):
        error = json.dumps({"message": {"message": "ValueError: bad\n  in line 2", "extraInfo": {"timestamp": "1"}}})
        job, code, report = self.report(*bash('echo "$0" > $TORCHELASTIC_ERROR_FILE; exit 1', error))
        self.assertEqual(code, 1)
        self.assertEqual(report["cause"]["message"], "ValueError: bad\n  in line 2")
        self.assertRegex(job.text("err"), r"message     ValueError: bad\n +in line 2\n")

    def test_the_launchers_own_error_file_gets_the_root_cause(self):
        path = self.folder / "error.json"
        error = json.dumps({"message": {"message": "ValueError: bad", "extraInfo": {"timestamp": "1"}}})
        _, code = self.run_job(*bash('echo "$0" > $TORCHELASTIC_ERROR_FILE; exit 3', error),
                               env={"TORCHELASTIC_ERROR_FILE": str(path)})
        self.assertEqual(code, 3)
        message = json.loads(path.read_text())["message"]
        self.assertEqual((message["message"], message["errorCode"]), ("ValueError: bad", 3))
        self.assertTrue(message["extraInfo"]["timestamp"].isdigit())

    def test_a_launcher_under_a_launcher_passes_the_message_on(self):
        error = json.dumps({"message": {"message": "ValueError: inner", "extraInfo": {"timestamp": "1"}}})
        inner = bash('echo "$0" > $TORCHELASTIC_ERROR_FILE; exit 3', error)
        job, code = self.run_job("--no-python", harness.MUSTER, "run", *inner)
        self.assertEqual(code, 3)
        self.assertEqual(job.text("err").count("message     ValueError: inner"), 2)

    def test_termination_log(self):
        path = self.folder / "termination-log"
        path.write_text("old")
        worker = bash("head -c 9000 /dev/zero | tr '\\0' x >&2; echo >&2; echo LAST >&2; exit 4")
        _, code = self.run_job("--termination-log", path, "--log-dir", self.folder, "-r", 3, *worker)
        self.assertEqual(code, 4)
        text = path.read_text()
        self.assertRegex(text, r"^rank 0 .* failed: exit code 4\n")
        self.assertTrue(text.endswith("LAST\n"))
        self.assertLessEqual(len(text), 4096)
        missing = self.folder / "missing"
        _, code = self.run_job("--termination-log", missing, *bash("exit 4"))
        self.assertEqual((code, missing.exists()), (4, False))

    def test_a_kill_from_outside_is_told_from_the_launchers_own(self):
        job, code = self.run_job("--nproc-per-node", 2, *bash("[ $RANK = 1 ] && kill -9 $$; exec sleep 1000"))
        self.assertEqual(code, 137)
        self.assertRegex(job.text("err"), r"Root cause: rank 1 .*signal 9 \(SIGKILL\)")
        self.assertRegex(job.text("err"), r"hint        not sent by the launcher")
        self.assertRegex(job.text("err"), r"Stopped by the launcher:\n  rank 0 ")


class TwoNodes(Case):
    def nodes(self, script, *options):
        endpoint = f"127.0.0.1:{harness.free_port()}"
        return {name: self.start("run", "--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "j",
                                 "--node-id", name, *options, *bash(script)) for name in "ab"}

    def causes(self, jobs):
        """The lines from the root cause on, up to its log file."""
        found = []
        for job in jobs.values():
            text = job.text("err")
            start = text.index("Root cause:")
            found.append(text[start:text.index("\n  log ", start)])
        return found

    def test_both_nodes_print_the_same_root_cause_with_its_words(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        error = '{"message": {"message": "ValueError: one\\\\ntwo", "extraInfo": {"timestamp": "1"}}}'
        for culprit in (0, 1):
            with self.subTest(culprit=culprit):
                script = (f"[ $RANK = {culprit} ] || exec sleep 1000; echo WORDS >&2; "
                          f"printf '{error}' > $TORCHELASTIC_ERROR_FILE; exit 9")
                jobs = self.nodes(script, "--log-dir", folder, "-r", 3)
                self.assertEqual([job.wait() for job in jobs.values()], [9, 9])
                first, second = self.causes(jobs)
                self.assertEqual(first, second)
                self.assertRegex(first, rf"rank {culprit} \(local rank 0, pid \d+\): exit code 9\n  node        {'ab'[culprit]}")
                self.assertIn("message     ValueError: one\n              two", first)
                self.assertIn("| WORDS", first)
                self.assert_nothing_left(*jobs.values())

    def test_the_report_file_of_the_other_node_names_the_culprit(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        jobs = self.nodes("[ $RANK = 1 ] && kill -SEGV $$; exec sleep 1000", "--report-file", folder / "report.json")
        self.assertEqual([job.wait() for job in jobs.values()], [139, 139])
        report = json.loads((folder / "report.json").read_text())
        self.assertEqual((report["cause"]["node"], report["cause"]["rank"], report["cause"]["signal_name"]),
                         ("b", 1, "SIGSEGV"))
