"""Nodes in network namespaces of their own, joined by a bridge in another one, and faults between them by nftables.

Nothing of the host's own network is touched: links and rules live in the namespaces and vanish with them. A packet that is to
be lost is dropped where it arrives, so that its sender notices no more than it would of a broken switch."""

import os
import shutil
import subprocess
import uuid

SUBNET = "10.77.0"


def missing():
    """Why no such network can be made here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "nft", "nsenter"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    trial = "ip link add name probe type bridge && nft add table inet probe"
    probe = subprocess.run(["unshare", "--net", "sh", "-c", trial], capture_output=True, text=True, check=False)
    return probe.stderr.strip().replace("\n", " ") or None


class Network:
    """`names` are the nodes; each has the interface eth0 with the address address(name)."""

    def __init__(self, names):
        self.prefix = f"muster{uuid.uuid4().hex[:6]}"
        self.names = list(names)
        self.made = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        switch = self._add("switch")
        self._ip(switch, "link", "add", "name", "bridge", "type", "bridge")
        self._ip(switch, "link", "set", "dev", "bridge", "up")
        for name in self.names:
            space = self._add(name)
            self._ip(switch, "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", space)
            self._ip(switch, "link", "set", "dev", name, "master", "bridge", "up")
            self._ip(space, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            self._ip(space, "link", "set", "dev", "eth0", "up")
            self._ip(space, "link", "set", "dev", "lo", "up")
        for name in self.names:  # the first packet, before any fault, finds its neighbour
            for other in self.names:
                if other != name:
                    self._ip(self._space(name), "neighbour", "replace", self.address(other), "lladdr", self._hardware(other),
                             "dev", "eth0", "nud", "permanent")

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "delete", space], check=True)

    def _space(self, name):
        return f"{self.prefix}-{name}"

    def _add(self, name):
        subprocess.run(["ip", "netns", "add", self._space(name)], check=True)
        self.made.append(self._space(name))
        return self._space(name)

    def _ip(self, space, *args):
        return subprocess.run(["ip", "-n", space, *args], check=True, capture_output=True, text=True).stdout

    def _hardware(self, name):
        words = self._ip(self._space(name), "-o", "link", "show", "eth0").split()
        return words[words.index("link/ether") + 1]

    def address(self, name):
        return f"{SUBNET}.{self.names.index(name) + 1}"

    def prefix_of(self, name):
        """What runs a command on that node."""
        return ("nsenter", f"--net=/run/netns/{self._space(name)}")

    def others(self, *names):
        return [name for name in self.names if name not in names]

    def drop(self, senders, receivers, when=""):
        """From now on receivers lose what senders send: all of it, or what the nft expression `when` picks."""
        saddr = ", ".join(self.address(name) for name in senders)
        for name in receivers:
            self._nft(name, "add table inet fault\n"
                      "add chain inet fault input { type filter hook input priority 0; policy accept; }\n"
                      f"add rule inet fault input ip saddr {{ {saddr} }} {when} drop\n")

    def part(self, some, others):
        """Nothing gets through between the two groups, in either direction."""
        self.drop(some, others)
        self.drop(others, some)

    def heal(self):
        for name in self.names:
            self._nft(name, "add table inet fault\ndelete table inet fault\n")

    def _nft(self, name, rules):
        subprocess.run([*self.prefix_of(name), "nft", "-f", "-"], input=rules, text=True, check=True)
