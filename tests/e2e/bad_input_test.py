"""What reaches musterd's port and is no agent, or no sane one: the job that runs there does not notice, and memory stays bounded."""

import os
import random
import re
import resource
import select
import signal
import socket
import struct
import tempfile
import unittest
from pathlib import Path

import harness
from harness import MUSTERD, Case

# Tells a step every 10 ms: a worker that runs on.
STEPPER = ["--no-python", "python3", "-uc", """
import os, time
print("up", os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["MUSTER_GENERATION"])
for step in range(10**9):
    print("step", step)
    time.sleep(0.01)
"""]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MEMORY_MAX = 64 * 1024  # KiB that musterd may grow by, whatever comes


def frame(kind, flags, stream, payload=b""):
    """One of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    """A string literal of HPACK, shorter than 127 bytes."""
    return bytes([len(value)]) + value.encode()


def call(path, stream=1):
    """The beginning of a gRPC call."""
    headers = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "master"), ("content-type", "application/grpc"),
               ("te", "trailers"))
    return frame(1, 4, stream, b"".join(b"\0" + text(name) + text(value) for name, value in headers))


def message(payload, stream=1, length=None):
    """A gRPC message that says it has `length` bytes."""
    return frame(0, 0, stream, b"\0" + struct.pack(">I", len(payload) if length is None else length) + payload)


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, value):
    """A field of protobuf: bytes, or a number."""
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


ATTEND = "/muster.v1.Rendezvous/Attend"
OPENING = PREFACE + frame(4, 0, 0)
CALL = OPENING + call(ATTEND)
TLS_HELLO = bytes.fromhex("16030100c2010000be0303") + bytes(191)


def garbage():
    """Byte strings that a port of the network may get, by name."""
    noise = random.Random(5).randbytes
    return {
        "noise": noise(100_000),
        "a browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "a TLS client": TLS_HELLO,
        "half a preface": PREFACE[:10],
        "noise instead of frames": PREFACE + noise(100_000),
        "a frame that is too large": OPENING + frame(0, 0, 1, bytes(100_000)),
        "data before headers": OPENING + message(b"x", stream=7),
        "headers that do not decode": OPENING + frame(1, 4, 1, b"\xff" * 50),
        "many headers": OPENING + frame(1, 4, 1, (b"\0" + text("x") + text("y" * 100)) * 150),
        "another version of the protocol": OPENING + call("/muster.v2.Rendezvous/Attend") + message(b""),
        "a call without a message": CALL,
        "no protobuf": CALL + message(b"\xff" * 100),
        "an empty message": CALL + message(b""),
        "a kind that is not known": CALL + message(field(13, b"")),
        "a first message that is no Hello": CALL + message(field(2, field(1, 7))),
        "a Hello without a job": CALL + message(field(1, b"")),
        "a message of four gigabytes": CALL + message(b"x" * 1000, length=0xfffffff0),
        "a message of a megabyte": CALL + message(b"x" * 1000, length=1 << 20),
        "half a message": CALL + message(b"x" * 1000, length=2000),
        "a compressed message": CALL + frame(0, 0, 1, b"\1" + struct.pack(">I", 3) + b"xyz"),
        "resets": OPENING + b"".join(call(ATTEND, stream) + frame(3, 0, stream, bytes(4)) for stream in range(1, 201, 2)),
        "pings": OPENING + frame(6, 0, 0, bytes(8)) * 1000,
        "settings": OPENING + frame(4, 0, 0) * 1000,
        "window updates": OPENING + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 10,
    }


class Running(Case):
    """A daemon, a job that runs at it, and what shows that neither minds."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def musterd(self, *args, **kwargs):
        daemon = self.start("--listen", "127.0.0.1:0", *args, program=MUSTERD, **kwargs)
        daemon.endpoint = daemon.wait_line(r"musterd [\d.]+ listens on (\S+:\d+)")[1]
        return daemon

    def node(self, daemon, name, job="job"):
        return self.start("run", "--nnodes", 2, "--rdzv-endpoint", daemon.endpoint, "--rdzv-id", job, "--node-id", name,
                          "--rdzv-conf", "is_host=0", *STEPPER)

    def job(self, daemon, name="job"):
        nodes = [self.node(daemon, node, name) for node in "ab"]
        for node in nodes:
            node.wait_line(r"^up \d 2 \d+$")  # a job of that name may have run before
        return nodes

    def connect(self, daemon):
        host, _, port = daemon.endpoint.rpartition(":")
        return socket.create_connection((host, int(port)), harness.PATIENCE)

    def kib(self, daemon):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{daemon.pid}/status").read_text())[1])

    def assert_unaffected(self, daemon, nodes, memory_before):
        """The job goes on in its first generation, others can come, and the daemon has not grown much."""
        for node in nodes:
            node.wait_line(r"^step ", count=5, start=node.position())
            self.assertEqual(len(re.findall(r"^up ", node.text("out"), re.M)), 1, node.text("err"))
            self.assertEqual(node.text("err"), "")
        self.terminate(*self.job(daemon, "another"))
        self.assertLess(self.kib(daemon) - memory_before, MEMORY_MAX)

    def finish(self, daemon, nodes):
        self.terminate(*nodes)
        daemon.signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0, daemon.text())


