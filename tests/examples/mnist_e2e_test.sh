#!/bin/sh
exec /usr/bin/python3 "$(dirname "$0")/mnist_e2e_test.py" "$@"
