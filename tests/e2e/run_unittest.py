"""Runs one file of Python tests under Bazel: `run_unittest.py FILE_test.py`, and writes the outcome of each case to
$XML_OUTPUT_FILE, so that cases are counted and not files."""

import importlib.util
import os
import sys
import unittest
from pathlib import Path
from xml.sax.saxutils import quoteattr


class Recorder(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []

    def _record(self, test, outcome, text=""):
        self.cases.append((test.id(), outcome, text))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._record(test, "success")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._record(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._record(test, "error", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._record(test, "skipped", reason)


def write_xml(path, cases):
    with open(path, "w", encoding="utf-8") as file:
        file.write('<?xml version="1.0"?>\n<testsuites><testsuite name="python">\n')
        for name, outcome, text in cases:
            classname, _, method = name.rpartition(".")
            file.write(f"<testcase classname={quoteattr(classname)} name={quoteattr(method)}>")
            if outcome != "success":
                file.write(f"<{outcome} message={quoteattr(text[-2000:])}/>")
            file.write("</testcase>\n")
        file.write("</testsuite></testsuites>\n")


def main(path):
    sys.path.insert(0, str(Path(path).parent))
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    suite = unittest.TestLoader().loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Recorder).run(suite)
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], result.cases)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