class Connections(Running):
    def test_garbage(self):
        daemon = self.musterd()
        nodes = self.job(daemon)
        before = self.kib(daemon)
        for name, data in garbage().items():
            with self.subTest(name):
                for _ in range(20):
                    with self.connect(daemon) as connection:
                        try:
                            connection.sendall(data)
                        except (BrokenPipeError, ConnectionResetError):
                            pass  # it has heard enough
        self.assert_unaffected(daemon, nodes, before)
        self.finish(daemon, nodes)

    def test_a_client_that_never_reads(self):
        daemon = self.musterd()
        nodes = self.job(daemon)
        before = self.kib(daemon)
        minute = 60 * 10**9
        settings = b"".join(field(number, value) for number, value in
                            ((1, 2), (2, 2), (4, 0), (5, minute), (6, minute), (7, 3), (8, minute), (9, minute)))
        hello = field(1, field(1, b"deaf") + field(2, settings) + field(3, b"n") + field(5, 1))
        beats = message(field(2, field(1, 1))) * 100
        with self.connect(daemon) as connection:
            connection.sendall(CALL + message(hello))
            connection.setblocking(False)
            sent = 0
            # Until the master takes no more, or has enough; 64 MiB of heartbeats are more than it may keep.
            while sent < 64 << 20:
                ready = select.select([], [connection], [], 1)[1]
                try:
                    sent += connection.send(beats) if ready else 64 << 20
                except (BrokenPipeError, ConnectionResetError):
                    break
            self.assert_unaffected(daemon, nodes, before)
        self.finish(daemon, nodes)

    def test_ten_thousand_connections_that_say_nothing(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        wanted = min(10_000, most - 200)
        print(f"{wanted} connections, of a limit of {most} descriptors", flush=True)
        daemon = self.musterd()
        nodes = self.job(daemon)
        before = self.kib(daemon)
        silent = []
        for index in range(wanted):
            silent.append(self.connect(daemon))
            if index % 2:
                silent[-1].sendall(OPENING)
        try:
            if most >= wanted + 1000:
                self.assert_unaffected(daemon, nodes, before + 30 * wanted)
        finally:
            for connection in silent:
                connection.close()
        self.assert_unaffected(daemon, nodes, before + 30 * wanted)
        self.finish(daemon, nodes)

    def test_more_connections_than_descriptors(self):
        daemon = self.musterd(prefix=["bash", "-c", 'ulimit -n 256; exec "$@"', "bash"])
        nodes = self.job(daemon)
        before = self.kib(daemon)
        crowd = [self.connect(daemon) for _ in range(400)]
        # Those who are too many are turned away at once; the others stay connected.
        turned_away = select.select(crowd, [], [], harness.PATIENCE)[0]
        self.assertTrue(turned_away)
        for connection in crowd:
            connection.close()
        self.assert_unaffected(daemon, nodes, before)
        self.finish(daemon, nodes)


class Disk(Running):
    def test_a_full_disk_stops_no_worker_and_is_got_over(self):
        """A limit of file sizes stands in for the disk: every record is larger than a kilobyte."""
        daemon = self.musterd("--state-dir", self.folder / "state")
        nodes = self.job(daemon)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        others = [self.node(daemon, node, "another") for node in "ab"]
        daemon.wait_line(r"error musterd: .*jobs wait, and it is tried again")
        for node in nodes:
            node.wait_line(r"^step ", count=5, start=node.position())
        self.assertEqual([other.text("out") for other in others], ["", ""])
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for other in others:
            other.wait_line(r"^up \d 2 1$")
        daemon.wait_line("the state can be written again")
        self.terminate(*others)
        self.finish(daemon, nodes)


if __name__ == "__main__":
    unittest.main()
