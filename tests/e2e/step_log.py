"""What the workers of step_worker.py tell: a log of all steps of a job on one clock, and what is asserted of it."""

import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import harness
from harness import ROOT, Case

WORKER = ROOT / "tests/e2e/step_worker.py"


@dataclass(frozen=True)
class Record:
    at: float  # seconds of the monotonic clock, which all namespaces share
    node: str
    generation: int
    rank: int
    event: str
    step: int


class StepLog:
    """Collects the records of all workers of a job through a FIFO, in the order of their writing."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.fifo = Path(self.scratch.name, "steps")
        os.mkfifo(self.fifo)
        self.records = []
        self.changed = threading.Condition()
        self.end = os.open(self.fifo, os.O_RDWR)  # also writing, so that it never ends while no worker runs
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def close(self):
        os.write(self.end, b"\n")
        self.reader.join()
        os.close(self.end)
        self.scratch.cleanup()

    def _read(self):
        with os.fdopen(os.dup(self.end), encoding="ascii") as file:
            for line in file:
                if line == "\n":
                    return
                at, node, generation, rank, event, step = line.split()
                with self.changed:
                    self.records.append(Record(int(at) / 1e9, node, int(generation), int(rank), event, int(step)))
                    self.changed.notify_all()

    def wait(self, what, wanted):
        """The first record for which wanted(record) holds; fails when none comes."""
        limit = harness.deadline()
        seen = 0
        with self.changed:
            while True:
                for record in self.records[seen:]:
                    if wanted(record):
                        return record
                seen = len(self.records)
                if not self.changed.wait(limit - time.monotonic()):
                    raise AssertionError(f"not seen: {what}; the last records:\n" + "\n".join(map(str, self.records[-20:])))

    def hold(self, seconds):
        """A fault lasts so long. Fails when a new generation starts meanwhile."""
        limit = time.monotonic() + seconds
        with self.changed:
            known = {r.generation for r in self.records}
            while (left := limit - time.monotonic()) > 0:
                self.changed.wait(left)
                new = [r for r in self.records if r.generation not in known]
                if new:
                    raise AssertionError(f"a new generation: {new[0]}")

    def first_step(self, generation, node=None, after=0.0):
        return self.wait(f"a step of generation {generation}", lambda r: r.event == "step" and r.generation == generation
                         and r.at > after and node in (None, r.node))

    def generation_of(self, nodes):
        """Waits until all these nodes make steps in one generation, and nobody else; returns its number."""
        return self.wait(f"a step of {nodes} together", lambda r: r.event == "step" and
                         self.ranks(r.generation).keys() == set(nodes)).generation

    def more_steps(self, count):
        """Waits for so many more steps of the generation that runs; returns its number."""
        with self.changed:
            last = max((r for r in self.records if r.event == "step"), key=lambda r: (r.generation, r.step))
        return self.wait(f"{count} more steps", lambda r: r.event == "step" and (
            r.generation > last.generation or r.generation == last.generation and r.step >= last.step + count)).generation

    def select(self, **fields):
        with self.changed:
            return [r for r in self.records if all(getattr(r, name) == value for name, value in fields.items())]

    def ranks(self, generation):
        """Who had which rank: {node: rank}."""
        return {r.node: r.rank for r in self.select(generation=generation, event="start")}

    def wait_ended(self, node, generation):
        return self.wait(f"the end of generation {generation} on {node}", lambda r: r.event in ("stop", "fail") and
                         (r.node, r.generation) == (node, generation))

    def ended(self, node, generation):
        """When the worker of that node ended: it was stopped, or its peers were gone. None: it runs."""
        ends = [r.at for r in self.select(node=node, generation=generation) if r.event in ("stop", "fail")]
        return min(ends, default=None)

    def longest_gap(self, generation, since):
        """The longest time between two steps that rank 0 saw, from the last step before `since` on."""
        times = [r.at for r in self.select(generation=generation, rank=0, event="step")]
        first = max((i for i, at in enumerate(times) if at < since), default=0)
        return max(b - a for a, b in zip(times[first:], times[first + 1:]))


TABLE = []  # (case, milliseconds, what that is)


def tell_table():
    """For tearDownModule: what the cases took, at the end of the log."""
    if TABLE:
        width = max(len(case) for case, _, _ in TABLE)
        print(f"\n{'case':<{width}} {'ms':>6}  from the fault to")
        for case, milliseconds, what in TABLE:
            print(f"{case:<{width}} {milliseconds:>6}  {what}", flush=True)


class StepCase(Case):
    """Jobs of one step worker a node. What they take is told at the end."""

    def setUp(self):
        self.steps = StepLog()
        self.addCleanup(self.steps.close)

    def node(self, name, endpoint, *options, nnodes=3, conf="", prefix=(), limit=None, hangs=False):
        """An agent with one step worker. A lease of 2 s and a last call of 1 s, unless `conf` says otherwise."""
        env = {"STEP_NODE": name, **({"STEP_HANGS": "1"} if hangs else {})}
        short = f"keep_alive_interval=0.5,keep_alive_max_attempt=4,last_call_timeout=1{conf and ','}{conf}"
        return self.start("run", "--nnodes", nnodes, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "steps",
                          "--rdzv-conf", short, "--node-id", name, "--log-level", "info", "--shutdown-timeout", 1, *options,
                          WORKER, self.steps.fifo, *([limit] if limit else []), env=env, prefix=prefix)

    def tell(self, milliseconds, what):
        """One line of the table, for this test."""
        name = self._testMethodName.removeprefix("test_").replace("_", " ")
        TABLE.append((name, round(milliseconds), what))

    def tell_recovery(self, fault, generation):
        """Waits for the first step of `generation`, and tells when it came."""
        step = self.steps.first_step(generation)
        self.tell((step.at - fault) * 1e3, f"the first step of generation {generation}")
        return step

    def tell_gap(self, fault, generation=1):
        self.tell(self.steps.longest_gap(generation, fault) * 1e3, "no end: the longest gap between two steps")

    def assert_one_world(self):
        """Once a generation has made a step, none before it makes another."""
        steps = self.steps.select(event="step")
        for generation in {r.generation for r in steps}:
            first = min(r.at for r in steps if r.generation == generation)
            late = [r for r in steps if r.generation < generation and r.at > first]
            self.assertEqual(late, [], f"generation {generation} had begun")

    def assert_no_workers_beside(self, generation):
        """When the first worker of `generation` started, none of an older one ran (strict fencing)."""
        first = min(r.at for r in self.steps.select(generation=generation, event="start"))
        for start in self.steps.select(event="start"):
            if start.generation >= generation:
                continue
            told = self.steps.select(node=start.node, generation=start.generation)
            self.assertIn(told[-1].event, ("stop", "fail", "hang"), f"{start} has not ended")
            self.assertLess(told[-1].at, first, f"{start} had not ended")
