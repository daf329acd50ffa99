"""Prints the environment of the worker that the launcher has made, one JSON object a worker."""

import json
import os
import sys

sys.stdout.write(json.dumps(dict(os.environ), sort_keys=True) + "\n")
