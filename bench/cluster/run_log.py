"""What the log of a run says: verdicts by (problem, candidate), events of the cluster, and whether it is sound."""

import json
import subprocess
from pathlib import Path


# As docs/events.md has them: given back, not taken up, taken back.
LEASE_ENDS = ("lease_release", "lease_withdraw", "lease_revoke")


class run_log:
    def __init__(self, gristmill, run):
        self.gristmill, self.run = str(gristmill), Path(run)

    def events(self, *kinds):
        command = [self.gristmill, "log", "show", str(self.run), "--json"]
        for kind in kinds:
            command += ["--kind", kind]
        done = subprocess.run(command, capture_output=True, text=True)
        # A kind that the log does not have yet is an error of the command; for us it is no event.
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def verdicts(self):
        """{(problem, candidate): what was decided}, and the candidates that have more than one verdict."""
        found, twice = {}, []
        for event in self.events("verdict"):
            data = event["data"]
            name = (event["problem"], event["candidate"])
            if name in found:
                twice.append(name)
            found[name] = "%s %s %s" % (data["status"], data["objective_ns"], data["speedup"])
        return found, twice

    def count(self, kind="verdict"):
        return len(self.events(kind))

    def count_between(self, kind, first, last):
        """Events of a kind from one Unix time to another, in seconds."""
        return sum(1 for event in self.events(kind) if first <= event["wall"] / 1e9 <= last)

    def verify(self):
        """(sound, what `gristmill log verify` says)"""
        done = subprocess.run([self.gristmill, "log", "verify", str(self.run)], capture_output=True, text=True)
        return done.returncode == 0, (done.stdout + done.stderr).strip()

    def leases(self):
        """(granted, closed exactly once, what is wrong): counted here, besides `log verify`."""
        granted, closed, faults = set(), {}, []
        for event in self.events():
            name = (event["gpu"], event["token"])
            if event["kind"] == "lease_grant":
                if name in granted:
                    faults.append("token %s of %s is granted twice" % (event["token"], event["gpu"]))
                granted.add(name)
            elif event["kind"] in LEASE_ENDS:
                closed[name] = closed.get(name, 0) + 1
        for name, times in closed.items():
            if times != 1 or name not in granted:
                faults.append("lease %s of %s is closed %d times" % (name[1], name[0], times))
        for name in granted - set(closed):
            faults.append("lease %s of %s is never closed" % (name[1], name[0]))
        return len(granted), sum(1 for n in closed.values() if n == 1), faults


def difference(calm, other):
    """Lines that tell where two verdict sets differ; empty when they are equal."""
    out = []
    for name in sorted(set(calm) | set(other)):
        if calm.get(name) != other.get(name):
            out.append("%s %s: calm %s, here %s" % (name[0], name[1][:12], calm.get(name, "no verdict"),
                                                    other.get(name, "no verdict")))
    return out
