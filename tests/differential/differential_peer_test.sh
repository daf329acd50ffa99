#!/bin/bash
# Trains under Python's DDP now, and runs the test given against what comes of it.
set -euo pipefail
export MUSTER_PYTHON_RESULTS="$TEST_TMPDIR/python.txt"
"$MUSTER_PEERS/bin/python" tests/differential/train_in_python.py "$MUSTER_PYTHON_RESULTS"
"$1"
