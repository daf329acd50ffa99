#!/bin/bash
# A state_dict that Python writes now is read by the test given, and one that the test writes is read by Python.
set -euo pipefail
script=tests/worker_sdk/golden/state_dict_in_python.py
export MUSTER_STATE_DICT_OF_PYTHON="$TEST_TMPDIR/python.pt" MUSTER_STATE_DICT_FOR_PYTHON="$TEST_TMPDIR/ours.pt"
"$MUSTER_PEERS/bin/python" "$script" write "$MUSTER_STATE_DICT_OF_PYTHON"
"$1" --gtest_filter='StateDict.*'
"$MUSTER_PEERS/bin/python" "$script" check "$MUSTER_STATE_DICT_FOR_PYTHON"
