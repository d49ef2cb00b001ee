#!/usr/bin/env python3
"""bench/sites_lost.py [--times N] [--heartbeat S]: how long the others wait for a site that is lost.

Three sites train on this machine. One is killed (SIGKILL: the kernel tells its neighbours) or stopped (SIGSTOP: only its
silence tells them) at a random moment, N times each, and comes back a while later. Shown: seconds until the neighbours
have said that it is gone, and the longest gap between two of their epochs around that moment."""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "crosstalk")
NAMES = ["north", "south", "east"]


def prepare(folder, port, heartbeat_s):
    lines = ["federation lost"]
    for k, name in enumerate(NAMES):
        made = subprocess.run([PROGRAM, "site", "keygen", "--key", f"{folder}/{name}.key"], check=True,
                              capture_output=True, text=True)
        lines.append(f"site {name} {made.stdout.split()[0]} 127.0.0.1:{port + k}")
        with open(f"{folder}/{name}.csv", "w") as f:
            f.write("a,b,label\n")
            for _ in range(400):
                a, b = random.random(), random.random()
                f.write(f"{a},{b},{'up' if a > b else 'down'}\n")
    lines += ["graph full", "option dataset csv", "option label label", "option test-fraction 0.1", "option algorithm ccl",
              "option epochs 100000", f"heartbeat {heartbeat_s}"]
    with open(f"{folder}/federation.conf", "w") as f:
        f.write("\n".join(lines) + "\n")


def start(folder, name, log):
    return subprocess.Popen([PROGRAM, "site", "run", "federation.conf", "--key", f"{name}.key", "--data-dir", f"{name}.csv",
                             "--out", name, "--threads", "1", "--checkpoint-every", "1"],
                            cwd=folder, stdout=log, stderr=subprocess.STDOUT)


class Watch:
    """A site's log: when each of its lines was first seen."""

    def __init__(self, path):
        self.file, self.seen, self.rest = open(path, errors="replace"), [], ""

    def look(self):
        now, text = time.monotonic(), self.rest + self.file.read()
        *lines, self.rest = text.split("\n")
        self.seen += [(now, line) for line in lines]

    def since(self, begin, words):
        return [t for t, line in self.seen if t >= begin and words in line]


def look_for(watches, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for w in watches:
            w.look()
        time.sleep(0.002)


def wait_for(watches, begin, words, limit_s=60):
    while time.monotonic() - begin < limit_s:
        for w in watches:
            w.look()
        if all(w.since(begin, words) for w in watches):
            return max(w.since(begin, words)[0] for w in watches) - begin
        time.sleep(0.002)
    sys.exit(f"sites_lost: not all said '{words}' within {limit_s} s; the logs are in {os.path.dirname(watches[0].file.name)}")


def gap(watches, begin, end):
    """The longest time without an epoch of either neighbour."""
    longest = 0
    for w in watches:
        times = [t for t, line in w.seen if line.startswith("epoch") and begin - 1 <= t <= end]
        longest = max([longest] + [b - a for a, b in zip(times, times[1:])])
    return longest


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--times", type=int, default=20)
    options.add_argument("--heartbeat", type=float, default=0.5)
    options.add_argument("--signals", default="SIGKILL,SIGSTOP")
    o = options.parse_args()
    folder, random_port = tempfile.mkdtemp(), 20000 + os.getpid() % 9000
    random.seed(1)
    prepare(folder, random_port, o.heartbeat)
    logs = {name: open(f"{folder}/{name}.log", "ab") for name in NAMES}
    sites = {name: start(folder, name, logs[name]) for name in NAMES}
    watches = {name: Watch(f"{folder}/{name}.log") for name in NAMES}
    try:
        wait_for(list(watches.values()), time.monotonic(), "epoch 2/")
        for how in o.signals.split(","):
            told, gaps = [], []
            for _ in range(o.times):
                lost = random.choice(NAMES)
                others = [watches[name] for name in NAMES if name != lost]
                look_for(others, 1 + random.random())
                begin = time.monotonic()
                sites[lost].send_signal(getattr(signal, how))
                told.append(wait_for(others, begin, f"{lost} is gone"))
                look_for(others, 1)
                if how == "SIGKILL":
                    sites[lost].wait()
                    sites[lost] = start(folder, lost, logs[lost])
                else:
                    sites[lost].send_signal(signal.SIGCONT)
                back = time.monotonic()
                wait_for(others, back, f"{lost} is there")
                gaps.append(gap(others, begin, back))
            told.sort()
            print(f"{how}, {o.times} times, heartbeat {o.heartbeat} s: gone after {told[len(told) // 2]:.2f} s (median), "
                  f"{told[-1]:.2f} s at most; longest pause of a neighbour {max(gaps):.2f} s; "
                  f"three heartbeats are {3 * o.heartbeat:.2f} s")
    finally:
        for site in sites.values():
            site.kill()
            site.wait()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
