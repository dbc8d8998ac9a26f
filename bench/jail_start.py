#!/usr/bin/env python3
"""What the jail costs at the start of a child: `jail_start.py BUILD [STARTS] [PROFILE]`.

Starts /usr/bin/true in the jail, without namespaces, in our own and in bubblewrap's, in random order, and compares each
start with the one without namespaces of the same round. Milliseconds of wall time, this program's spawning included.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = ("limits", "own") + (("bubblewrap",) if os.path.exists("/usr/bin/bwrap") else ())


def start(jail, folder, profile, way):
    began = time.perf_counter()
    subprocess.run([jail, "--directory", folder, profile, "--", "/usr/bin/true"], check=True,
                   env=dict(os.environ, GRISTMILL_SANDBOX=way), stderr=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def line(name, values):
    values = sorted(values)
    tenth = len(values) // 10
    print(f"{name:<24} median {statistics.median(values):6.2f} ms   p10 {values[tenth]:6.2f}   "
          f"p90 {values[-1 - tenth]:6.2f}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    jail = os.path.join(sys.argv[1], "gristmill-jail")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    profile = sys.argv[3] if len(sys.argv) > 3 else "compiler"
    taken = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            order = list(WAYS)
            random.shuffle(order)
            for way in order:
                taken[way].append(start(jail, folder, profile, way))
    load = os.getloadavg()[0]
    print(f"{rounds} starts each, profile {profile}, {os.cpu_count()} processors, load {load:.1f}")
    for way in WAYS:
        line(way, taken[way])
    for way in WAYS[1:]:
        line(f"{way} - limits, paired", [b - a for a, b in zip(taken["limits"], taken[way])])


if __name__ == "__main__":
    main()
