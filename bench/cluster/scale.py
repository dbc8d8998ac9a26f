#!/usr/bin/env python3
"""How large a cluster one coordinator carries, all of it on this machine: node processes with sleep devices.

usage: bench/cluster/scale.py BUILD_FOLDER [--nodes 20] [--devices 200] [--workers 2000] [--hold 2s] [--tickets 2000]
                              [--grants 300] [--free-workers 40] [--free-hold 200ms] [--series 500,1000,2000,5000,10000,20000]
                              [--seconds 20] [--out FOLDER] [--csv FILE] [--svg FILE] [--markdown FILE]

`gristmill run --listen --gpus nodes:sleep:HOLD --proposer sleep` on the loopback, without TLS, and as many
`gristmill node` as are asked for. Three parts:

1. Start: with --workers workers, seconds from the start of the coordinator until all devices are lent for the first time
   and all workers are placed. Then gristmill-bench-grants, a process of its own with one worker, steps into the line behind
   all others and out of it --tickets times: time from the request to the broker's answer.
2. Grants: with --free-workers workers, fewer than there are devices, the same process takes --grants leases: time from
   the request to the grant where a device is always free.
3. --series: for each number of workers the coordinator's processor time, in per cent of one core, over --seconds, and
   its resident memory, as CSV and SVG.

A rehearsal: nothing is compiled or measured, so this says what the coordinator's part of the work costs and nothing about
kernels. Nodes and coordinator share this machine's cores; the load of all is printed beside. Build the targets gristmill,
gristmill-jail and gristmill-bench-grants (GRISTMILL_BENCH=ON). Standard library only.
"""

import argparse
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import cluster  # noqa: E402
from plot import write_svg  # noqa: E402
from programs import until  # noqa: E402
from usage import of_process  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2000)
    parser.add_argument("--hold", default="2s")
    parser.add_argument("--tickets", type=int, default=2000)
    parser.add_argument("--grants", type=int, default=300)
    parser.add_argument("--free-workers", type=int, default=40)
    parser.add_argument("--free-hold", default="200ms")
    parser.add_argument("--series", default="500,1000,2000,5000,10000,20000")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--patience", type=float, default=300, help="seconds for a cluster to be complete")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


