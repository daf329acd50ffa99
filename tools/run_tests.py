"""The stages of tools/test; see there for the command line."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import bazel_results

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ("asan", "tsan")
STAGES = ("style", "plain", "tidy", *SANITIZERS, "peers")
PEERS = ROOT / ".deps/peers"


def say(text):
    print(text, flush=True)


def libtorch_is_there():
    return bool(os.environ.get("MUSTER_LIBTORCH")) or (ROOT / ".deps/libtorch/torch/lib/libtorch_cpu.so").exists()


def bazel_test(patterns, *options):
    """Runs `bazel test` and returns the Tally of its test cases."""
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        events = Path(folder) / "events.json"
        command = [ROOT / "tools/bazel", "test", "--keep_going", "--curses=no", "--show_progress_rate_limit=60",
                   "--test_summary=terse", "--show_result=0", "--ui_event_filters=-info",
                   f"--build_event_json_file={events}", *options, "--", *patterns]
        exit_code = subprocess.run(command, cwd=ROOT, stderr=subprocess.STDOUT, check=False).returncode
        lines = events.read_text(encoding="utf-8").splitlines() if events.exists() else []
        return bazel_results.read_events(lines, exit_code, skipped_is_failure=libtorch_is_there())


def plain_stage(patterns):
    return bazel_test(patterns, "--test_tag_filters=-peers")


def sanitizer_stage(name, patterns):
    return bazel_test(patterns, f"--config={name}", f"--test_tag_filters={name},-peers", "--build_tests_only")


def peers_stage(patterns):
    if subprocess.run([ROOT / "tools/get_peers"], check=False).returncode:
        return bazel_results.Tally(failed=["tools/get_peers"])
    # The results depend on a folder that Bazel does not see, so they are never taken from its cache.
    return bazel_test(patterns, "--test_tag_filters=peers", "--build_tests_only", f"--test_env=MUSTER_PEERS={PEERS}",
                      "--nocache_test_results")


def tidy_stage():
    """One case per linted file: tools/tidy prints the findings and writes the outcomes."""
    with tempfile.NamedTemporaryFile(prefix="muster-tidy-", mode="r", encoding="utf-8") as outcomes:
        exit_code = subprocess.run([ROOT / "tools/tidy", "--outcomes", outcomes.name], check=False).returncode
        tally = bazel_results.Tally()
        for line in outcomes:
            outcome, name = line.split(maxsplit=1)
            if outcome == "passed":
                tally.passed += 1
            else:
                tally.failed.append(f"clang-tidy {name.strip()}")
    if exit_code and not tally.failed:
        tally.failed.append(f"tools/tidy (exit code {exit_code})")
    return tally


def style_stage():
    """The Python tests of tests/style and tests/tools, one case each."""
    suite = unittest.TestSuite()
    for folder in ("tests/style", "tests/tools"):
        suite.addTest(unittest.TestLoader().discover(ROOT / folder, "*_test.py", top_level_dir=ROOT / folder))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    failed = [case.id() for case, _ in result.failures + result.errors]
    skipped = [case.id() for case, _ in result.skipped]
    return bazel_results.Tally(result.testsRun - len(failed) - len(skipped), failed, skipped)


def run_stage(name, patterns):
    if name == "style":
        return style_stage()
    if name == "tidy":
        return tidy_stage()
    if name == "peers":
        return peers_stage(patterns)
    return plain_stage(patterns) if name == "plain" else sanitizer_stage(name, patterns)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tools/test", add_help=False, allow_abbrev=False)
    parser.add_argument("--stage", action="append", choices=STAGES)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args(arguments)
    # Targets were named: the stages that look at all sources have nothing to do with them.
    every = [name for name in STAGES if name != "peers" and not (options.patterns and name in ("style", "tidy"))]
    options.stages = options.stage or every
    if options.peers and "peers" not in options.stages:
        options.stages.append("peers")
    return options


def main(arguments):
    options = parse(arguments)
    total = bazel_results.Tally()
    for name in options.stages:
        say(f"=== {name}")
        begin = time.monotonic()
        tally = run_stage(name, options.patterns or ["//..."])
        say(f"=== {name}: {tally.summary()} in {time.monotonic() - begin:.0f} s\n")
        total.add(tally)
    for name in total.skipped:
        say(f"SKIPPED {name}")
    for name in total.failed:
        say(f"FAILED {name}")
    if not total.passed and not total.failed:
        total.failed.append("no test ran")
        say("FAILED: no test ran")
    say(total.summary())
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
