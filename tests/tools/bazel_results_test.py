"""What tools/test counts: test cases where there are any, and everything that did not run although it should have."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import bazel_results  # noqa: E402  (the path is set above)

CASES = """<testsuites><testsuite name="A">
<testcase name="Good" classname="A" status="run" result="completed"/>
<testcase name="Bad" classname="A" status="run"><failure message="x"/></testcase>
<testcase name="Skip" classname="A" status="run" result="skipped"><skipped message="y"/></testcase>
<testcase name="DISABLED_X" classname="A" status="notrun"/>
</testsuite></testsuites>"""


def result(label, status, xml_path=None):
    outputs = [{"name": "test.log", "uri": "file:///nowhere"}]
    if xml_path:
        outputs.append({"name": "test.xml", "uri": Path(xml_path).as_uri()})
    return json.dumps({"id": {"testResult": {"label": label}},
                       "testResult": {"status": status, "testActionOutput": outputs}})


def configured(label, kind):
    return json.dumps({"id": {"targetConfigured": {"label": label}}, "configured": {"targetKind": kind}})


def completed(label, **event):
    return json.dumps({"id": {"targetCompleted": {"label": label}}, **event})


class BazelResults(unittest.TestCase):
    def test_test_cases_are_counted(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as xml:
            xml.write(CASES)
            xml.flush()
            tally = bazel_results.read_events([result("//t:a_test", "FAILED", xml.name)], 3)
        self.assertEqual(tally.passed, 1)
        self.assertEqual(tally.failed, ["//t:a_test A.Bad"])
        self.assertEqual(tally.skipped, ["//t:a_test A.Skip", "//t:a_test A.DISABLED_X"])
        self.assertEqual(tally.summary(), "1 passed, 1 failed, 2 skipped")

    def test_a_target_without_test_cases_counts_as_one(self):
        tally = bazel_results.read_events([result("//t:a_test", "PASSED"), result("//t:b_test", "TIMEOUT")], 3)
        self.assertEqual(tally.passed, 1)
        self.assertEqual(tally.failed, ["//t:b_test (timeout)"])

    def test_what_does_not_build_has_failed(self):
        tally = bazel_results.read_events([completed("//t:lib", completed={"failureDetail": {}}),
                                           completed("//t:good", completed={"success": True})], 1)
        self.assertEqual(tally.failed, ["//t:lib (does not build)"])

    def test_skipped_tests_are_failures_where_nothing_excuses_them(self):
        events = [configured("//t:torch_test", "cc_test rule"), configured("//t:torch", "cc_library rule"),
                  completed("//t:torch_test", aborted={"reason": "SKIPPED"}),
                  completed("//t:torch", aborted={"reason": "SKIPPED"})]
        self.assertEqual(bazel_results.read_events(events, 0).skipped, ["//t:torch_test (skipped by Bazel)"])
        strict = bazel_results.read_events(events, 0, skipped_is_failure=True)
        self.assertEqual(strict.failed, ["//t:torch_test (skipped by Bazel)"])

    def test_a_bazel_that_failed_without_a_word_has_failed(self):
        self.assertEqual(bazel_results.read_events([], 37).failed, ["bazel (exit code 37)"])
        self.assertEqual(bazel_results.read_events([], 4).summary(), "0 passed, 0 failed")


if __name__ == "__main__":
    unittest.main()
