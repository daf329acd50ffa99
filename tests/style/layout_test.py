"""How the sources are laid out: sizes, formatting, and nothing that belongs to one machine."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sources  # noqa: E402  (the path is set above)

HEADER_LINES_MAX = 150
SOURCE_LINES_MAX = 400
COLUMNS_MAX = 100

# Sources that may have up to 600 lines, each with the reason.
LONG_SOURCES = {
    "tests/conformance/harness.py": "comes from outside: a copy of a suite that other launchers are measured with, too",
    "tests/worker_sdk/ddp_test.cc": "each file that includes LibTorch costs 20 s to compile",
}


def is_script(name):
    return name.suffix == "" and sources.text(name).startswith("#!")


class Layout(unittest.TestCase):
    maxDiff = None

    def assert_none(self, findings, what):
        if findings:
            self.fail(f"{what}:\n" + "\n".join(map(str, findings)))

    def test_headers_are_short(self):
        findings = [f"{name}: {lines} lines" for name in sources.with_suffix(".h")
                    if (lines := sources.text(name).count("\n")) > HEADER_LINES_MAX]
        self.assert_none(findings, f"headers of more than {HEADER_LINES_MAX} lines")

    def test_sources_are_short(self):
        findings = [f"{name}: {lines} lines" for name in sources.with_suffix(".cc", ".py", ".proto")
                    if (lines := sources.text(name).count("\n")) > (600 if str(name) in LONG_SOURCES else SOURCE_LINES_MAX)]
        self.assert_none(findings, f"sources of more than {SOURCE_LINES_MAX} lines")

    def test_lines_of_cpp_are_short(self):
        findings = [f"{name}:{number}: {len(line)} columns"
                    for name in sources.with_suffix(".cc", ".h")
                    for number, line in enumerate(sources.text(name).splitlines(), 1) if len(line) > COLUMNS_MAX]
        self.assert_none(findings, f"lines of more than {COLUMNS_MAX} columns")

    def test_cpp_is_formatted(self):
        names = sources.with_suffix(".cc", ".h")
        done = subprocess.run(["/usr/bin/clang-format", "--dry-run", "-Werror", *map(str, names)], cwd=ROOT, check=False,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True)
        files = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "error:" in line})
        self.assert_none(files, "not formatted (clang-format -i FILE)")

    def test_include_guards_are_named_after_the_path(self):
        findings = []
        for name in sources.with_suffix(".h"):
            text = sources.text(name)
            # Public headers are included as <muster/...>.
            path = str(name).split("include/muster/")[-1]
            guard = "MUSTER_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
            if f"#ifndef {guard}\n#define {guard}\n" not in text and "third_party" not in str(name):
                findings.append(f"{name}: expected {guard}")
        self.assert_none(findings, "include guards")

    def test_text_files_end_with_one_newline_and_have_no_trailing_blanks(self):
        findings = []
        for name in sources.files():
            content = (ROOT / name).read_bytes()
            if b"\0" in content or not content:
                continue
            if not content.endswith(b"\n") or content.endswith(b"\n\n"):
                findings.append(f"{name}: the end")
            if name.suffix in (".cc", ".h", ".py", ".proto", ".bzl") and re.search(rb"[ \t]+\n", content):
                findings.append(f"{name}: trailing blanks")
        self.assert_none(findings, "white space")

    def test_nothing_names_this_machine(self):
        # The folder of this checkout and people's homes.
        here = re.escape(str(ROOT))
        machine = re.compile(rf"{here}(?![\w.-])|/(root|home/\w+)/[.\w]")
        findings = [f"{name}:{number}: {line.strip()[:80]}"
                    for name in sources.files() if b"\0" not in (ROOT / name).read_bytes()
                    for number, line in enumerate(sources.text(name).splitlines(), 1) if machine.search(line)]
        self.assert_none(findings, "paths of one machine")

    def test_commands_are_executable(self):
        findings = [name for name in sources.files() if is_script(name) and not (ROOT / name).stat().st_mode & 0o111]
        self.assert_none(findings, "scripts without the executable bit")


if __name__ == "__main__":
    unittest.main()
