#!/usr/bin/env python3
"""A cluster under random kills and cuts for some minutes, and then the sums.

usage: bench/cluster/chaos.py BUILD_FOLDER [--minutes 20] [--every 10] [--workers 200] [--seed 1] [--work mock|sleep]
                              [--sleep 100ms] [--quiet] [--node-timeout 15s] [--heartbeat 1s] [--out FOLDER]
                              [--markdown FILE]

Three nodes in network namespaces over TLS, as in faults.py. About every `--every` seconds one of these, drawn from
the seed, hits a node that is whole: kill -9 and a new start, SIGTERM and a new start, SIGSTOP, link down, and what it
sends or gets is lost, each for a time that is sometimes shorter and sometimes longer than the time-out. In the first
third of the time the coordinator is killed as well and gone on with by `gristmill resume`; then it stays the same
process, so that its memory can be watched. `--quiet` does no harm: what memory does then is what chaos has to be
compared with.

At the end: is the log sound and each lease closed exactly once, has no candidate two verdicts, is any process, temporary file,
job folder, tensor or socket left, and how does the memory of the coordinator change per minute, with an interval. A run
remembers every verdict, so memory counts as flat when what is lowest in each of twenty stretches of time grows by no more
than 1.4 KiB a verdict and 5 % of its mean; more than that comes and goes, with what waits for nodes that are cut off.

Exit code 0 when all holds, 1 when it does not, 77 where namespaces may not be made.
"""

import argparse
import math
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import private_machine  # noqa: E402
from cluster import cluster  # noqa: E402
from network import has_netem, network, why_no_impairment  # noqa: E402
from usage import MINUTES_TO_JUDGE, slope, watch, why_it_grows  # noqa: E402
from work import fixed_work  # noqa: E402

NODES = ["n1", "n2", "n3"]
# How often each is drawn, and whether lines must be such that they can be impaired.
HARMS = {"kill": 3, "leave": 1, "freeze": 1, "cut": 3, "unheard": 1, "deaf": 1, "coordinator": 1}
# What a run keeps of each verdict as long as it lasts, by heaptrack (docs/cluster.md). Memory that grows by more leaks.
KIB_OF_A_VERDICT = 1.4
# Of the samples of the last coordinator: it loads, and its first attempts come in.
SKIPPED = 0.2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--every", type=float, default=10)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", choices=["mock", "sleep"], default="mock",
                        help="mock: kernels on the mock H200, compiled and judged on the nodes; sleep: leases only")
    parser.add_argument("--sleep", default="100ms", metavar="TIME", help="with --work sleep: how long a device sleeps")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--node-timeout", default="15s")
    parser.add_argument("--heartbeat", default="1s")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


