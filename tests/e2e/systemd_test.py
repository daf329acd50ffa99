"""The unit of musterd, as systemd-analyze sees it. systemd need not run."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import harness

UNIT = harness.ROOT / "packaging/systemd/musterd.service"
EXPOSURE_MAX = 15  # tenths; systemd calls up to 2.0 OK


class Unit(unittest.TestCase):
    def analyze(self, *words):
        done = subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def test_it_has_no_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder, UNIT.name)
            unit.write_text(UNIT.read_text().replace("/usr/bin/musterd", str(harness.MUSTERD.resolve())))
            self.assertEqual(self.analyze("verify", "--man=no", unit), "")

    def test_it_is_shut_in(self):
        self.analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", UNIT)


if __name__ == "__main__":
    unittest.main()
