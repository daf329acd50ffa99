"""Measuring, summing up and printing, shared by the benchmarks of this folder."""

import json
import os
import platform
import signal
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
# Its own output folder: measuring does not disturb a developer's build.
BUILD_FLAGS = ("--config=release", "--platform_suffix=-release", "--experimental_convenience_symlinks=ignore")


class Unavailable(Exception):
    """A contender cannot be measured; the text says why."""


@dataclass
class Run:
    """One run of a command: seconds on the wall and on all CPUs, KiB of the largest process of its tree."""

    wall_s: float
    cpu_s: float
    peak_kib: int


def start(command, **outputs):
    """Starts a command in a session of its own, without input; output goes nowhere but where `outputs` says. Raises
    Unavailable."""
    outputs = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | outputs
    try:
        return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, start_new_session=True, text=True, **outputs)
    except OSError as error:
        raise Unavailable(f"{command[0]}: {error.strerror}") from error


def finish(process, timeout_s):
    """(standard output, standard error) of a started command that ends. Past the time it is killed with all its session,
    and Unavailable raised."""
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Unavailable(f"{Path(process.args[0]).name} did not end within {timeout_s} s") from error


def run(timed_run, command, timeout_s=120):
    """Runs a command to its end by bench/timed_run; raises Unavailable unless it ends with 0."""
    process = start([timed_run, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = finish(process, timeout_s)
    numbers = [int(number) for number in output.split()]
    if not numbers or numbers[3]:
        last = "".join(errors.strip().splitlines()[-1:])
        raise Unavailable(f"{Path(command[0]).name} ended with {numbers[3] if numbers else '?'}: {last[:100]}")
    return Run(numbers[0] / 1e9, numbers[1] / 1e6, numbers[2])


def descendants(pid):
    """All processes below pid, not itself."""
    found, todo = [], [pid]
    while todo:
        for thread in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            try:
                children = [int(child) for child in thread.read_text().split()]
            except OSError:
                continue
            found += children
            todo += children
    return found


def memory(pid):
    """(proportional, private) KiB of one process; (0, 0) when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0, 0
    values = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return values["Pss"], values["Private_Clean"] + values["Private_Dirty"]


def cpu_s(pid):
    """Seconds of CPU that a process has used, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def switches(pid):
    """How often the threads of a process have gone to sleep so far; each time something woke them."""
    count = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return count


def spread(values):
    """{'median', 'low', 'high', 'values'} of a list: its median and quartiles."""
    if len(values) < 4:
        low, high = min(values), max(values)
    else:
        low, _, high = statistics.quantiles(values, n=4)
    return {"median": statistics.median(values), "low": low, "high": high, "values": values}


def table(rows):
    """Text of rows of cells, the first column to the left and the others to the right; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                       for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
    lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(lines)


def machine():
    """What the numbers were measured on."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    models = [line.split(":", 1)[1].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {"cpu": models[0] if models else platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(kib / 2**20), "kernel": platform.release(), "load": round(os.getloadavg()[0], 2)}


def build(*labels):
    """Builds targets as a user gets them; returns their folder (bazel-bin), and for each label None or why not."""
    failures = {}
    for label in labels:
        done = subprocess.run([ROOT / "tools/bazel", "build", *BUILD_FLAGS, label], cwd=ROOT, check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)
        errors = [line[len("ERROR: "):] for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
        failures[label] = None if done.returncode == 0 else "".join(errors[:1]) or "bazel failed"
    info = subprocess.run([ROOT / "tools/bazel", "info", *BUILD_FLAGS, "bazel-bin"], cwd=ROOT, check=True, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    return Path(info.stdout.strip()), failures


def write_results(name, content):
    """Writes bench/results/NAME-TIME.json and returns its path."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
