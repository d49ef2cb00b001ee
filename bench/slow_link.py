"""A slow link between two network namespaces, where the kernel has no netem.

    slow_link.py NAMESPACE_A NAMESPACE_B DELAY_MS LOSS_PERCENT

Makes a TUN device `slow` in each (10.77.0.1 and 10.77.0.2) and carries packets between them: each is
lost with the given probability, the others arrive DELAY_MS later. Runs until it is killed; prints
"ready" once packets are carried. Needs root.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
libc = ctypes.CDLL(None, use_errno=True)


def open_device(namespace, address, peer):
    """A TUN device inside the namespace; its file works from anywhere."""
    with open(f"/run/netns/{namespace}") as place:
        if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"slow", IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", address, "peer", peer, "dev", "slow"],
                  ["link", "set", "slow", "up", "txqueuelen", "10000"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    return device


def carry(devices, delay_s, loss, draw):
    """Packets wait in a heap until they are due."""
    waiting, count = [], 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for device in select.select(devices, [], [], timeout)[0]:
            packet = os.read(device, 65536)
            to = devices[1] if device == devices[0] else devices[0]
            if draw.random() >= loss:
                heapq.heappush(waiting, (time.monotonic() + delay_s, count, to, packet))
                count += 1
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(waiting)
            try:
                os.write(to, packet)
            except OSError:
                pass  # a full queue loses packets, as networks do


def main():
    namespace_a, namespace_b, delay_ms, loss_percent = sys.argv[1:]
    devices = [open_device(namespace_a, "10.77.0.1", "10.77.0.2"),
               open_device(namespace_b, "10.77.0.2", "10.77.0.1")]
    print("ready", flush=True)
    carry(devices, float(delay_ms) / 1e3, float(loss_percent) / 100, random.Random(1))


main()
