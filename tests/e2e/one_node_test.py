"""Jobs of one node: what the workers get, what becomes of failures, and that nothing is left."""

import json
import os
import signal
import socket
import tempfile
from pathlib import Path

import harness
from harness import FLAKY, HELLO, SLEEPER, Case


class OneNode(Case):
    def test_hello_says_who_it_is(self):
        job, code = self.run_job("--standalone", "--nproc-per-node", 4, HELLO)
        self.assertEqual(code, 0)
        lines = sorted(job.text("out").splitlines())
        self.assertEqual(len(lines), 4)
        for rank, line in enumerate(lines):
            self.assertRegex(line, rf"^rank {rank} of 4, local rank {rank} of 4, master 127.0.0.1:\d+$")

    def test_worker_environment_is_torchruns(self):
        job, code = self.run_job("--nproc-per-node", 2, "--max-restarts", 3, "--rdzv-id", "job7", "--role", "trainer",
                                 "--no-python", "bash", "-c", "[ $LOCAL_RANK = 1 ] && env || true")
        self.assertEqual(code, 0)
        env = dict(line.split("=", 1) for line in job.text("out").splitlines() if "=" in line)
        expected = {
            "LOCAL_RANK": "1", "RANK": "1", "GROUP_RANK": "0", "ROLE_RANK": "1", "ROLE_NAME": "trainer",
            "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1", "ROLE_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3",
            "TORCHELASTIC_RUN_ID": "job7", "TORCHELASTIC_USE_AGENT_STORE": "False",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "OMP_NUM_THREADS": "1", "MUSTER_GENERATION": "1",
            "MUSTER_LOCAL_ADDR": "127.0.0.1"}
        self.assertEqual({name: env.get(name) for name in expected}, expected)
        for name in ("MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "MUSTER_SOCKET"):
            self.assertIn(name, env)

    def test_a_failure_restarts_all_workers_within_the_budget(self):
        job, code = self.run_job("--nproc-per-node", 3, "--max-restarts", 2, FLAKY, "--rank", 1, "--exit", 3, "--steps", 2)
        self.assertEqual(code, 0)
        # The others may be stopped before they have said anything.
        self.assertGreaterEqual(job.text("out").count("attempt 0"), 1)
        self.assertEqual(job.text("out").count("attempt 1"), 3)
        self.assertRegex(job.text("err"), r"rank 1 .* failed: exit code 3; restart 1 of 2")

    def test_a_spent_budget_ends_the_job_with_the_workers_code(self):
        job, code = self.run_job("--nproc-per-node", 2, "--max-restarts", 1, "--no-python", "bash", "-c",
                                 "[ $RANK = 1 ] && exit 43; exec sleep 1000")
        self.assertEqual(code, 43)
        self.assertRegex(job.text("err"), r"Root cause: rank 1 \(local rank 1, pid \d+\): exit code 43")
        self.assertNotIn("Root cause: rank 0", job.text("err"))
        self.assert_nothing_left(job)

    def test_a_signal_becomes_128_plus_n(self):
        job, code = self.run_job("--no-python", "bash", "-c", "kill -SEGV $$")
        self.assertEqual(code, 128 + signal.SIGSEGV)
        self.assertIn("SIGSEGV", job.text("err"))

    def test_killed_launcher_leaves_nothing_although_all_ignore_term(self):
        script = ("trap '' TERM; (setsid bash -c \"trap '' TERM; exec sleep 1000\" &); "
                  "(trap '' TERM; exec setsid sleep 1000) & echo up; while :; do read -t 1000; done < <(sleep 1000)")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        job = self.start("run", "--nproc-per-node", 2, "--no-python", "bash", "-c", script, env={"TMPDIR": folder})
        job.wait_line("up", count=2)
        job.signal(signal.SIGKILL)
        self.assertEqual(job.process.wait(harness.PATIENCE), -signal.SIGKILL)
        self.assert_nothing_left(job)
        self.assertEqual(os.listdir(folder), [])

    def test_killed_warden_leaves_nothing_and_the_launcher_says_so(self):
        job = self.start("run", "--nproc-per-node", 2, "--no-python", "bash", "-c",
                         "(setsid sleep 1000 &); echo up $PPID; exec sleep 1000")
        warden = int(job.wait_line(r"up (\d+)", count=2).group(1))
        os.kill(warden, signal.SIGKILL)
        self.assertEqual(job.wait(), 70)
        self.assertRegex(job.text("err"), "the warden process is gone")
        self.assert_nothing_left(job)

    def test_a_stopped_warden_does_not_keep_the_launcher_from_ending_the_job(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, 137)):
            with self.subTest(number=number):
                job = self.start("run", "--nproc-per-node", 2, "--no-python", "bash", "-c",
                                 "(setsid sleep 1000 &); echo up $PPID; exec sleep 1000")
                os.kill(int(job.wait_line(r"up (\d+)", count=2).group(1)), signal.SIGSTOP)
                job.signal(number)
                self.assertEqual(job.wait(), code)
                self.assert_nothing_left(job)

    def test_term_reaches_workers_and_grandchildren_and_gives_143(self):
        job = self.start("run", "--nproc-per-node", 2, "--no-python", "bash", "-c",
                         "trap 'echo saved; exit 0' TERM; (setsid sleep 1000 &); echo up; while :; do read -t 1; done")
        job.wait_line("up", count=2)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 128 + signal.SIGTERM)
        self.assertEqual(job.text("out").count("saved"), 2)
        self.assert_one_line(job, r"^muster: SIGTERM from pid \d+: stopping$")
        self.assert_nothing_left(job)

    def test_a_worker_that_ignores_term_is_killed_after_the_grace(self):
        job = self.start("run", "--shutdown-timeout", 1, "--no-python", "bash", "-c",
                         "trap '' TERM; echo up; while :; do read -t 1; done")
        job.wait_line("up")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)
        self.assert_nothing_left(job)

    def test_a_large_node_starts_under_the_usual_descriptor_limit(self):
        usual = ["bash", "-c", 'ulimit -n 1024; exec "$@"', "usual"]
        job, code = self.run_job("--nproc-per-node", 512, "--no-python", "/bin/true", prefix=usual)
        self.assertEqual((code, job.text()), (0, ""))

    def test_a_low_descriptor_limit_that_suffices_suffices(self):
        limited = ["bash", "-c", 'ulimit -n 40; exec "$@"', "limited"]
        job, code = self.run_job("--nproc-per-node", 24, "--no-python", "/bin/true", prefix=limited)
        self.assertEqual((code, job.text()), (0, ""))

    def test_workers_get_the_descriptor_limit_that_the_launcher_was_given(self):
        limited = ["bash", "-c", 'ulimit -Sn 64; exec "$@"', "limited"]
        job, code = self.run_job("--nproc-per-node", 100, "--no-python", "bash", "-c", "ulimit -Sn", prefix=limited)
        self.assertEqual((code, job.text("out").splitlines()), (0, ["64"] * 100))

    def test_a_forwarded_signal_does_not_end_the_job(self):
        job = self.start("run", "--no-python", "bash", "-c",
                         "trap 'echo usr1; exit 0' USR1; echo up; while :; do read -t 1; done")
        job.wait_line("up")
        job.signal(signal.SIGUSR1)
        job.wait_line("usr1")
        self.assertEqual(job.wait(), 0)

    def test_what_a_finished_worker_leaves_behind_is_ended(self):
        job, code = self.run_job("--nproc-per-node", 2, "--no-python", "bash", "-c", "(setsid sleep 1000 &); exit 0")
        self.assertEqual(code, 0)
        self.assert_nothing_left(job)

    def test_workers_that_are_busy_for_longer_than_the_lease_are_left_alone(self):
        job, code = self.run_job("--rdzv-conf", "keep_alive_interval=1,keep_alive_max_attempt=1", "--no-python", "bash", "-c",
                                 "echo generation $MUSTER_GENERATION; read -t 2 < <(sleep 3); exit 0")
        self.assertEqual((code, job.text("out")), (0, "generation 1"))

    def test_steps_and_readiness_are_heard(self):
        job, code = self.run_job("--nproc-per-node", 2, "--log-level", "debug", FLAKY, "--steps", 3)
        self.assertEqual(code, 0)
        for rank in (0, 1):
            self.assertRegex(job.text("err"), rf"rank {rank} \(local rank {rank}\) says READY=1")
            self.assertRegex(job.text("err"), rf"rank {rank} \(local rank {rank}\) says STEP=2")

    def test_logs_lie_where_torchrun_puts_them(self):
        with tempfile.TemporaryDirectory() as folder:
            job, code = self.run_job("--nproc-per-node", 2, "--rdzv-id", "j1", "--log-dir", folder, "--redirects", "1:3",
                                     "--tee", "0:1", "--no-python", "bash", "-c", "echo out$RANK; echo err$RANK >&2")
            self.assertEqual(code, 0)
            run, = Path(folder).glob("j1_*")
            self.assertEqual((run / "attempt_0/0/stdout.log").read_text(), "out0\n")
            self.assertEqual((run / "attempt_0/1/stdout.log").read_text(), "out1\n")
            self.assertEqual((run / "attempt_0/1/stderr.log").read_text(), "err1\n")
            self.assertEqual(job.text("out"), "[default0]:out0")
            self.assertIn("err0", job.text("err"))

    def test_an_error_file_is_quoted_in_the_report(self):
        error = json.dumps({"message": {"message": "ValueError: bad shape", "extraInfo": {"timestamp": "1"}}})
        job, code = self.run_job("--no-python", "bash", "-c", 'echo "$0" > $TORCHELASTIC_ERROR_FILE; exit 1', error)
        self.assertEqual(code, 1)
        self.assertIn("ValueError: bad shape", job.text("err"))

    def test_nothing_stays_in_the_temporary_folder_after_success(self):
        with tempfile.TemporaryDirectory() as folder:
            _, code = self.run_job("--nproc-per-node", 2, HELLO, env={"TMPDIR": folder})
            self.assertEqual((code, os.listdir(folder)), (0, []))

    def test_arguments_arrive_byte_for_byte(self):
        arguments = ["--nproc-per-node", "-m", "$$", "${local_rank}", "", "a\nb", "--", "é"]
        job, code = self.run_job("--no-python", "bash", "-c", r'printf "<%s>" "$@"', "x", *arguments)
        self.assertEqual(code, 0)
        self.assertEqual(job.text("out"), "".join(f"<{a}>" for a in arguments))