class chaos:
    def __init__(self, one, options):
        self.one, self.options = one, options
        self.chance = random.Random(options.seed)
        self.done = dict.fromkeys(HARMS, 0)
        self.busy = {}
        # A rehearsal cannot be gone on with: its verdicts lack what `resume` reads.
        self.resumable = options.work != "sleep"
        self.said = []
        self.died = []
        self.began = time.monotonic()

    def say(self, text):
        line = "%7.1f s  %s" % (time.monotonic() - self.began, text)
        self.said.append(line)
        print(line, flush=True)

    def run(self, until):
        """Until that moment, or the end of the run; then everything is whole again."""
        due = time.monotonic()
        first_third = self.began + (until - self.began) / 3
        while time.monotonic() < until and self.one.coordinator.runs():
            time.sleep(0.2)
            self.mend(time.monotonic())
            self.look_for_dead()
            if time.monotonic() < due or self.options.quiet:
                continue
            due = time.monotonic() + self.options.every * self.chance.uniform(0.5, 1.5)
            possible = {name: weight for name, weight in HARMS.items()
                        if name != "coordinator" or self.resumable and time.monotonic() < first_third}
            if self.one.net.carrier == "plain":
                possible = {n: w for n, w in possible.items() if n not in ("unheard", "deaf")}
            self.strike(self.chance.choices(list(possible), list(possible.values()))[0])
        self.mend(None)

    def look_for_dead(self):
        """A node that ended though nobody told it to: written down once, and started again."""
        for name in NODES:
            node = self.one.nodes[name]
            if name in self.busy or node.runs() or not self.one.coordinator.runs():
                continue
            # The run has ended, and its coordinator will in a moment.
            over = node.child.returncode == 0 and "the run is over" in node.last_words(1)
            if not over:
                self.died.append("%s ended by itself with %s: %s" % (name, node.child.returncode, node.last_words()))
                self.say(self.died[-1])
                node.start(node.child.args)

    def strike(self, what):
        whole = [name for name in NODES if name not in self.busy]
        if what == "coordinator":
            self.say("kill -9 of the coordinator")
            self.one.coordinator.kill()
            time.sleep(self.chance.uniform(0.1, 5))
            self.one.resume()
            self.one.until_listening(120)
            self.done[what] += 1
            return
        # One always stays whole, else the run would wait for nothing but the end of a cut.
        if len(whole) < 2:
            return
        name = self.chance.choice(whole)
        timeout = self.one.node_timeout
        length = self.chance.choice([self.chance.uniform(0.5, 5), self.chance.uniform(timeout, 1.6 * timeout)])
        self.say("%s of %s for %.1f s" % (what, name, length))
        node = self.one.nodes[name]
        if what == "kill":
            node.kill()
        elif what == "leave":
            node.signal(signal.SIGTERM)
        elif what == "freeze":
            node.signal(signal.SIGSTOP)
        elif what == "cut":
            self.one.net.down(name)
        else:
            self.one.net.deafen(name, "out" if what == "unheard" else "in")
        self.done[what] += 1
        self.busy[name] = (time.monotonic() + length, what)

    def mend(self, now):
        for name, (when, what) in list(self.busy.items()):
            node = self.one.nodes[name]
            if now is not None and (now < when or what == "leave" and node.runs()):
                continue
            # One that has not come so far as to wait for signals is ended by them.
            if what == "leave" and (code := node.wait(150)) not in (0, -signal.SIGTERM):
                self.say("%s did not leave in peace (%s): %s" % (name, code, node.last_words()))
            if what in ("kill", "leave"):
                if self.one.coordinator.runs():
                    node.start(node.child.args)
            elif what == "freeze":
                node.signal(signal.SIGCONT)
            else:
                self.one.net.heal(name)
            del self.busy[name]


def main():
    options = arguments()
    private_machine.enter()
    keep = options.out is not None
    top = Path(options.out or tempfile.mkdtemp(prefix="cluster-chaos-")).resolve()
    seconds = 60 * options.minutes
    if options.work == "sleep":
        gpus, work = "sleep:%s:8" % options.sleep, ["softmax", "rmsnorm", "--proposer", "sleep"]
    else:
        # Small problems of our own, so that they have to travel. A problem has some 240 points, and a quiet machine
        # of two processors judged 14 a second: the run must not be out of points before its time is over.
        names = ["tiny_%d" % number for number in range(1, 4 + math.ceil(5 * options.minutes))]
        small = fixed_work(top / "work", each=0, problems=names, rows=40, classes=200)
        gpus, work = "mock:h200:2", [*(str(small.folder / name) for name in names), "--proposer", "random", "--oracle",
                                     "native", "--toolchain", "clang"]
    work += ["--seed", str(options.seed), "--budget", "%ds" % seconds]
    try:
        carrier = "netem" if has_netem() else "plain" if why_no_impairment() else "wire"
        if carrier == "plain":
            print("no one-way loss in this chaos: " + why_no_impairment(), flush=True)
        with network(["hub", *NODES], carrier=carrier, seed=options.seed) as net:
            one = cluster(options.build, top, work, net=net, nodes=NODES, gpus=gpus, workers=options.workers,
                          node_workers=options.workers, compile_slots=1, heartbeat=options.heartbeat,
                          node_timeout=options.node_timeout)
            try:
                one.start()
                harm = chaos(one, options)
                stop = threading.Event()
                watcher = watch(lambda: one.coordinator.pid if one.coordinator.runs() else 0, stop)
                harm.run(harm.began + seconds)
                lasted = time.monotonic() - harm.began
                # One that is cut off at the end never hears of it; one that does not end even by SIGTERM is a fault.
                code, _, late = one.finish(300)
                stop.set()
                samples = watcher.join()
                text, good = page(one, options, harm, lasted, samples, code, late)
            finally:
                one.stop()
            print("\n" + text)
            if options.markdown:
                options.markdown.write_text(text)
            return 0 if good else 1
    finally:
        if not keep:
            shutil.rmtree(top, ignore_errors=True)