class rehearsal:
    """A cluster of sleep devices that goes on until it is stopped."""

    def __init__(self, options, folder, workers, metered=False, hold=None):
        # The meter is a node with one worker of its own.
        self.options, self.workers, self.metered = options, workers + metered, metered
        names = ["n%d" % (i + 1) for i in range(options.nodes)]
        each = -(-options.devices // options.nodes)
        self.devices = each * options.nodes
        self.one = cluster(options.build, folder,
                           ["softmax", "rmsnorm", "transpose", "--proposer", "sleep", "--seed", "1", "--budget", "2h"],
                           nodes=names, gpus="sleep:%s:%d" % (hold or options.hold, each), workers=self.workers,
                           node_workers=-(-workers // options.nodes), compile_slots=0)
        self.meter = None

    def __enter__(self):
        self.began = time.monotonic()
        self.one.start(self.start_meter if self.metered else lambda: None)
        return self

    def __exit__(self, *_):
        if self.meter:
            self.meter.kill()
            self.meter.wait()
        self.one.stop()

    def start_meter(self):
        self.meter = subprocess.Popen(
            [str(self.one.build / "bench" / "gristmill-bench-grants"), "127.0.0.1:%d" % self.one.port],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.meter.stdout.readline() != "ready\n":
            raise RuntimeError("gristmill-bench-grants could not join")

    def complete(self, devices=None):
        """(devices that have been lent, workers on nodes, workers here), once all are there."""
        wanted = self.devices if devices is None else devices

        def all_there():
            if not self.one.coordinator.runs():
                raise RuntimeError("the coordinator has ended: " + self.one.coordinator.last_words())
            lent = len({e["gpu"] for e in self.one.log.events("lease_grant")})
            snapshot = self.one.status() or {}
            away = sum(node.get("workers", 0) for node in snapshot.get("nodes", []))
            here = snapshot.get("workers_here", 0)
            return (lent, away, here) if lent >= wanted and away + here >= self.workers else None

        return until(all_there, self.options.patience, "all devices are lent and all workers placed", apart=2)

    def first_times(self):
        """Seconds from the start of the run, by its log: last node ready, last device lent for the first time."""
        started = self.one.log.events("run_started")[0]["wall"]
        nodes = [(e["wall"] - started) / 1e9 for e in self.one.log.events("node_joined")
                 if e["data"].get("node") != "meter"]
        first = {}
        for event in self.one.log.events("lease_grant"):
            first.setdefault(event["gpu"], (event["wall"] - started) / 1e9)
        return max(nodes), max(first.values())

    def measure(self, what, count):
        self.meter.stdin.write("%s %d\n" % (what, count))
        self.meter.stdin.flush()
        return json.loads(self.meter.stdout.readline() or "{}")

    def cost(self, seconds):
        """What the coordinator uses over that time: (% of a core, MiB, threads, leases a second)."""
        before, leases = of_process(self.one.coordinator.pid), self.one.log.count("lease_grant")
        began = time.monotonic()
        time.sleep(seconds)
        after, took = of_process(self.one.coordinator.pid), time.monotonic() - began
        leases = self.one.log.count("lease_grant") - leases
        return 100 * (after.cpu - before.cpu) / took, after.rss_kib / 1024, after.threads, leases / took


def start_and_tickets(options, top):
    with rehearsal(options, top / "start", options.workers, metered=True) as one:
        lent, away, here = one.complete()
        seen = time.monotonic() - one.began
        nodes, devices = one.first_times()
        found = one.measure("tickets", options.tickets)
        processor, memory, threads, rate = one.cost(options.seconds)
    return ["- %d node processes, %d workers (%d on nodes, %d with the coordinator), %d sleep devices of %s." %
            (options.nodes, options.workers, away - 1, here, lent, options.hold),
            "- Start: by the log the last node is ready after %.1f s, the last device lent after %.1f s; all seen "
            "complete after %.1f s (goal 20 s)." % (nodes, devices, seen),
            "- Remote request to its answer by the broker, behind %d others in line, %d samples: p50 %.0f us, p99 %.0f us." %
            (options.workers - lent, found["tickets"], found["ticket_p50_us"], found["ticket_p99_us"]),
            "- Coordinator meanwhile: %.0f %% of one core, %.0f MiB, %d threads, %.0f leases a second." %
            (processor, memory, threads, rate)]


def free_grants(options, top):
    with rehearsal(options, top / "grants", options.free_workers, metered=True, hold=options.free_hold) as one:
        one.complete(devices=0)
        found = one.measure("grants", options.grants)
        _, _, _, rate = one.cost(5)
    return ["- Remote grant where a device is free (%d workers on %d devices of %s, %.0f leases a second), %d samples: p50 "
            "%.0f us, p99 %.0f us, max %.0f us (goal p50 1000 us)." %
            (options.free_workers, one.devices, options.free_hold, rate, found["grants"], found["grant_p50_us"],
             found["grant_p99_us"], found["grant_max_us"])]


def series(options, top):
    rows = []
    for workers in map(int, filter(None, options.series.split(","))):
        folder = top / ("series-%d" % workers)
        try:
            with rehearsal(options, folder, workers) as one:
                _, away, here = one.complete()
                processor, memory, threads, rate = one.cost(options.seconds)
                nodes, _ = one.first_times()
            rows.append({"workers": workers, "on_nodes": away, "cpu_percent": round(processor, 1),
                         "rss_mib": round(memory, 1), "threads": threads, "leases_per_s": round(rate, 1),
                         "nodes_ready_s": round(nodes, 1)})
            print(json.dumps(rows[-1]), flush=True)
        except (TimeoutError, RuntimeError) as error:
            # Also an answer: so far and no further.
            print("%d workers: %s" % (workers, error), flush=True)
            break
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return rows


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    top = Path(options.out or tempfile.mkdtemp(prefix="cluster-scale-")).resolve()
    try:
        load = os.getloadavg()[0]
        lines = start_and_tickets(options, top) + free_grants(options, top)
        lines.append("- This machine: %d cores, load %.1f before; all processes share them." % (os.cpu_count(), load))
        print("\n".join(lines), flush=True)
        rows = series(options, top)
        if rows and options.csv:
            with open(options.csv, "w", newline="") as out:
                writer = csv.DictWriter(out, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        if rows and options.svg:
            write_svg(options.svg, "Coordinator of %d nodes and %d sleep devices of %s" %
                      (options.nodes, options.devices, options.hold), "workers",
                      [("Processor time", "% of one core", [(r["workers"], r["cpu_percent"]) for r in rows]),
                       ("Resident memory", "MiB", [(r["workers"], r["rss_mib"]) for r in rows])])
        if options.markdown:
            options.markdown.write_text("\n".join(lines) + "\n")
        return 0
    finally:
        if not options.out:
            shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
