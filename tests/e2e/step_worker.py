"""A worker that shows its progress: `step_worker.py FIFO [LIMIT]`.

A step is a barrier of all ranks over TCP at MASTER_ADDR:MASTER_PORT, as a collective is: without one of them there is no
next one. Every rank writes one line an event to FIFO, in one piece:

    MONOTONIC_NS NODE GENERATION RANK start|step|stop|fail|hang STEP

`stop` is written on SIGTERM, `fail` when a peer is gone or a step takes longer than LIMIT seconds; then it exits with 5. With
STEP_HANGS=1 it stays instead, as in a collective that never ends, and writes `hang` again and again."""

import os
import signal
import socket
import struct
import sys
import time

PACE = 0.02  # seconds: what stands for the work of a step
RETRY = 0.02  # seconds: rank 0 may not listen yet, and nothing tells when it does
PLACE = struct.Struct("!qi")  # generation, rank

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
GENERATION = int(os.environ["MUSTER_GENERATION"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else None

log = os.open(sys.argv[1], os.O_WRONLY)
step = 0


def record(event):
    line = f"{time.monotonic_ns()} {os.environ['STEP_NODE']} {GENERATION} {RANK} {event} {step}\n"
    os.write(log, line.encode())


def on_term(*_):
    record("stop")
    os._exit(143)


def prepare(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # What is in flight dies with its sender. Else the kernel would deliver the last step of a killed world after its time.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.settimeout(LIMIT)
    return connection


def take(connection, size):
    data = connection.recv(size, socket.MSG_WAITALL)
    if len(data) != size:
        raise ConnectionResetError("a peer is gone")
    return data


def gather():
    """Rank 0's connections to all others."""
    peers = {}
    with socket.create_server(("", MASTER[1]), backlog=WORLD) as server:
        while len(peers) < WORLD - 1:
            connection = prepare(server.accept()[0])
            generation, rank = PLACE.unpack(take(connection, PLACE.size))
            if generation == GENERATION:
                peers[rank] = connection
    return list(peers.values())


def join():
    """The connection of another rank to rank 0."""
    while True:
        try:
            connection = prepare(socket.create_connection(MASTER, timeout=1))
            connection.sendall(PLACE.pack(GENERATION, RANK))
            return connection
        except (ConnectionRefusedError, TimeoutError):
            time.sleep(RETRY)


def main():
    global step
    signal.signal(signal.SIGTERM, on_term)
    record("start")
    try:
        peers = gather() if RANK == 0 else [join()]
        while True:
            step += 1
            if RANK == 0:
                time.sleep(PACE)
                for peer in peers:
                    take(peer, 1)
                record("step")
                for peer in peers:
                    peer.sendall(b"+")
            else:
                peers[0].sendall(b"+")
                take(peers[0], 1)
                record("step")
    except OSError as problem:
        while os.environ.get("STEP_HANGS"):
            record("hang")
            time.sleep(PACE)
        record("fail")
        print(f"rank {RANK}: step {step}: {problem}", file=sys.stderr)
        sys.exit(5)


main()
