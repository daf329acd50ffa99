#!/bin/bash
# sh_test needs a shell script; Bazel's own Python rules need a download.
exec /usr/bin/python3 tests/e2e/run_unittest.py "$@"