def page(one, options, harm, lasted, samples, code, late):
    """One page for a person, and whether all of it is as it must be."""
    faults = []
    verdicts, twice = one.log.verdicts()
    sound, words = one.log.verify()
    granted, closed, lease_faults = one.log.leases()
    left = one.left_behind(30)
    if code not in (0, 3, 5):
        faults.append("the coordinator ended with %s: %s" % (code, one.coordinator.last_words()))
    # The budget of the run is as long, but begins a little earlier.
    if lasted < 0.95 * 60 * options.minutes:
        faults.append("the run was over after %.1f minutes: it had nothing left to try" % (lasted / 60))
    if late:
        faults.append("nodes that did not end: " + ", ".join(late))
    if twice:
        faults.append("%d candidates have two verdicts, such as %s %s" % (len(twice), *twice[0]))
    if not sound:
        faults.append("log verify: " + " / ".join(words.split("\n")[:3]))
    faults += harm.died[:5]
    faults += lease_faults[:5] + ["left: " + line for line in left[:10]]
    if granted == 0:
        faults.append("no lease was granted at all")

    last = [s for s in samples if s.pid == samples[-1].pid]
    resident = [(s.at, s.rss_kib / 1024) for s in last]
    memory = slope(resident, skip=SKIPPED)
    # What waits for a node that was cut off comes and goes; a leak raises the lowest as well.
    floor = slope(resident, skip=SKIPPED, lowest=True)
    files = slope([(s.at, s.files) for s in last], skip=SKIPPED)
    watched = last[int(len(last) * SKIPPED):]
    remembered = one.log.count_between("verdict", watched[0].wall, watched[-1].wall) * KIB_OF_A_VERDICT / 1024
    long_enough = floor.minutes >= MINUTES_TO_JUDGE
    if fault := why_it_grows(floor, remembered):
        faults.append(fault)
    if files.known and long_enough and files.low * files.minutes > 5:
        faults.append("open files grow: at least %.0f in %.1f minutes" % (files.low * files.minutes, files.minutes))
    counts = {kind: one.log.count(kind) for kind in ("attempt_finished", "node_joined", "node_returned", "node_lost", "node_left",
                                                       "handed_in")}
    struck = ", ".join("%s %d" % item for item in harm.done.items() if item[1]) or "none"
    lines = [
        "# Chaos", "",
        "%s. %.1f of %g minutes, seed %d, 3 nodes, %d workers, work: %s, lines: %s, time-out %s." %
        ("**All holds**" if not faults else "**FAILED**", lasted / 60, options.minutes, options.seed, options.workers, options.work,
         one.net.carrier, options.node_timeout), "",
        "- harm: " + struck,
        "- %d attempts finished, %d candidates with a verdict, none with two: %s" %
        (counts["attempt_finished"], len(verdicts), "yes" if not twice else "NO"),
        "- %d leases granted, %d closed exactly once" % (granted, closed),
        "- `gristmill log verify`: " + words.split("\n")[-1],
        "- nodes joined %d times, returned %d times, left %d times, lost %d times; %d measurements handed in later" %
        (counts["node_joined"], counts["node_returned"], counts["node_left"], counts["node_lost"], counts["handed_in"]),
        "- memory of the coordinator: " + memory.text("MiB"),
        "- the lowest of each block: %s; verdicts of the time are %.3f MiB a minute of it%s" %
        (floor.text("MiB"), remembered / max(memory.minutes, 1e-9), "" if long_enough else "; too short to be judged"),
        "- its open files: " + files.text(""),
        "- left behind: %s" % ("nothing" if not left else "%d things" % len(left)), ""]
    lines += ["- FAULT: " + fault for fault in faults]
    return "\n".join(lines) + "\n", not faults


if __name__ == "__main__":
    sys.exit(main())
