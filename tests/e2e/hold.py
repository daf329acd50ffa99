"""Trainers that cannot end before the test has struck."""

import os
import tempfile
from pathlib import Path

LIBRARY = Path("tests/e2e/hold_at_step.so")


class Hold:
    """`Hold(case, rank, step)`: that rank of a trainer with the worker SDK says STEP=`step` to its agent and goes on when it is
    let go; the others wait for it in a collective. Only in the first generation."""

    def __init__(self, case, rank, step):
        self.gate = Path(case.enterContext(tempfile.TemporaryDirectory()), "gate")
        os.mkfifo(self.gate)
        self.end = os.open(self.gate, os.O_RDWR)  # whoever reads, whenever, finds what is written
        case.addCleanup(os.close, self.end)
        self.env = {"LD_PRELOAD": str(LIBRARY.resolve()), "HOLD_RANK": str(rank), "HOLD_STEP": str(step),
                    "HOLD_GATE": str(self.gate)}

    def around(self, *command):
        """A worker's command line."""
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in self.env.items()), *command]

    def let_go(self):
        os.write(self.end, b"!")
