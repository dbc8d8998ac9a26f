#!/usr/bin/env python3
"""A cluster of three nodes that is hit by one fault after the other; its verdicts must equal the calm run's.

usage: bench/cluster/faults.py BUILD_FOLDER [SCENARIO...] [--each 40] [--rows 9] [--classes 33] [--node-timeout 15s]
                               [--heartbeat 1s] [--out FOLDER] [--markdown FILE] [--carrier auto|netem|wire] [--list]

Coordinator and nodes are processes in network namespaces of their own, joined by a bridge, and speak TLS under
certificates of `gristmill cluster init`. All work on one fixed list of candidates (`--proposer scripted`) with a budget of as many
attempts. The scenario `calm` goes first; each other one waits until a third of the verdicts are there, does its harm,
and lets the run end. Then

- the verdict set, by (problem, candidate), must equal the calm one's, none twice;
- `gristmill log verify` must find the log sound, and each lease must be closed exactly once, counted here as well;
- where a node is to be noticed as lost, `node_lost` must stand in the log within 3 s of the configured time-out, and
  where it is not, it must not;
- no process, temporary file, job folder, tensor or socket may be left.

Exit code 0 when all hold, 1 when one does not, 77 where namespaces may not be made. The machine's own network is not touched
(private_machine.py). Needs iproute2 and util-linux; `clock_off` also Debian's faketime.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import private_machine  # noqa: E402
from cluster import cluster  # noqa: E402
from network import network, why_no_impairment  # noqa: E402
from run_log import difference  # noqa: E402
from scenarios import SCENARIOS, report  # noqa: E402
from work import fixed_work  # noqa: E402

NODES = ["n1", "n2", "n3"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--each", type=int, default=40, help="candidates for each of the two problems")
    parser.add_argument("--rows", type=int, default=9)
    parser.add_argument("--classes", type=int, default=33)
    parser.add_argument("--node-timeout", default="15s")
    parser.add_argument("--heartbeat", default="1s")
    parser.add_argument("--at-most", type=float, default=600, help="seconds for one run")
    parser.add_argument("--out", type=Path, help="folder that keeps runs and logs; default: one that is removed")
    parser.add_argument("--markdown", type=Path, help="the table goes there as well")
    parser.add_argument("--carrier", default="auto", choices=["auto", "netem", "wire"])
    parser.add_argument("--list", action="store_true", help="prints the scenarios and does nothing")
    return parser.parse_args()


class row:
    def __init__(self, name):
        self.name = name
        self.faults, self.notes = [], []
        self.verdicts = {}
        self.seconds = 0.0
        self.detection = None

    def cells(self, calm):
        found = "%d of %d%s" % (len(self.verdicts), len(calm), "" if self.verdicts == calm else " DIFFER")
        noticed = "-" if self.detection is None else "%.1f s" % self.detection
        return [self.name, "ok" if not self.faults else "FAILED", found, "%.0f s" % self.seconds, noticed,
                "; ".join(self.faults + self.notes)]


def one_run(name, options, build, folder, work, calm):
    """Starts a cluster, does the scenario's harm, and holds the result against the rules above."""
    scenario = SCENARIOS[name]
    out = row(name)
    began = time.monotonic()
    # A line that can be impaired costs time where it is not the kernel's own, so only those have one that need it.
    carrier = options.carrier if scenario.impairs else "plain"
    with network(["hub", *NODES, "stranger"], carrier=carrier) as net:
        one = cluster(build, folder, work.flags(), net=net, nodes=NODES, heartbeat=options.heartbeat,
                      node_timeout=options.node_timeout)
        try:
            told = report(one, out.notes)
            scenario.before(one, told)
            one.start()
            if scenario.harm:
                one.until_verdicts(max(1, len(work.candidates) // 3), options.at_most)
                scenario.harm(one, told)
            code, deaf, stuck = one.finish(options.at_most)
            if code is None:
                out.faults.append("no end within %g s" % options.at_most)
            elif code not in (0, 3):
                out.faults.append("the coordinator ended with %s: %s" % (code, one.coordinator.last_words()))
            for node in deaf:
                if node in told.may_be_lost or node == told.cut_node:
                    out.notes.append("%s never heard of the end and was told by SIGTERM" % node)
                else:
                    out.faults.append("%s did not end with the run" % node)
            if stuck:
                out.faults.append("did not end after SIGTERM: " + ", ".join(stuck))
            scenario.after(one, told)
        except (RuntimeError, TimeoutError, OSError, subprocess.SubprocessError) as error:
            out.faults.append(str(error))
        one.stop()
        out.seconds = time.monotonic() - began
        judge(one, told, scenario, out, calm)
        if scenario.impairs:
            out.notes.append("carrier " + net.carrier)
    return out


def judge(one, told, scenario, out, calm):
    out.verdicts, twice = one.log.verdicts()
    out.faults += ["two verdicts for %s %s" % name for name in twice]
    sound, words = one.log.verify()
    if not sound:
        out.faults.append("log verify: " + " / ".join(words.split("\n")[:3]))
    granted, closed, faults = one.log.leases()
    out.faults += faults[:3]
    out.notes.append("%d leases" % granted)
    if granted == 0 or closed != granted:
        out.faults.append("%d of %d leases are closed exactly once" % (closed, granted))
    if calm is not None:
        out.faults += difference(calm, out.verdicts)[:3]
    elif not out.verdicts:
        out.faults.append("no verdict at all")
    out.faults += told.faults
    out.detection = told.detection(one)
    limit = told.limit(one)
    if limit is not None and (out.detection is None or out.detection > limit):
        out.faults.append("node_lost %s, allowed %.1f s after the cut" %
                          ("never" if out.detection is None else "after %.1f s" % out.detection, limit))
    lost = [event["data"].get("node") for event in one.log.events("node_lost")]
    unasked = [name for name in lost if name not in told.may_be_lost]
    if unasked:
        out.faults.append("lost without need: " + ", ".join(map(str, unasked)))
    out.faults += ["left: " + line for line in one.left_behind()[:3]]


def main():
    options = arguments()
    if options.list or not options.build:
        for name, scenario in SCENARIOS.items():
            print("%-16s %s" % (name, scenario.what))
        return 0 if options.list else 2
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        print("no scenario is called %s; there are %s" % (unknown[0], ", ".join(SCENARIOS)), file=sys.stderr)
        return 2
    private_machine.enter()
    build = options.build.resolve()
    keep = options.out is not None
    top = Path(options.out or tempfile.mkdtemp(prefix="cluster-faults-")).resolve()
    top.mkdir(parents=True, exist_ok=True)
    try:
        work = fixed_work(top / "work", options.each, rows=options.rows, classes=options.classes)
        wanted = [name for name in SCENARIOS if name != "calm" and (not options.scenarios or name in options.scenarios)]
        rows, calm = [], None
        for name in ["calm", *wanted]:
            reason = SCENARIOS[name].needs() or (why_no_impairment() if SCENARIOS[name].impairs else "")
            if reason:
                print("%s: SKIPPED: %s" % (name, reason), flush=True)
                continue
            done = one_run(name, options, build, top / name, work, calm)
            calm = done.verdicts if calm is None else calm
            rows.append(done)
            print("  ".join(done.cells(calm)), flush=True)
        table = markdown(rows, calm)
        print("\n" + table)
        if options.markdown:
            options.markdown.write_text(table)
        return 1 if any(r.faults for r in rows) else 0
    finally:
        if not keep:
            shutil.rmtree(top, ignore_errors=True)


def markdown(rows, calm):
    lines = ["| scenario | | verdicts as in the calm run | took | noticed after | |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(r.cells(calm)) + " |" for r in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
