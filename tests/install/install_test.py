"""The installed tree serves projects that know nothing of this one: found by CMake and by pkg-config, built, and run on two
ranks under the installed muster; and it can be moved."""

import difflib
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

RUNFILES = Path.cwd()
HERE = RUNFILES / "tests/install"
EMBEDDING = RUNFILES / "examples/embedding"
DOCUMENT = RUNFILES / "docs/EMBEDDING.md"
TIMEOUT_S = 600  # Compiling against LibTorch on a busy machine.
FOREIGN = re.compile(r"grpc|protobuf|absl|spdlog|(?<!c10::)\bfmt::", re.IGNORECASE)

root = prefix = None


def setUpModule():
    """Unpacks the tree and moves it, so that every test shows that it does not know where it was."""
    global root, prefix
    root = Path(tempfile.mkdtemp(prefix="muster-install-"))
    for part in ("runtime", "torch", "nccl"):
        subprocess.run(["tar", "--extract", "--one-top-level=first", "--file", RUNFILES / f"packaging/{part}.tar"], cwd=root,
                       check=True)
    prefix = root / "moved"
    (root / "first").rename(prefix)


def tearDownModule():
    shutil.rmtree(root)


def clean_environment(**more):
    """Whoever runs the tests may be a worker itself, or build with flags of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    return {**kept, "HOME": str(root), "OMP_NUM_THREADS": "1", **more}


def run(*command, cwd=None, **variables):
    return subprocess.run([str(word) for word in command], cwd=cwd, env=clean_environment(**variables), check=False, text=True,
                          timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def on_two_ranks(*command):
    return run(prefix / "bin/muster", "run", "--standalone", "--nproc-per-node", 2, *command)


class Installed(unittest.TestCase):
    def expect(self, done, *texts, code=0):
        self.assertEqual(done.returncode, code, done.stdout)
        for text in texts:
            self.assertIn(text, done.stdout)

    def build_with_cmake(self, source, *options):
        build = Path(tempfile.mkdtemp(dir=root))
        self.expect(run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DSOURCES={HERE}", *options))
        self.expect(run("cmake", "--build", build, "--parallel", 2))
        return build

    def configure(self, *options, find="find_package(muster CONFIG REQUIRED COMPONENTS torch)"):
        source = Path(tempfile.mkdtemp(dir=root))
        text = f"cmake_minimum_required(VERSION 3.18)\nproject(p CXX)\n{find}\n"
        (source / "CMakeLists.txt").write_text(text, encoding="utf-8")
        done = run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
        return done.returncode, " ".join(done.stdout.split())  # CMake breaks lines


class Tree(Installed):
    def test_everything_is_where_its_users_look(self):
        for name in ("bin/muster", "bin/muster-check", "bin/muster-check-torch", "bin/muster-cluster", "bin/musterd", "lib/libmuster_worker.so", "lib/libmuster_worker.a",
                     "lib/libmuster_torch.so", "lib/libmuster_torch.a", "lib/libmuster_nccl.so", "include/muster/torch.h",
                     "include/muster/worker.h", "include/muster/worker_c.h", "lib/pkgconfig/muster-torch.pc",
                     "share/man/man1/muster-run.1", "share/man/man1/muster-check.1", "share/man/man8/musterd.8", "lib/systemd/system/musterd.service",
                     "share/bash-completion/completions/muster", "share/zsh/site-functions/_muster",
                     "share/fish/vendor_completions.d/muster.fish", "share/doc/muster/LICENSE"):
            self.assertTrue((prefix / name).exists(), name)

    def test_no_placeholder_and_no_old_place_is_left_in_a_text(self):
        for path in prefix.rglob("*"):
            if path.is_file() and path.suffix in (".pc", ".cmake", ".h", ".service"):
                self.assertNotRegex(path.read_text(encoding="utf-8"), r"@[A-Z_]+@|bazel-out", path)

    def test_the_programs_run_from_here(self):
        self.expect(run(prefix / "bin/muster", "version"), "muster")
        self.expect(run(prefix / "bin/muster-cluster", "--version"))
        self.expect(run(prefix / "bin/muster", "check", "--nproc-per-node", 2), "LibTorch, gloo", "nothing found")
        self.expect(run(prefix / "bin/musterd", "--version"))


class Symbols(Installed):
    def exported(self, library):
        done = run("nm", "--dynamic", "--defined-only", prefix / "lib" / library)
        return [line.split()[-1] for line in done.stdout.splitlines()]

    def test_c_functions_have_a_version_that_stays_and_nothing_else_is_exported(self):
        symbols = self.exported("libmuster_worker.so")
        self.assertIn("muster_worker_open@@MUSTER_WORKER_1", symbols)
        for symbol in symbols + self.exported("libmuster_torch.so"):
            self.assertRegex(symbol, r"@@MUSTER_WORKER_1$|@@MUSTER_CXX_\d+\.\d+$|^MUSTER_\w+(\.\d+)?(@@.*)?$")

    def test_no_grpc_and_no_protobuf_is_in_the_sdk_or_needed_by_it(self):
        for library in ("libmuster_worker.so", "libmuster_torch.so", "libmuster_worker.a", "libmuster_torch.a"):
            symbols = run("nm", "--demangle", prefix / "lib" / library)
            self.assertEqual(symbols.returncode, 0, symbols.stdout)
            self.assertEqual([line for line in symbols.stdout.splitlines() if FOREIGN.search(line)], [], library)
        for library in ("libmuster_worker.so", "libmuster_torch.so"):
            dynamic = run("readelf", "--dynamic", "--wide", prefix / "lib" / library).stdout
            needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", dynamic))
            self.assertLessEqual(needed, {"libmuster_worker", "libtorch_cpu", "libc10", "libstdc++", "libm", "libgcc_s", "libc",
                                          "ld-linux-x86-64"})

    def test_no_library_knows_a_folder_of_the_machine_that_built_it(self):
        for library in ("libmuster_worker.so", "libmuster_torch.so"):
            dynamic = run("readelf", "--dynamic", "--wide", prefix / "lib" / library).stdout
            self.assertLessEqual(set(re.findall(r"R(?:UN)?PATH.*\[(.*?)\]", dynamic)), {"$ORIGIN"})


class CMake(Installed):
    def test_a_c_program_without_libtorch(self):
        for static in ("OFF", "ON"):
            build = self.build_with_cmake(HERE / "cmake", f"-Dmuster_USE_STATIC_LIBS={static}")
            self.expect(on_two_ranks(build / "report"), "rank 0 of 2, agent there", "rank 1 of 2, agent there")
            self.expect(run(build / "report"), "rank 0 of 1, agent absent")
            self.expect(run(build / "report", RANK="0"), "WORLD_SIZE", code=78)
            linked = run("ldd", build / "report").stdout
            self.assertEqual("libmuster_worker.so.1" in linked, static == "OFF")
            self.assertNotIn("torch", linked)
            self.assertIn("libmuster_nccl.so", run("readelf", "--dynamic", build / "with_nccl").stdout)

    def test_a_trainer_before_and_after(self):
        build = self.build_with_cmake(EMBEDDING)
        self.expect(run(build / "before"), "of 500 points told apart")
        done = on_two_ranks(build / "trainer")
        self.expect(done, "of 500 points told apart")
        self.assertEqual(done.stdout.count("told apart"), 1, done.stdout)
        self.expect(run(build / "trainer"), "of 500 points told apart")
        linked = run("ldd", build / "trainer").stdout
        self.assertIn(f"{prefix}/lib/libmuster_torch.so.0", linked)
        self.assertNotRegex(linked, FOREIGN)
        self.assertNotIn("not found", linked)

    def test_what_is_missing_is_one_sentence(self):
        code, said = self.configure("-Dmuster_LIBTORCH=/nowhere")
        self.assertNotEqual(code, 0)
        self.assertIn("muster's component torch: no LibTorch found: set muster_LIBTORCH", said)
        code, said = self.configure(find="find_package(muster CONFIG REQUIRED COMPONENTS torhc)")
        self.assertNotEqual(code, 0)
        self.assertIn("muster's component torhc: there are worker, torch and nccl", said)
        code, said = self.configure(find="find_package(muster 99 CONFIG REQUIRED)")
        self.assertNotEqual(code, 0)
        self.assertIn("compatible with requested version \"99\"", said)

    def test_a_libtorch_of_another_version_is_refused(self):
        other = root / "other/torch"
        for name, text in (("lib/libtorch_cpu.so", ""), ("include/ATen/ATen.h", ""),
                           ("include/torch/csrc/api/include/torch/version.h",
                            "".join(f"#define TORCH_VERSION_{part} {number}\n"
                                    for part, number in (("MAJOR", 2), ("MINOR", 1), ("PATCH", 2))))):
            (other / name).parent.mkdir(parents=True)
            (other / name).write_text(text, encoding="utf-8")
        code, said = self.configure(f"-Dmuster_LIBTORCH={root}/other")
        self.assertNotEqual(code, 0)
        self.assertIn("is LibTorch 2.1.2, and this muster was built for", said)
        code, said = self.configure(f"-Dmuster_LIBTORCH={other}", find="find_package(muster CONFIG REQUIRED)")
        self.assertEqual(code, 0, said)  # for programs without LibTorch it does not matter


class PkgConfig(Installed):
    def test_plain_make(self):
        build = Path(tempfile.mkdtemp(dir=root))
        self.expect(run("make", "-f", HERE / "make/Makefile", f"SOURCES={HERE}", "-j2", cwd=build,
                        PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")))
        self.expect(on_two_ranks(build / "report"), "rank 1 of 2, agent there")
        self.expect(on_two_ranks(build / "sum"), "rank 0: the sum over 2 ranks is 3", "rank 1: the sum over 2 ranks is 3")
        self.assertNotIn("libmuster", run("ldd", build / "sum").stdout)


class Document(Installed):
    def blocks(self, language):
        return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    def test_the_difference_that_it_shows_is_the_one_of_the_example(self):
        before, after = ((EMBEDDING / name).read_text(encoding="utf-8").splitlines() for name in ("before.cc", "trainer.cc"))
        lines = [line for line in difflib.unified_diff(before, after, n=0, lineterm="")][2:]
        changes = [line for line in lines if not line.startswith("@@")]
        self.assertLess(len(changes), 15)
        shown = [line for line in self.blocks("diff")[0].splitlines() if line.startswith(("+", "-"))]
        self.assertEqual(shown, changes)

    def test_its_ten_lines_of_python_work(self):
        program = root / "ctypes_worker.py"
        program.write_text(self.blocks("python")[0].replace("libmuster_worker.so.1", f"{prefix}/lib/libmuster_worker.so.1"),
                           encoding="utf-8")
        self.expect(on_two_ranks(program), "rank 0 of 2", "rank 1 of 2")


if __name__ == "__main__":
    unittest.main()
