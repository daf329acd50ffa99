"""muster check where LibTorch is installed: the programs lie in one folder, as tools/install puts them."""

import shutil
import tempfile
import unittest
from pathlib import Path

import harness
from harness import ROOT, Case

PROGRAMS = ("launcher/muster", "launcher/muster-check", "launcher/muster-cluster", "check/muster-check-torch")


class WithLibTorch(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in PROGRAMS:
            shutil.copy(ROOT / name, folder.name)
        self.muster = Path(folder.name, "muster")

    def check(self, *args, program=None):
        return self.start("check", *args, program=program or self.muster)

    def check_two(self, *each):
        """Two nodes of one job; each: its muster, and what options are its own."""
        options = ["--nnodes", 2, "--rdzv-endpoint", f"127.0.0.1:{harness.free_port()}"]
        jobs = [self.check(*options, "--node-id", name, *words, program=program) for name, (program, *words) in zip("ab", each)]
        return [job.wait() for job in jobs], jobs

    def test_its_all_reduce_is_timed_too(self):
        job = self.check("--nproc-per-node", 2)
        self.assertEqual(job.wait(), 0, job.text())
        self.assertRegex(job.text("out"), r"(?m)^1 +0 .* gloo +0 +\S+ +[2-9]\.\d+\.\S+ ")
        self.assertRegex(job.text("out"), r"(?m)^LibTorch, gloo +2 +[0-9.]+ [um]?s +[0-9.]+ GB/s$")
        self.assertRegex(job.text("out"), r"(?m)^nothing found$")
        self.assert_nothing_left(job)

    def test_a_node_that_has_none_is_found(self):
        without = self.muster.parent / "without"
        without.mkdir()
        for name in PROGRAMS[:-1]:
            shutil.copy(ROOT / name, without)
        codes, jobs = self.check_two([self.muster], [without / "muster"])
        self.assertEqual(codes, [1, 1], "\n".join(job.text() for job in jobs))
        self.assertRegex(jobs[0].text("out"), r"problem  LibTorch differs: none on node 1 \(\S+\); \S+ on node 0 \(\S+\)\n"
                                              " +-> use the same one on all nodes")
        self.assertNotIn("LibTorch, gloo", jobs[0].text("out"))

    def test_a_node_that_was_told_not_to_look_is_a_remark(self):
        codes, jobs = self.check_two([self.muster, "--torch", "yes"], [self.muster, "--torch", "no"])
        self.assertEqual(codes, [0, 0], "\n".join(job.text() for job in jobs))
        self.assertRegex(jobs[0].text("out"), r"\n1 remark\nremark   node 1 \(\S+\): --torch no: its LibTorch is not looked at, ")
        self.assertNotIn("LibTorch, gloo", jobs[0].text("out"))

    def test_one_whose_libtorch_is_gone_is_done_without(self):
        program = self.muster.with_name("muster-check-torch")
        program.unlink()
        program.write_text("#!/bin/sh\necho 'error while loading shared libraries' >&2; exit 127\n")
        program.chmod(0o755)
        job = self.check("--nproc-per-node", 2)
        self.assertEqual(job.wait(), 0, job.text())
        self.assert_one_line(job, "muster-check-torch cannot be loaded .*: LibTorch is not checked")
        self.assertRegex(job.text("out"), r"(?m)^nothing found$")

    def test_what_is_not_installed_is_said(self):
        self.muster.with_name("muster-check-torch").unlink()
        job = self.check("--torch", "yes")
        self.assertEqual(job.wait(), 127)
        self.assert_one_line(job, "--torch yes needs .*/muster-check-torch, which is not there: install it")


if __name__ == "__main__":
    unittest.main()
