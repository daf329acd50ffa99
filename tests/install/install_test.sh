#!/bin/sh
exec /usr/bin/python3 "$(dirname "$0")/install_test.py" "$@"
