"""Python's @record with the real torch: muster reads its error files, and torchrun reads those of muster."""

import os
import tempfile
import unittest
from pathlib import Path

import harness
from harness import Case

PEERS = Path(os.environ.get("MUSTER_PEERS", "/nonexistent"))
SCRIPT = """\
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    raise ValueError("bad\\nshape")

main()
"""


@unittest.skipUnless((PEERS / "bin/torchrun").exists(), "no torchrun in $MUSTER_PEERS (tools/get_peers)")
class Record(Case):
    environment = {"PATH": f"{PEERS / 'bin'}:{os.environ['PATH']}"}

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.script = Path(folder, "script.py")
        self.script.write_text(SCRIPT)

    def test_the_report_quotes_what_record_has_written(self):
        job = self.start("run", self.script, env=self.environment)
        self.assertEqual(job.wait(), 1)
        self.assertRegex(job.text("err"), r"Root cause: rank 0 .*exit code 1\n(.*\n)*  message     ValueError: bad\n +shape\n")

    def test_torchrun_around_muster_shows_the_root_cause(self):
        job = self.start("--no-python", harness.MUSTER, "run", self.script, env=self.environment,
                         program=PEERS / "bin/torchrun")
        self.assertEqual(job.wait(), 1)
        self.assertRegex(job.text("err"), r"traceback : Traceback (.*\n)*.*raise ValueError")
