"""When a job is started again and when it ends: limits for failures, fatal exit codes, stalled workers."""

import harness
from harness import Case

# Reports STEP=7 over its socket, then what the test wants: `after` is Python.
STEPPER = """
import os, socket, sys, time
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(os.environ["MUSTER_SOCKET"])
link.send(b"STEP=7")
print("lost in thought", file=sys.stderr, flush=True)
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
"""


def python(after):
    return ["--no-python", "python3", "-c", STEPPER + after]


class RestartPolicy(Case):
    def test_a_job_that_never_gets_going_ends_before_its_budget_does(self):
        job, code = self.run_job("--max-restarts", 9, "--max-start-failures", 1, "--no-python", "bash", "-c",
                                 "echo start; exit 5")
        self.assertEqual(code, 5)
        self.assertEqual(job.text("out").count("start"), 1)
        text = " ".join(job.text("err").split())
        self.assertRegex(text, "verdict .*exit code 5; 1 quick failure in a row, and --max-start-failures is 1")

    def test_quick_failures_in_a_row_are_backed_off_from_the_second_one_on(self):
        job, code = self.run_job("--max-restarts", 9, "--max-start-failures", 3, "--log-level", "info", "--no-python", "bash",
                                 "-c", "echo start; exit 5")
        self.assertEqual(code, 5)
        self.assertEqual(job.text("out").count("start"), 3)
        self.assertEqual(job.text("err").count("backing off for"), 1)
        self.assertRegex(job.text("err"), r"backing off for \d+m?s after 2 quick failures in a row")

    def test_restarts_are_immediate_without_a_restart_delay(self):
        job, code = self.run_job("--max-restarts", 4, "--max-restart-delay", 0, "--log-level", "info", "--no-python", "bash",
                                 "-c", "echo start; exit 5")
        self.assertEqual((code, job.text("out").count("start")), (5, 5))
        self.assertNotIn("backing off", job.text("err"))

    def test_a_fatal_exit_code_ends_the_job_at_once(self):
        job, code = self.run_job("--max-restarts", 9, "--fatal-exit-codes", "3,64-78", "--nproc-per-node", 2, "--no-python",
                                 "bash", "-c", "echo start; [ $RANK = 1 ] && exit 70; exec sleep 1000")
        self.assertEqual(code, 70)
        self.assertLessEqual(job.text("out").count("start"), 2)
        self.assertIn("no restart can mend it", job.text("err"))
        self.assert_nothing_left(job)

    def test_a_stalled_worker_is_killed_with_its_threads_and_last_lines_in_the_report(self):
        job, code = self.run_job("--stall-timeout", 1, "--tee", 3, *python("time.sleep(1000)"))
        self.assertEqual(code, 137)
        report = job.text("err")
        self.assertIn("stalled: it reported STEP=7 and then nothing for 1s", report)
        self.assertRegex(report, r"its threads, before it was killed:\n +\| thread \d+ \(python3[^)]*\): sleeping")
        self.assertRegex(report, r"\| lost in thought")
        self.assertNotIn("out-of-memory", report)
        self.assert_nothing_left(job)

    def test_a_stall_is_one_incident_and_the_job_goes_on(self):
        job, code = self.run_job("--stall-timeout", 1, "--max-restarts", 1, "--nproc-per-node", 2,
                                 *python("attempt or time.sleep(1000)"))
        self.assertEqual(code, 0)
        self.assertIn("restart 1 of 1", job.text("err"))

    def test_a_worker_that_goes_on_reporting_does_not_stall(self):
        job, code = self.run_job("--stall-timeout", 2, *python("""
import select
for step in range(30):
    if select.select([link], [], [], 0.1)[0]:
        sys.exit("the launcher said " + link.recv(1000).decode())
    link.send(b"STEP=%d" % step)
"""))
        self.assertEqual(code, 0, job.text())


class StaticNodes(Case):
    def test_a_failure_restarts_all_static_nodes_at_once(self):
        port = harness.free_port()
        worker = ["--no-python", "bash", "-c", "echo up $RANK $TORCHELASTIC_RESTART_COUNT; "
                  "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 1 ] && exit 9; exec sleep 1000"]
        jobs = [self.start("run", "--nnodes", 2, "--node-rank", rank, "--master-addr", "127.0.0.1", "--master-port", port,
                           "--max-restarts", 1, *worker) for rank in (0, 1)]
        self.assertEqual([job.wait() for job in jobs], [0, 0], "\n".join(job.text() for job in jobs))
        for rank, job in enumerate(jobs):
            self.assertIn(f"up {rank} 1", job.text("out"))
        self.assert_nothing_left(*jobs)
