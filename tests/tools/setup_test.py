"""Set-up does nothing where all is there, and says in one line why it cannot go on."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Stand-ins for Debian's commands, by name.
INSTALLED = 'for name in "$@"; do case "$name" in -*|*{*) ;; *) echo "installed $name";; esac; done'
NOTHING_INSTALLED = "exit 1"


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o777)
        (self.folder / "tools").mkdir()
        for name in ("setup", "lib.sh", "debian-packages.txt"):
            shutil.copy(ROOT / "tools" / name, self.folder / "tools")
        for name in ("get_libtorch", "get_digits", "get_clang_tidy"):
            self.command(self.folder / "tools" / name, f"echo {name} >>{self.folder}/done")
        (self.folder / "bin").mkdir()

    def command(self, path, body):
        path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run_setup(self, *arguments, prefix=(), **commands):
        """Runs set-up with stand-ins for commands: name (with _ for -) = body."""
        for name, body in commands.items():
            self.command(self.folder / "bin" / name.replace("_", "-"), body)
        environment = {"PATH": f"{self.folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(self.folder)}
        return subprocess.run([*prefix, self.folder / "tools/setup", *arguments], check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, env=environment)

    def as_root(self, apt_get):
        """Runs set-up on a machine without any package, as root."""
        if os.geteuid() != 0:
            self.skipTest("not root")
        return self.run_setup(dpkg_query=NOTHING_INSTALLED, apt_get=apt_get)

    def assert_one_line(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def steps(self):
        path = self.folder / "done"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def test_nothing_is_installed_where_all_is_there(self):
        done = self.run_setup(dpkg_query=INSTALLED, apt_get="echo called; exit 1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.steps(), ["get_libtorch", "get_digits", "get_clang_tidy"])

    def test_libtorch_can_be_left_out(self):
        self.assertEqual(self.run_setup("--without-torch", dpkg_query=INSTALLED).returncode, 0)
        self.assertEqual(self.steps(), ["get_digits", "get_clang_tidy"])

    def test_an_unknown_option_is_refused(self):
        self.assert_one_line(self.run_setup("--fast"), 2, "--fast")

    def test_only_missing_packages_are_installed(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        most = INSTALLED.replace('-*|*{*)', '-*|*{*|clang|git)')
        done = self.run_setup(dpkg_query=most, apt_get=f'echo "$*" >>{self.folder}/apt')
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = (self.folder / "apt").read_text(encoding="utf-8").splitlines()
        self.assertTrue(calls[-1].endswith("install clang git"), calls)

    def test_no_registry(self):
        done = self.as_root("echo 'E: Failed to fetch, Temporary failure resolving'; exit 100")
        self.assert_one_line(done, 69, "Failed to fetch", "network")

    def test_full_disk(self):
        done = self.as_root("[[ $* == *update* ]] || { echo 'E: You don'\"'\"'t have enough free space in /var'; exit 100; }")
        self.assert_one_line(done, 74, "disk is full")

    def test_neither_root_nor_sudo(self):
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
        done = self.run_setup(prefix=prefix, dpkg_query=NOTHING_INSTALLED, sudo="exit 1")
        self.assert_one_line(done, 77, "apt-get install", "libgrpc++-dev")


class GetDigits(unittest.TestCase):
    def test_no_registry(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = Path(folder) / "tools"
            tools.mkdir()
            for name in ("get_digits", "lib.sh", "digits_to_idx.py"):
                shutil.copy(ROOT / "tools" / name, tools)
            environment = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "TMPDIR": folder}
            done = subprocess.run([tools / "get_digits"], check=False, text=True, stdin=subprocess.DEVNULL,
                                  capture_output=True, env=environment)
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertEqual(os.listdir(Path(folder) / ".deps"), [])


if __name__ == "__main__":
    unittest.main()
