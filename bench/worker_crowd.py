#!/usr/bin/env python3
"""How much of the processor time of a crowded run its children use, and how much the program itself.

usage: bench/worker_crowd.py --bin BUILD_FOLDER [--workers 1000] [--gpus mock:h200:2] [--seconds 60] [PROBLEM...]

Starts `gristmill run`, reads /proc of the program twice a second, and prints the processor time of the
program and of its children (those that have ended and those that live), by the children's programs as
far as they were seen. Exit code 0 when the children used at least 90 %.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name = text[text.index("(") + 1:text.rindex(")")]
    fields = text[text.rindex(")") + 2:].split()
    return {"name": name, "parent": int(fields[1]),
            "own": (int(fields[11]) + int(fields[12])) / TICK,
            "waited": (int(fields[13]) + int(fields[14])) / TICK}


def family(root):
    """Every living descendant."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            one = stat_of(entry)
            if one:
                parents[int(entry)] = one
    found, grown = {root}, True
    while grown:
        grown = False
        for pid, one in parents.items():
            if pid not in found and one["parent"] in found:
                found.add(pid)
                grown = True
    return {pid: parents[pid] for pid in found if pid in parents and pid != root}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--workers", default="1000")
    parser.add_argument("--gpus", default="mock:h200:2")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("problem", nargs="*")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="worker-crowd-") as folder:
        out = os.path.join(folder, "run")
        run = subprocess.Popen(
            [os.path.join(a.bin, "gristmill"), "run", *a.problem, "--workers", a.workers, "--gpus", a.gpus,
             "--budget", f"{a.seconds}s", "--seed", "1", "--out", out],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        own = waited = living = 0.0
        by_pid = {}
        memory = 0
        while run.poll() is None:
            one = stat_of(run.pid)
            if one:
                children = family(run.pid)
                own, waited = one["own"], one["waited"]
                living = sum(c["own"] for c in children.values())
                for pid, c in children.items():
                    by_pid[(pid, c["name"])] = max(by_pid.get((pid, c["name"]), 0), c["own"])
                try:
                    memory = max(memory, int(next(
                        line.split()[1] for line in open(f"/proc/{run.pid}/status") if line.startswith("VmRSS"))))
                except (OSError, StopIteration):
                    pass
            time.sleep(0.5)
            if time.monotonic() - begun > a.seconds + 180:
                run.terminate()
        wall = time.monotonic() - begun
    children = waited + living
    total = own + children
    share = 100 * children / total if total else 0
    print(f"{a.workers} workers on {a.gpus}, budget {a.seconds} s, wall {wall:.1f} s, exit {run.returncode}")
    print(f"program itself {own:.1f} CPU-s, children {children:.1f} CPU-s: {share:.1f} % in the children")
    print(f"resident memory of the program at most {memory / 1024:.0f} MiB")
    names = {}
    for (_, name), seconds in by_pid.items():
        names[name] = names.get(name, 0) + seconds
    for name, seconds in sorted(names.items(), key=lambda n: -n[1]):
        print(f"  seen of {name:<18} {seconds:8.1f} CPU-s")
    return 0 if share >= 90 else 1


if __name__ == "__main__":
    sys.exit(main())
