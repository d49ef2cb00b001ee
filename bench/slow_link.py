"""Slow links between network namespaces, where the kernel has no netem.

    slow_link.py NAMESPACE... DELAY_MS LOSS_PERCENT

Makes a TUN device `slow` in each (10.77.0.1, 10.77.0.2, ... in their order) and carries packets
between them: each is lost with the given probability, the others arrive DELAY_MS later. A namespace
written with a ! behind it can dial out, but nobody can dial it: as behind a hospital's firewall. Runs
until it is killed; prints "ready" once packets are carried. Needs root.
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


def open_device(namespace, address):
    """A TUN device inside the namespace; its file works from anywhere."""
    with open(f"/run/netns/{namespace}") as place:
        if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"slow", IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", address, "dev", "slow"],
                  ["link", "set", "slow", "up", "txqueuelen", "10000"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    return device


def begins_connection(packet):
    """A TCP segment over IPv4 with SYN and without ACK."""
    header = 4 * (packet[0] & 15)
    return packet[9] == 6 and len(packet) > header + 13 and packet[header + 13] & 0x12 == 0x02


def carry(devices, guarded, delay_s, loss, draw):
    """Packets wait in a heap until they are due. devices: by the last byte of their address."""
    waiting, count = [], 0
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for device in select.select(list(devices.values()), [], [], timeout)[0]:
            packet = os.read(device, 65536)
            if packet[0] >> 4 != 4 or packet[19] not in devices:
                continue
            if packet[19] in guarded and begins_connection(packet):
                continue
            if draw.random() >= loss:
                heapq.heappush(waiting, (time.monotonic() + delay_s, count, packet))
                count += 1
        while waiting and waiting[0][0] <= time.monotonic():
            packet = heapq.heappop(waiting)[2]
            try:
                os.write(devices[packet[19]], packet)
            except OSError:
                pass  # a full queue loses packets, as networks do


def main():
    *namespaces, delay_ms, loss_percent = sys.argv[1:]
    devices = {k: open_device(name.rstrip("!"), f"10.77.0.{k}/24")
               for k, name in enumerate(namespaces, 1)}
    guarded = {k for k, name in enumerate(namespaces, 1) if name.endswith("!")}
    print("ready", flush=True)
    carry(devices, guarded, float(delay_ms) / 1e3, float(loss_percent) / 100, random.Random(1))


main()
