"""N agents meet through torchrun's own rendezvous handler (c10d), one thread each: prints {"cold_ms", "cpu_s"}.

    python3 bench/torch_rendezvous.py N

Run by bench/rendezvous with the Python that has torch.
"""

import json
import resource
import socket
import sys
import threading
import time

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main(agents):
    endpoint = f"127.0.0.1:{free_port()}"
    parameters = [RendezvousParameters(backend="c10d", endpoint=endpoint, run_id="bench", min_nodes=agents, max_nodes=agents,
                                       local_addr="127.0.0.1", is_host=i == 0, join_timeout=600) for i in range(agents)]
    handlers = []
    for one in parameters:
        backend, store = create_backend(one)
        handlers.append(create_handler(store, backend, one))
    begin, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    threads = [threading.Thread(target=handler.next_rendezvous, daemon=True) for handler in handlers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"cold_ms": (end - begin) * 1e3, "cpu_s": used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime}))
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
