#!/usr/bin/env python3
"""Run the torchrun conformance suite against a launcher.

    conformance.py --launcher "bazel-bin/launcher/muster run"
    conformance.py --launcher VENV/bin/torchrun --reference --jobs 2
"""
import argparse
import fnmatch
import glob
import importlib
import json
import os
import signal
import sys
import time
from xml.sax.saxutils import quoteattr

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import harness  # noqa: E402


def load():
    for f in sorted(glob.glob(os.path.join(HERE, "cases", "[a-z]*.py"))):
        importlib.import_module("cases." + os.path.basename(f)[:-3])
    names = [c.name for c in harness.REGISTRY]
    dup = {n for n in names if names.count(n) > 1}
    if dup:
        sys.exit("two cases with one name: %s" % dup)
    return harness.REGISTRY


def junit(results):
    """One <testcase> for each case."""
    inner = {"pass": "", "fail": "<failure message=%s/>", "skip": "<skipped message=%s/>"}
    lines = []
    for r in results:
        text = inner[r.status]
        evidence = "".join(c if c.isprintable() else "?" for c in r.evidence)[:1000]
        lines.append("<testcase classname=%s name=%s time='%.2f'>%s</testcase>"
                     % (quoteattr(r.case.group), quoteattr(r.case.name), r.seconds,
                        text % quoteattr(evidence) if text else ""))
    return "<testsuites><testsuite name='conformance'>\n%s\n</testsuite></testsuites>\n" % "\n".join(lines)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--launcher", help='command prefix, e.g. "bazel-bin/launcher/muster run"')
    ap.add_argument("--only", action="append", default=[], metavar="NAME",
                    help="a case name, a group, or a pattern with *; may be repeated")
    ap.add_argument("--list", action="store_true", help="list cases and leave")
    ap.add_argument("--json", metavar="FILE", help="write results as JSON")
    ap.add_argument("--markdown", metavar="FILE", help="write results as a Markdown table")
    ap.add_argument("--xml", metavar="FILE", help="write results as JUnit XML")
    ap.add_argument("--jobs", type=int, default=1, help="cases run at once (default 1)")
    ap.add_argument("--quiet", action="store_true", help="print only failures and the closing line")
    ap.add_argument("--reference", action="store_true",
                    help="the launcher is torchrun: a failure of a case marked torchrun_fails does not set the exit code")
    a = ap.parse_args()
    cases = load()
    if a.only:
        cases = [c for c in cases if any(o in (c.name, c.group) or fnmatch.fnmatch(c.name, o) for o in a.only)]
        if not cases:
            sys.exit("no case matches %s (see --list)" % a.only)
    if a.list:
        for c in cases:
            print("%-12s %-40s %s" % (c.group, c.name, "[torchrun fails: %s] " % c.torchrun_fails if c.torchrun_fails else ""))
            print("%13s%s%s" % ("", c.doc, "  (%s)" % ", ".join(c.refs) if c.refs else ""))
        print("%d cases" % len(cases))
        return 0
    if not a.launcher:
        ap.error("--launcher is needed")
    launcher = harness.parse_launcher(a.launcher)
    if os.sep in launcher[0] and not os.access(launcher[0], os.X_OK):
        sys.exit("launcher %s: not an executable file" % launcher[0])

    def show(r):
        if not a.quiet or r.status == "fail":
            print("%-4s %-40s %5.1fs  %s" % (r.status, r.case.name, r.seconds, r.evidence[:300]), flush=True)

    def leave(signum, frame):
        for c in harness.OPEN_CONTEXTS():
            c.close()
        print("interrupted", flush=True)
        os._exit(130)

    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, leave)
    t0 = time.time()
    rs = harness.run_many(cases, launcher, a.jobs, show)
    n = {s: sum(r.status == s for r in rs) for s in ("pass", "fail", "skip")}
    if a.json:
        with open(a.json, "w") as f:
            json.dump([dict(name=r.case.name, group=r.case.group, status=r.status, evidence=r.evidence,
                            seconds=round(r.seconds, 2), torchrun_fails=r.case.torchrun_fails, refs=r.case.refs)
                       for r in rs], f, indent=1)
    if a.xml:
        with open(a.xml, "w") as f:
            f.write(junit(rs))
    bad = [r for r in rs if r.status == "fail" and not (a.reference and r.case.torchrun_fails)]
    if a.markdown:
        with open(a.markdown, "w") as f:
            f.write("# Conformance results: `%s`\n\n%s: %d passed, %d failed, %d skipped in %.0f s. Mark T: the case is "
                    "marked `torchrun_fails` (the right behaviour differs from torchrun's).\n\n"
                    % (a.launcher, time.strftime("%Y-%m-%d"), n["pass"], n["fail"], n["skip"], time.time() - t0))
            f.write("| group | case | T | result | evidence |\n|---|---|---|---|---|\n")
            for r in rs:
                f.write("| %s | %s | %s | %s | %s |\n" % (r.case.group, r.case.name, "T" if r.case.torchrun_fails else "",
                                                        r.status, r.evidence[:260].replace("|", "\\|")))
            f.write("\n## Why torchrun fails the marked cases\n\n| case | report |\n|---|---|\n")
            for r in rs:
                if r.case.torchrun_fails:
                    f.write("| %s | %s |\n" % (r.case.name, r.case.torchrun_fails))
    if a.reference:
        un = [r.case.name for r in rs if r.case.torchrun_fails and r.status == "pass"]
        if un:
            print("marked torchrun_fails but passed: %s" % ", ".join(un))
        if bad:
            print("not marked but failed: %s" % ", ".join(r.case.name for r in bad))
    print("%d passed, %d failed, %d skipped" % (n["pass"], n["fail"], n["skip"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
