"""tools/install puts the tree where it is told, and says in one line why it cannot; Bazel is played by a script."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

BAZEL = """[[ $1 == info ]] && { echo "$ROOT/bazel-bin"; exit; }
echo "${@: -2}" >>"$ROOT/asked"
"""
FILES = {
    "runtime": {"bin/muster": "new", "lib/pkgconfig/muster-worker.pc": "Version: 1.2.3\n",
                "lib/systemd/system/musterd.service": "ExecStart=/usr/bin/musterd --config x\n", "share/doc/muster/LICENSE": "MIT\n"},
    "torch": {"lib/libmuster_torch.a": "archive"},
}
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


class Install(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        for name in ("tools", "bin", "bazel-bin/packaging", ".deps/libtorch/torch/lib"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / ".deps/libtorch/torch/lib/libtorch_cpu.so").touch()
        for name in ("install", "lib.sh"):
            shutil.copy(ROOT / "tools" / name, self.folder / "tools")
        self.command("tools/bazel", BAZEL)
        for part, files in FILES.items():
            with tarfile.open(self.folder / f"bazel-bin/packaging/{part}.tar", "w") as tar:
                for name, text in files.items():
                    info = tarfile.TarInfo(name)
                    info.size, info.mode = len(text), 0o755 if name.startswith("bin/") else 0o644
                    tar.addfile(info, io.BytesIO(text.encode()))

    def command(self, name, body):
        (self.folder / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (self.folder / name).chmod(0o755)

    def run_install(self, *arguments, before=(), **variables):
        environment = {"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "ROOT": str(self.folder), **variables}
        return subprocess.run([*before, self.folder / "tools/install", *arguments], check=False, text=True, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, env=environment)

    def assert_one_line(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_the_tree_stands_below_destdir_and_names_only_the_prefix(self):
        done = self.run_install("--prefix", "/opt/muster", DESTDIR=str(self.folder / "stage"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        tree = self.folder / "stage/opt/muster"
        self.assertTrue(os.access(tree / "bin/muster", os.X_OK))
        self.assertEqual((tree / "lib/systemd/system/musterd.service").read_text(encoding="utf-8"),
                         "ExecStart=/opt/muster/bin/musterd --config x\n")
        self.assertIn("1.2.3", done.stdout)
        listed = (tree / "share/doc/muster/files").read_text(encoding="utf-8").split()
        there = [str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()]
        self.assertEqual(sorted(listed), sorted(there))

    def test_a_file_in_use_is_replaced_and_not_written_over(self):
        (self.folder / "to/bin").mkdir(parents=True)
        old = self.folder / "to/bin/muster"
        old.write_text("old", encoding="utf-8")
        with old.open(encoding="utf-8") as used:
            self.assertEqual(self.run_install("--prefix=to").returncode, 0)
            self.assertEqual(used.read(), "old")
        self.assertEqual(old.read_text(encoding="utf-8"), "new")

    def test_without_torch_no_libtorch_is_needed(self):
        shutil.rmtree(self.folder / ".deps")
        self.assert_one_line(self.run_install("--prefix=to"), 69, "tools/get_libtorch", "--without-torch")
        self.assertEqual(self.run_install("--prefix=to", "--without-torch").returncode, 0)
        self.assertFalse((self.folder / "to/lib/libmuster_torch.a").exists())

    def test_nothing_is_built_where_nothing_can_be_written(self):
        before = AS_NOBODY if os.geteuid() == 0 else ()
        self.assert_one_line(self.run_install("--prefix=/usr/muster-trial", before=before), 77, "/usr/muster-trial", "--prefix")
        (self.folder / "file").touch()
        self.assert_one_line(self.run_install("--prefix=file/to"), 77, "file/to")
        self.assertFalse((self.folder / "asked").exists())

    def test_a_full_disk(self):
        self.command("bin/tar", "echo 'tar: x: Cannot write: No space left on device' >&2; exit 2")
        self.assert_one_line(self.run_install("--prefix=to"), 74, "disk is full", "free in")
        self.command("bin/df", "echo head; echo dev 0 0 0 0% /")
        self.assert_one_line(self.run_install("--prefix=to"), 74, "not enough space")

    def test_a_tool_that_is_missing_and_a_build_that_fails(self):
        self.command("tools/bazel", "echo 'bazel: /usr/bin/bazel is missing: run tools/setup' >&2; exit 69")
        self.assert_one_line(self.run_install("--prefix=to"), 69, "tools/setup")
        self.command("tools/bazel", "exit 1")
        self.assert_one_line(self.run_install("--prefix=to"), 70, "build failed")

    def test_bad_usage(self):
        self.assert_one_line(self.run_install("--prefix"), 2, "--prefix")
        self.assert_one_line(self.run_install("--prefix="), 2, "--prefix")
        self.assert_one_line(self.run_install("--destdir=x"), 2, "--destdir=x", "usage")


if __name__ == "__main__":
    unittest.main()
