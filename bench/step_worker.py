"""A worker of bench/recovery: takes a step every 2 ms and writes down when, in FOLDER/RANK.PID."""

import os
import sys
import time

with open(f"{sys.argv[1]}/{os.environ['RANK']}.{os.getpid()}", "w", buffering=1, encoding="ascii") as steps:
    while True:
        steps.write(f"{time.monotonic()}\n")
        time.sleep(0.002)
