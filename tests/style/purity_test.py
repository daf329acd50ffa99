"""Pure code decides and does nothing: whatever a pure file reaches includes no clock, socket, thread, file, process,
logging, gRPC or protobuf header."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sources  # noqa: E402  (the path is set above)

# By the name of the file without its suffix.
PURE = re.compile(r"(.*_machine(_.*)?|rank_assignment|restart_policy|failure_triage|worker_env|worker_command|numa_plan|hostlist|"
                  r"warden_protocol|settings|reason|invariants|(agent_|master_)?messages|events|"
                  r"round_.*|job_record|effect_hold|record_keeper|admission(_limits)?|security|musterd_(config|table|documents)|"
                  r"incident|formation_gate|restart_backoff|master_address|node|"
                  r"facts|fields|findings(_machine)?|report|table_text|incident_record(er)?|job_journal|job_status|histogram|rank_set|roster|node_status|watch_patience)$")
FOLDERS = ("base", "rendezvous", "agent", "launcher", "check")

STANDARD = set("""
    algorithm any array bit bitset cassert cctype cerrno charconv chrono climits cmath compare concepts cstddef cstdint cstring deque
    functional initializer_list iterator limits list map memory numeric optional ostream queue random set span sstream
    stdexcept string string_view tuple type_traits unordered_map unordered_set utility variant vector
""".split())
# Names of signals are numbers, not system calls.
ALLOWED = STANDARD | {"csignal", "signal.h"}
ALLOWED_PREFIXES = ("absl/algorithm/", "absl/base/attributes", "absl/base/macros", "absl/container/", "absl/hash/",
                    "absl/memory/", "absl/meta/", "absl/numeric/", "absl/status/", "absl/strings/", "absl/types/",
                    "absl/utility/")
# <chrono> and <random> also hold doors to the outside; signal.h does, too.
FORBIDDEN_CALLS = re.compile(r"\b(system_clock|steady_clock|high_resolution_clock|utc_clock|random_device|getenv|"
                             r"sigaction|raise|time\(nullptr\)|clock_gettime)\b")


def pure_files():
    return [name for name in sources.with_suffix(".h", ".cc")
            if name.parts[0] in FOLDERS and PURE.match(name.stem)]


def chain(reached, name):
    steps = [str(name)]
    while reached[name] is not None:
        name = reached[name]
        steps.append(str(name))
    return " <- ".join(steps)


class Purity(unittest.TestCase):
    def test_there_are_pure_files(self):
        self.assertTrue(pure_files())

    def test_what_pure_files_reach_includes_only_harmless_headers(self):
        findings = set()
        for name in pure_files():
            reached = sources.closure(name)
            for file in reached:
                for header in sources.includes(file)[1]:
                    if header not in ALLOWED and not header.startswith(ALLOWED_PREFIXES):
                        findings.add(f"<{header}> in {chain(reached, file)}")
        if findings:
            self.fail("impure:\n" + "\n".join(sorted(findings)))

    def test_pure_files_ask_neither_clock_nor_environment(self):
        findings = []
        for name in pure_files():
            for number, line in enumerate(sources.text(name).splitlines(), 1):
                code = line.split("//")[0]
                if FORBIDDEN_CALLS.search(code):
                    findings.append(f"{name}:{number}: {line.strip()}")
        if findings:
            self.fail("impure:\n" + "\n".join(findings))


if __name__ == "__main__":
    unittest.main()
