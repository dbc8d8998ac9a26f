#!/usr/bin/env python3
"""Equal share against rebalancing: GPU-seconds to 95 % of the final geomean, paired by seed.

usage: bench/planner_compare.py --bin BUILD_FOLDER [--seeds 5] [--attempts 120] [--workers 4]
                                [--gpus mock:h200:2] [--planner TEXT]... [PROBLEM...]

Runs `gristmill run` once for each planner and seed, with the same budget of attempts, and reads the
logs. Times of the kernels are MODELLED; GPU-seconds are the time that leases of the mock were held,
which is time of this machine's processors, so attempts are printed beside them. The geomean is over
all problems, a problem without a passed candidate counting as 1. Two targets: 95 % of each run's own
final geomean, and 95 % of what equal share reached with the same seed.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 19: 2.093}


def run(a, planner, seed, out):
    done = subprocess.run(
        [os.path.join(a.bin, "gristmill"), "run", *a.problem, "--planner", planner, "--seed", str(seed),
         "--budget", f"{a.attempts}attempts", "--workers", str(a.workers), "--gpus", a.gpus, "--out", out],
        capture_output=True, text=True)
    if done.returncode not in (0, 3, 5):
        sys.exit(f"{planner}, seed {seed}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    shown = subprocess.run([os.path.join(a.bin, "gristmill"), "log", "show", out, "--json"],
                           capture_output=True, text=True, check=True)
    return [json.loads(line) for line in shown.stdout.splitlines()]


def curve(events):
    """(GPU-seconds, attempts, geomean) after every finished attempt."""
    names = events[0]["data"]["problems"]
    best = {name: 0.0 for name in names}
    gpu = attempts = 0
    points = []
    for e in events:
        if e["kind"] != "attempt_finished":
            continue
        d = e["data"]
        gpu += d["gpu_ns"]
        attempts += 1
        if d.get("improved"):
            best[e["problem"]] = math.log(d["speedup"]) if d["speedup"] > 0 else 0.0
        points.append((gpu / 1e9, attempts, math.exp(sum(best.values()) / len(best))))
    return points


def first_at(points, target):
    for gpu, attempts, mean in points:
        if mean >= target:
            return gpu, attempts
    return None


def interval(differences):
    mean = statistics.mean(differences)
    if len(differences) < 2:
        return mean, math.inf
    t = T_95.get(len(differences) - 1, 2.0)
    return mean, t * statistics.stdev(differences) / math.sqrt(len(differences))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--attempts", type=int, default=120)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--gpus", default="mock:h200:2")
    parser.add_argument("--planner", action="append", default=[])
    parser.add_argument("problem", nargs="*")
    a = parser.parse_args()
    planners = ["equal"] + (a.planner or ["rebalance"])
    print("MODELLED times; GPU-s = time that leases of the mock were held on this machine")
    print(f"{'planner':<28} {'seed':>4} {'final':>7} {'GPU-s':>8} | own 95 %: GPU-s attempts | equal's 95 %: GPU-s attempts")
    rows = {}
    with tempfile.TemporaryDirectory(prefix="planner-compare-") as folder:
        for seed in range(1, a.seeds + 1):
            shared = None
            for i, planner in enumerate(planners):
                points = curve(run(a, planner, seed, os.path.join(folder, f"{i}-{seed}")))
                final = points[-1][2]
                shared = 0.95 * final if i == 0 else shared
                own, common = first_at(points, 0.95 * final), first_at(points, shared)
                rows[(planner, seed)] = (final, own, common, points[-1])
                print(f"{planner:<28} {seed:>4} {final:>7.3f} {points[-1][0]:>8.1f} | {own[0]:>15.1f} {own[1]:>8} | "
                      + (f"{common[0]:>18.1f} {common[1]:>8}" if common else "never reached"), flush=True)
    for planner in planners[1:]:
        print(f"\n{planner} minus equal, paired over {a.seeds} seeds (95 % t interval)")
        for what, pick in (
                ("final geomean", lambda r: r[0]),
                ("GPU-s to 95 % of its own final", lambda r: r[1][0]),
                ("attempts to 95 % of its own final", lambda r: r[1][1]),
                ("GPU-s to 95 % of equal's final", lambda r: r[2][0] if r[2] else None),
                ("attempts to 95 % of equal's final", lambda r: r[2][1] if r[2] else None)):
            pairs = [(pick(rows[(planner, s)]), pick(rows[("equal", s)])) for s in range(1, a.seeds + 1)]
            if any(x is None for p in pairs for x in p):
                print(f"  {what:<36} not reached with every seed")
                continue
            mean, half = interval([x - y for x, y in pairs])
            verdict = "no ranking: the interval spans 0" if abs(mean) <= half else ("less" if mean < 0 else "more")
            print(f"  {what:<36} {mean:+9.3f} +- {half:.3f}  ({verdict})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
