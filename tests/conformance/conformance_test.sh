#!/bin/bash
# The conformance suite against `muster run`, for Bazel. CONF_SCALE: other tests run at the same time.
set -euo pipefail
if [[ -n ${MUSTER_PEERS:-} ]]; then
  export TORCH_PYTHON="$MUSTER_PEERS/bin/python3"
fi
export CONF_SCALE="${CONF_SCALE:-2}"
exec /usr/bin/python3 tests/conformance/conformance.py --launcher "$PWD/launcher/muster run" \
  --xml "${XML_OUTPUT_FILE:-/dev/null}" "$@"
