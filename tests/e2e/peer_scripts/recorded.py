"""Rank 1 raises within @record; the others wait for it."""

import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the loss is not finite")
    time.sleep(1000)


if __name__ == "__main__":
    main()
