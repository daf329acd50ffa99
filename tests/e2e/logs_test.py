"""Output of workers under --tee and --redirects, with consoles and disks that do not take it."""

import json
import os
import pty
import re
import subprocess
import tempfile
import time
from pathlib import Path

import harness
from harness import Case, bash


class Logs(Case):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def log(self, rank, name="stdout.log", folder=None):
        run, = (folder or self.folder).glob("*/attempt_0")
        return run / str(rank) / name

    def test_rotation_keeps_the_latest_lines_whole(self):
        for stream in ("--tee", "--redirects"):
            with self.subTest(stream=stream), tempfile.TemporaryDirectory() as folder:
                _, code = self.run_job("--log-dir", folder, stream, 1, "--log-max-bytes", "1K", "--log-max-files", 3,
                                       *bash("for i in {1000..1999}; do echo line $i; done"))
                self.assertEqual(code, 0)
                current = self.log(0, folder=Path(folder))
                files = [current.with_name(current.name + suffix) for suffix in (".2", ".1", "")]
                self.assertEqual(sorted(p.name for p in current.parent.glob("stdout.log*")), sorted(p.name for p in files))
                lines = "".join(file.read_text() for file in files).splitlines()
                self.assertEqual(lines, [f"line {i}" for i in range(2000 - len(lines), 2000)])
                self.assertTrue(all(file.stat().st_size <= 1024 for file in files))

    def test_the_report_quotes_a_rotated_stream(self):
        job, code = self.run_job("--log-dir", self.folder, "-r", 3, "--log-max-bytes", 100,
                                 *bash("for i in {1..50}; do echo line $i >&2; done; echo BOOM >&2; exit 3"))
        self.assertEqual(code, 3)
        self.assertIn("| BOOM", job.text("err"))

    def test_a_full_disk_costs_the_file_and_nothing_else(self):
        # A file system of its own, that nobody else sees.
        small = ["unshare", "-m", "bash", "-c", f"mount -t tmpfs -o size=64k none {self.folder} && exec \"$@\"", "bash"]
        if subprocess.run([*small, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("needs a file system of its own")
        report = Path(self.enterContext(tempfile.TemporaryDirectory()), "report.json")
        worker = bash("for i in {10001..30000}; do echo $RANK line $i; done")
        job, code = self.run_job("--log-dir", self.folder, "--tee", 1, "--nproc-per-node", 2, "--report-file", report, *worker,
                                 prefix=small)
        self.assertEqual(code, 0)
        lines = [f"[default{rank}]:{rank} line {i}" for rank in range(2) for i in range(10001, 30001)]
        self.assertEqual(sorted(job.text("out").splitlines()), lines)
        # One warning, whatever the number of files, and one count.
        self.assertEqual(len(job.text("err").splitlines()), 2, job.text("err"))
        self.assertRegex(job.text("err"), r"No space left on device; output is lost there.*\n.*\d+ bytes are missing in 2 log files")
        lost = int(re.search(r"(\d+) bytes are missing", job.text("err"))[1])
        self.assertEqual(json.loads(report.read_text())["log_bytes_lost"], lost)
        self.assertGreaterEqual(lost, 2 * 20000 * len("0 line 10001\n") - 64 * 1024)

    def test_a_console_that_nobody_reads_holds_up_its_writers_only_and_costs_no_memory(self):
        mark = f"MUSTER_TEST_MARK={os.urandom(8).hex()}"
        name, value = mark.split("=")
        written = self.folder / "written"
        os.mkfifo(written)
        script = ('if [ $RANK = 0 ]; then yes "$(printf "%0100d" 0)" | head -c 100000000; '
                  'else for i in {1..20000}; do echo line $i; done; echo > "$0"; exec sleep 1000; fi')
        read_end, write_end = os.pipe()
        process = subprocess.Popen(
            [harness.MUSTER, "run", "--nproc-per-node", "2", "--log-dir", self.folder / "logs", "--tee", "0:1",
             "--redirects", "1:1", *bash(script, written)],
            stdin=subprocess.DEVNULL, stdout=write_end, stderr=subprocess.DEVNULL, env=os.environ | {name: value})
        os.close(write_end)
        try:
            written.read_text()  # comes when the other worker has written all that it has to
            self.assertTrue(self.log(1, folder=self.folder / "logs").read_text().endswith("line 20000\n"))
            status = Path(f"/proc/{process.pid}/status").read_text()
            self.assertLess(int(status.split("VmHWM:")[1].split()[0]), 40 * 1024, "KiB")
        finally:
            process.terminate()
            os.close(read_end)
            self.assertEqual(process.wait(harness.PATIENCE), 143)
            self.assertEqual(harness.wait_gone(harness.pids_with(mark), time.monotonic() + harness.PATIENCE), [])

    def test_progress_bars_appear_while_they_are_drawn(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen(
            [harness.MUSTER, "run", "--tee", "2", *bash(r"printf '\r10%%\r20%%\r' >&2; read; printf '\r100%%\n' >&2")],
            stdin=subprocess.PIPE, stdout=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        while b"20%\r" not in seen:
            seen += os.read(ours, 1000)
        self.assertEqual(seen, b"[default0]:10%\r[default0]:20%\r")
        process.communicate(b"\n", timeout=harness.PATIENCE)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(os.read(ours, 1000), b"[default0]:100%\r\n")

    def test_the_prefix_template_of_the_environment_counts_and_the_option_wins(self):
        env = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "<${rank}> "}
        job, _ = self.run_job("--tee", 3, *bash("echo hi"), env=env)
        self.assertEqual(job.text("out"), "<0> hi")
        job, _ = self.run_job("--tee", 3, "--log-line-prefix-template", "<${local_rank}>-", *bash("echo hi"), env=env)
        self.assertEqual(job.text("out"), "<0>-hi")