class BadInput(Case):
    """One clear line, a documented exit code, nothing left."""

    def check(self, args, code, pattern, **kwargs):
        job = self.start(*args, **kwargs)
        self.assertEqual(job.wait(), code, job.text())
        self.assert_one_line(job, pattern)
        self.assert_nothing_left(job)

    def test_usage_errors(self):
        for args, pattern in [
                (["--nproc-per-nodes", 2, "x"], r"--nproc-per-nodes.*--nproc-per-node"),
                (["--nnodes", "2:1", HELLO], r"2:1"),
                (["--nnodes", "a", HELLO], r"'a'"),
                (["--nproc-per-node", 0, HELLO], r"--nproc-per-node"),
                (["--max-restarts", -1, HELLO], r"--max-restarts"),
                (["--rdzv-conf", "join_timeot=3", "--nnodes", 2, "--rdzv-endpoint", "127.0.0.1:1", HELLO], r"join_timeout")]:
            with self.subTest(args=args):
                self.check(["run", *args], 2, pattern)

    def test_no_gpu(self):
        self.check(["run", "--nproc-per-node", "gpu", HELLO], 78, r"--nproc-per-node.*no usable GPU")

    def test_missing_program(self):
        self.check(["run", "/no/such/program"], 127, r"/no/such/program")

    def test_program_without_execute_permission(self):
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(b"\x7fELF....")
            file.flush()
            self.check(["run", file.name], 126, r"not executable|execute permission|cannot be executed")

    def test_too_few_descriptors(self):
        limited = ["bash", "-c", 'ulimit -n 20; exec "$@"', "limited"]
        self.check(["run", "--nproc-per-node", 64, HELLO], 71, r"limit of open files is 20 .* need \d+: raise", prefix=limited)

    def test_log_dir_is_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            self.check(["run", "--log-dir", file.name, "--redirects", 3, HELLO], 73, file.name)

    def test_port_in_use_names_its_owner(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self.check(["run", "--master-port", port, *SLEEPER], 78, rf"{port}.*in use.*{os.getpid()}")
