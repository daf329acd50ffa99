"""Reads what a `bazel test` did: its build event file (--build_event_json_file) and the test.xml files named there."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from urllib.parse import unquote, urlparse


@dataclass
class Tally:
    """Outcomes by name. What failed or was skipped is kept by name, what passed only counted."""

    passed: int = 0
    failed: list = field(default_factory=list)
    skipped: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def summary(self):
        """'N passed, N failed', and ', N skipped' where some were."""
        text = f"{self.passed} passed, {len(self.failed)} failed"
        return text + (f", {len(self.skipped)} skipped" if self.skipped else "")


def cases_in(xml_text, label):
    """The Tally of one test.xml; an empty one where it cannot be read, as after a crash."""
    tally = Tally()
    try:
        root = ElementTree.fromstring(xml_text)
    except ElementTree.ParseError:
        return tally
    for case in root.iter("testcase"):
        name = " ".join([label, ".".join(filter(None, [case.get("classname"), case.get("name")]))])
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed.append(name)
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            tally.skipped.append(name)
        else:
            tally.passed += 1
    return tally


def _read(uri):
    try:
        with open(unquote(urlparse(uri).path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _xml_of(result):
    return "".join(_read(output["uri"]) for output in result.get("testActionOutput", [])
                   if output.get("name") == "test.xml" and "uri" in output)


def _tally_of_test(label, result):
    """One run of one test target. Without usable test cases the target itself counts as one."""
    passed = result.get("status") in ("PASSED", "FLAKY")
    tally = cases_in(_xml_of(result), label)
    if passed and not (tally.passed or tally.failed or tally.skipped):
        tally.passed = 1
    if not passed and not tally.failed:
        tally.failed.append(f"{label} ({result.get('status', 'no status').lower()})")
    return tally


def read_events(lines, exit_code, skipped_is_failure=False):
    """The Tally of one `bazel test`.

    lines: the build event file's lines. exit_code: Bazel's. skipped_is_failure: what was skipped because a platform or
    library is missing counts as failed (the caller knows that it is there)."""
    tally, broken, skipped, kinds = Tally(), set(), set(), {}
    for line in lines:
        event = json.loads(line)
        identity = event.get("id", {})
        if "testResult" in event:
            tally.add(_tally_of_test(identity["testResult"]["label"], event["testResult"]))
        elif "targetConfigured" in identity:
            kinds[identity["targetConfigured"]["label"]] = event.get("configured", {}).get("targetKind", "")
        elif "targetCompleted" in identity:
            label = identity["targetCompleted"]["label"]
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                skipped.add(label)
            elif not event.get("completed", {}).get("success"):
                broken.add(label)
    tally.failed += [f"{label} (does not build)" for label in sorted(broken)]
    skipped_tests = [f"{label} (skipped by Bazel)" for label in sorted(skipped)
                     if kinds.get(label, "").endswith("_test rule")]
    (tally.failed if skipped_is_failure else tally.skipped).extend(skipped_tests)
    # 4: no test matches the filters, which is nothing wrong.
    if exit_code not in (0, 4) and not tally.failed:
        tally.failed.append(f"bazel (exit code {exit_code})")
    return tally
