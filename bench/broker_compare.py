#!/usr/bin/env python3
"""The broker beside what teams use today: `flock` for each GPU, and a Ray actor for each GPU.

usage: bench/broker_compare.py BUILD_FOLDER [--waiting 500] [--devices 2] [--hold-ms 20] [--only NAME]

Every way gets the same: `--waiting` processes (or, for Ray, calls of one driver, as Ray is used) that all ask at
once for one of `--devices` devices that hold for `--hold-ms`. Printed for each: how many holds a second, how long the
device stood idle from the end of one hold to the start of the next (hand-over), how the waits spread, and the share
of the ideal throughput; then the ratios. Build the targets gristmill, gristmill-lease and broker_stamp first.
With `--devices 2 --waiting 200 --hold-ms 50 --only broker` it checks the bound that issue E sets on the hand-over:
grant to exec plus exit to the next grant at most 10 ms. Standard library only; Ray is left out loudly where it is
not installed (`python3 -m venv /tmp/ray; /tmp/ray/bin/pip install ray`, then run this with that Python).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def percentile(values, share):
    values = sorted(values)
    return values[int(share * (len(values) - 1))] if values else float("nan")


def read_stamps(folder):
    """(device, began, ended) in nanoseconds of the monotonic clock."""
    out = []
    for file in folder.iterdir():
        began, ended = map(int, file.read_text().split())
        out.append((file.name.split("-")[0], began, ended))
    return out


def figures(name, stamps, asked, devices, hold_ms):
    """`asked`: when the first one asked."""
    begins = [b for _, b, _ in stamps]
    ends = [e for _, _, e in stamps]
    gaps = []
    for device in {d for d, _, _ in stamps}:
        mine = sorted((b, e) for d, b, e in stamps if d == device)
        gaps += [(b - e) / 1e6 for (_, e), (b, _) in zip(mine, mine[1:])]
    waits = [(b - asked) / 1e9 for b in begins]
    span = (max(ends) - min(begins)) / 1e9
    ideal = devices / (hold_ms / 1e3)
    out = {"name": name, "holds": len(stamps), "per_s": len(stamps) / span, "of_ideal": len(stamps) / span / ideal,
           "gap_p50": percentile(gaps, 0.5), "gap_p95": percentile(gaps, 0.95), "gap_max": max(gaps),
           "wait_p50": percentile(waits, 0.5), "wait_max": max(waits)}
    print("%-7s %4d holds  %7.1f/s (%3.0f %% of ideal)  hand-over p50 %6.2f p95 %7.2f max %8.2f ms  "
          "wait p50 %6.2f max %6.2f s" % (name, out["holds"], out["per_s"], 100 * out["of_ideal"], out["gap_p50"],
                                          out["gap_p95"], out["gap_max"], out["wait_p50"], out["wait_max"]))
    return out


def crowd(commands):
    """Starts all, waits for all. When the first was started."""
    asked = time.monotonic_ns()
    running = [subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for words, env in commands]
    failed = sum(p.wait() != 0 for p in running)
    if failed:
        print("  %d of %d processes failed" % (failed, len(running)))
    return asked


def with_flock(options, stamp, folder):
    if not shutil.which("flock"):
        print("SKIPPED: flock is not installed (util-linux)")
        return None
    stamps = folder / "flock"
    stamps.mkdir()
    commands = []
    for n in range(options.waiting):
        # As teams do: one lock file a GPU, and everybody picks one.
        device = n % options.devices
        env = dict(os.environ, GRISTMILL_LEASE_INDEX=str(device), GRISTMILL_LEASE_TOKEN=str(n))
        commands.append((["flock", str(folder / ("gpu%d.lock" % device)), stamp, str(stamps), str(options.hold_ms)],
                         env))
    return figures("flock", read_stamps_after(commands, stamps), crowd.asked, options.devices, options.hold_ms)


def read_stamps_after(commands, stamps):
    crowd.asked = crowd(commands)
    return read_stamps(stamps)


def with_broker(options, stamp, folder):
    stamps = folder / "broker"
    stamps.mkdir()
    socket = str(folder / "s")
    broker = subprocess.Popen([options.build + "/gristmill", "broker", "--gpus", "sleep:%d" % options.devices,
                               "--socket", socket, "--state", str(folder / "state")], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(socket):
            time.sleep(0.01)
        time.sleep(0.1)
        words = [options.build + "/gristmill-lease", "--quiet", "--socket", socket, "--", stamp, str(stamps),
                 str(options.hold_ms)]
        found = read_stamps_after([(words, None)] * options.waiting, stamps)
        out = figures("broker", found, crowd.asked, options.devices, options.hold_ms)
    finally:
        broker.terminate()
        broker.wait()
    grants = {}
    for line in open(folder / "state" / "journal.jsonl", encoding="utf-8"):
        event = json.loads(line)
        if event["kind"] == "lease_grant":
            grants[event["gpu"], event["token"]] = event["t"]
    to_exec, to_grant = [], []
    for file in stamps.iterdir():
        device, token = file.name.split("-")
        began, ended = map(int, file.read_text().split())
        key = ("sleep#" + device, int(token))
        to_exec.append((began - grants[key]) / 1e6)
        following = grants.get((key[0], key[1] + 1))
        if following:
            to_grant.append((following - ended) / 1e6)
    both = [percentile(to_exec, s) + percentile(to_grant, s) for s in (0.5, 0.95)]
    print("        grant to exec p50 %.2f p95 %.2f ms; exit to next grant p50 %.2f p95 %.2f ms; together p50 %.2f "
          "p95 %.2f ms (bound: 10 ms)" % (percentile(to_exec, 0.5), percentile(to_exec, 0.95),
                                         percentile(to_grant, 0.5), percentile(to_grant, 0.95), *both))
    out["bound_kept"] = both[0] <= 10
    return out


def with_ray(options):
    try:
        import ray
    except ImportError:
        print("SKIPPED: ray is not installed for this Python, so there is nothing to compare with it")
        return None
    ray.init(num_cpus=options.devices, include_dashboard=False, log_to_driver=False)

    @ray.remote
    class Gpu:
        def hold(self, seconds):
            began = time.monotonic_ns()
            time.sleep(seconds)
            return began, time.monotonic_ns()

    gpus = [Gpu.remote() for _ in range(options.devices)]
    ray.get([g.hold.remote(0) for g in gpus])
    asked = time.monotonic_ns()
    calls = [(n % options.devices, gpus[n % options.devices].hold.remote(options.hold_ms / 1e3))
             for n in range(options.waiting)]
    stamps = [(str(device), *ray.get(call)) for device, call in calls]
    ray.shutdown()
    return figures("ray", stamps, asked, options.devices, options.hold_ms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--hold-ms", type=int, default=20)
    parser.add_argument("--only", choices=["flock", "broker", "ray"])
    options = parser.parse_args()
    stamp = options.build + "/tests/broker_stamp"
    for needed in (stamp, options.build + "/gristmill", options.build + "/gristmill-lease"):
        if not os.access(needed, os.X_OK):
            sys.exit("broker_compare: %s is missing; build it first" % needed)
    print("%d waiting, %d devices, %d ms each; load average %.1f on %d processors" % (
        options.waiting, options.devices, options.hold_ms, os.getloadavg()[0], os.cpu_count()))
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways = {"flock": lambda: with_flock(options, stamp, folder),
                "broker": lambda: with_broker(options, stamp, folder), "ray": lambda: with_ray(options)}
        for way, run in ways.items():
            if options.only in (None, way):
                results[way] = run()
    broker = results.get("broker")
    for other in ("flock", "ray"):
        if broker and results.get(other):
            print("broker against %s: throughput x%.2f, hand-over p50 x%.2f, longest wait x%.2f" % (
                other, broker["per_s"] / results[other]["per_s"], broker["gap_p50"] / results[other]["gap_p50"],
                broker["wait_max"] / results[other]["wait_max"]))
    return 0 if not broker or broker["bound_kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
