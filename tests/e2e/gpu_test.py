"""What tests/gpu/run.sh does where there is a GPU; skipped, with its reason, where there is none."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import ROOT
from mnist_test import write_pictures

SCRIPT = ROOT / "tests/gpu/run.sh"


def run(*arguments):
    return subprocess.run([SCRIPT, *map(str, arguments)], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)


class Gpu(unittest.TestCase):
    def test_the_sdk_the_examples_and_a_step_on_a_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            write_pictures(Path(folder), "train", 1600, 1)
            write_pictures(Path(folder), "t10k", 100, 2)
            done = run("--built", ROOT, "--data", folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        last = done.stdout.splitlines()[-1]
        if last.startswith("skipped: "):
            self.skipTest(last.removeprefix("skipped: "))
        self.assertRegex(last, r"^[1-9]\d* passed, 0 failed")

    def test_what_it_does_not_understand_is_one_line(self):
        for arguments, expected in ((["--gpus", 2], "unknown argument '--gpus'"), (["--built"], "--built needs a folder"),
                                    (["--built", ROOT], "--built needs --data"), (["--data", "/nowhere"], "'/nowhere' is no folder")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(expected, done.stderr)
