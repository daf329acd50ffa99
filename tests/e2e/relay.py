"""A TCP relay between agents and their master: it forwards, and on demand delays, withholds or cuts.

One thread serves all links. "up" is the direction from the agent to the master, "down" the other one."""

import selectors
import socket
import struct
import threading
import time
from collections import deque


class Lane:
    """One direction of a link. Bytes wait in `queue` until their time has come; while `held` for as long as that lasts."""

    def __init__(self, source, sink, delay, held):
        self.source, self.sink = source, sink
        self.delay, self.held = delay, held
        self.queue = deque()  # (when, bytes); b"": the source has ended
        self.ended = False

    def due(self):
        return self.queue[0][0] if self.queue and not self.held else None


class Link:
    def __init__(self, agent, master, delays, held):
        self.agent, self.master = agent, master
        self.up = Lane(agent, master, delays["up"], "up" in held)
        self.down = Lane(master, agent, delays["down"], "down" in held)
        self.open = {agent, master}


class Relay:
    """Listens on `address` and forwards to `target`, both (host, port). All calls are for the test's thread."""

    def __init__(self, target, address=("127.0.0.1", 0)):
        self.target = target
        self.listener = socket.create_server(address)
        self.host, self.port = self.listener.getsockname()
        self.lock = threading.Condition()
        self.links = []
        self.delays = {"up": 0.0, "down": 0.0}
        self.held = set()
        self.selector = selectors.DefaultSelector()
        self.wake, self.waker = socket.socketpair()
        self.stopping = False
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    # ── What a test orders ────────────────────────────────────────────────────────────────────────

    def delay(self, seconds):
        """What arrives from now on, on all links, arrives so much later."""
        with self.lock:
            self.delays = {"up": seconds, "down": seconds}
            for link in self.links:
                link.up.delay = link.down.delay = seconds

    def hold(self, *directions, new=True):
        """Withholds what comes in these directions, on the links there are and (`new`) on those to come."""
        with self.lock:
            for link in self.links:
                for name in directions:
                    getattr(link, name).held = True
            self.held = set(directions) if new else set()

    def pass_new(self):
        """Links to come forward again; those there are stay as they are."""
        with self.lock:
            self.held = set()

    def release(self):
        """All links forward again, first what was withheld."""
        with self.lock:
            self.held = set()
            for link in self.links:
                link.up.held = link.down.held = False
        self._wake()

    def reset(self):
        """Cuts all links: both sides get an RST."""
        with self.lock:
            for link in self.links:
                for end in list(link.open):
                    self._close(link, end)
        self._wake()

    def cut_from(self, side):
        """Cuts the links on that side ("agent" or "master") only: the other side hears nothing of it, and nobody reads on."""
        with self.lock:
            for link in self.links:
                self._close(link, getattr(link, side))
                for lane in (link.up, link.down):
                    lane.held = True
                    lane.queue.clear()
        self._wake()

    def wait_links(self, count):
        """Waits until so many links have been made since the beginning."""
        with self.lock:
            if not self.lock.wait_for(lambda: len(self.links) >= count, 60):
                raise AssertionError(f"{len(self.links)} links were made, not {count}")

    def close(self):
        with self.lock:
            self.stopping = True
        self._wake()
        self.thread.join()
        for link in self.links:
            for end in list(link.open):
                self._close(link, end)
        for end in (self.listener, self.wake, self.waker):
            end.close()
        self.selector.close()

    # ── The thread ────────────────────────────────────────────────────────────────────────────────

    def _wake(self):
        self.waker.send(b"!")

    def _run(self):
        while True:
            with self.lock:
                if self.stopping:
                    return
                dues = [due for link in self.links for lane in (link.up, link.down) if (due := lane.due()) is not None]
            ready = self.selector.select(max(0.0, min(dues) - time.monotonic()) if dues else None)
            with self.lock:
                for key, _ in ready:
                    if key.fileobj is self.wake:
                        self.wake.recv(4096)
                    elif key.fileobj is self.listener:
                        self._accept()
                    else:
                        self._read(*key.data)
                for link in self.links:
                    for lane in (link.up, link.down):
                        self._forward(link, lane)

    def _accept(self):
        agent, _ = self.listener.accept()
        try:
            master = socket.create_connection(self.target, timeout=5)
        except OSError:
            agent.close()
            return
        master.settimeout(5)
        link = Link(agent, master, self.delays, self.held)
        for end in (agent, master):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for lane in (link.up, link.down):
            self.selector.register(lane.source, selectors.EVENT_READ, (link, lane))
        self.links.append(link)
        self.lock.notify_all()

    def _read(self, link, lane):
        if lane.source not in link.open:
            return
        try:
            data = lane.source.recv(1 << 16)
        except OSError:
            data = b""
        lane.queue.append((time.monotonic() + lane.delay, data))
        if not data:
            self.selector.unregister(lane.source)
            lane.ended = True

    def _forward(self, link, lane):
        while (due := lane.due()) is not None and due <= time.monotonic():
            _, data = lane.queue.popleft()
            if lane.sink not in link.open:
                continue
            try:
                if data:
                    lane.sink.sendall(data)
                else:
                    lane.sink.shutdown(socket.SHUT_WR)
            except OSError:
                self._close(link, lane.source)

    def _close(self, link, end):
        """With an RST."""
        if end not in link.open:
            return
        link.open.discard(end)
        lane = link.up if end is link.agent else link.down
        if not lane.ended:
            self.selector.unregister(end)
            lane.ended = True
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()
