"""The faults that bench/cluster/faults.py does to a cluster: what happens before it starts, in the middle, and after."""

import os
import shutil
import signal
import time
from pathlib import Path

import private_machine
from programs import until

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
DAY = 86400
# Beyond the configured time-out.
DETECTION_SLACK = 3.0


class report:
    """What a scenario says about itself: notes, faults, when it cut whom, and who may be lost."""

    def __init__(self, one, notes):
        self.one, self.notes = one, notes
        self.faults = []
        self.cut_wall, self.cut_node, self.expected_within = None, None, None
        self.may_be_lost = set()

    def cut(self, node, at_once=False, noticed=True):
        """From now on the node cannot be reached. It must be noticed in time, unless `noticed` is false."""
        self.cut_wall, self.cut_node = time.time_ns(), node
        if noticed:
            self.may_be_lost.add(node)
            self.expected_within = DETECTION_SLACK + (0.0 if at_once else self.one.node_timeout)

    def detection(self, one):
        """Seconds from the cut to the first `node_lost` of that node after it."""
        if self.cut_wall is None:
            return None
        late = [event["wall"] for event in one.log.events("node_lost")
                if event["data"].get("node") == self.cut_node and event["wall"] >= self.cut_wall]
        return (min(late) - self.cut_wall) / 1e9 if late else None

    def limit(self, _):
        return self.expected_within


class scenario:
    def __init__(self, what, harm=None, before=None, after=None, impairs=False, needs=None):
        self.what, self.harm, self.impairs = what, harm, impairs
        self.before = before or (lambda one, told: None)
        self.after = after or (lambda one, told: None)
        self.needs = needs or (lambda: "")


def still_going(one, told, what):
    if not one.coordinator.runs():
        told.notes.append("the run was over before " + what)
        return False
    return True


# A process dies.

def kill_node(one, told):
    told.cut("n2", at_once=True)
    one.nodes["n2"].kill()


def kill_node_and_return(one, told):
    kill_node(one, told)
    time.sleep(3)
    if still_going(one, told, "n2 returned"):
        one.add("n2")


def kill_coordinator(one, told):
    told.may_be_lost.update(one.names)
    one.coordinator.kill()
    time.sleep(3)
    one.resume()


def kill_everything(one, told):
    told.may_be_lost.update(one.names)
    for program in [one.coordinator, *one.nodes.values()]:
        program.kill()
    one.resume()
    one.until_listening(60)
    for name in one.names:
        one.add(name)


def freeze_node(one, told):
    """A process that stands still keeps its connection: only the heartbeat tells."""
    told.cut("n2")
    one.nodes["n2"].signal(signal.SIGSTOP)
    time.sleep(one.node_timeout + 5)
    one.nodes["n2"].signal(signal.SIGCONT)


def node_leaves(one, told):
    # A node that leaves by itself is not lost.
    one.nodes["n2"].signal(signal.SIGTERM)
    code = one.nodes["n2"].wait(150)
    if code != 0:
        told.faults.append("after SIGTERM n2 ended with %s: %s" % (code, one.nodes["n2"].last_words()))


def as_containers(one, _):
    """Each node is process 1 of a namespace of its own, all on one machine: same number, address and MAC."""
    one.wrap = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    one.machine_of = dict.fromkeys(one.names, "n1")


def children_of(pid):
    """[(number, whether it is a zombie)]"""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc/%s/stat" % entry).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append((int(entry), fields[0] == "Z"))
    return found


def container_stops(one, told):
    inner = {name: children_of(one.nodes[name].pid)[0][0] for name in one.names}
    for name, pid in inner.items():
        dead = sum(zombie for _, zombie in children_of(pid))
        if dead > 3:
            told.faults.append("%s as process 1 has %d children that nobody reaped" % (name, dead))
    os.kill(inner["n2"], signal.SIGTERM)
    code = one.nodes["n2"].wait(150)
    if code != 0:
        told.faults.append("after SIGTERM n2 ended with %s: %s" % (code, one.nodes["n2"].last_words()))


# The network fails.

def link_down(seconds):
    def harm(one, told):
        # Between the time-out and the end of the slack it may be noticed and need not.
        told.cut("n2", noticed=seconds > one.node_timeout + DETECTION_SLACK)
        if seconds > one.node_timeout - DETECTION_SLACK:
            told.may_be_lost.add("n2")
        one.net.down("n2")
        time.sleep(seconds)
        still_going(one, told, "the link was up again")
        one.net.up("n2")
    return harm


def one_way(direction):
    def harm(one, told):
        # Both sides may be the one that gives the connection up, and then n2 comes back.
        told.cut("n2")
        one.net.deafen("n2", direction)
        time.sleep(one.node_timeout + 10)
        one.net.heal("n2")
    return harm


def slow_lines(one, told):
    for name in one.names:
        one.net.impair(name, delay_ms=100, loss=0.02)
    told.notes.append("100 ms and 2 % each way on all nodes")


# Somebody who should not be let in.

def refused(one, told, node, words):
    """The stranger is turned away, or never becomes a node of the run."""
    code = node.wait(15)
    snapshot = one.status() or {}
    known = [each.get("node") for each in snapshot.get("nodes", [])]
    if "stranger" in known:
        told.faults.append("the stranger is a node of the run")
    if code == 0:
        told.faults.append("the stranger ended with 0")
    if not any(word in node.err().lower() for word in words):
        told.faults.append("the stranger was not told why: %s" % (node.last_words() or "nothing"))
    told.notes.append("stranger: exit %s, %s" % ("(tries on)" if code is None else code, node.last_words(1)[-120:]))
    node.kill()
    del one.nodes["stranger"]


def wrong_certificate(one, told):
    one.make_trust(one.folder / "other-trust", ["stranger"])
    node = one.add("stranger", trust=["--tls", one.folder / "other-trust" / "nodes" / "stranger"])
    refused(one, told, node, ["certificate", "tls"])


def borrowed_certificate(one, told):
    """The right authority, and the name of another node."""
    node = one.add("stranger", trust=one.trust("n1"))
    refused(one, told, node, ["certificate"])


def version_of(build):
    """The text that `gristmill --version` prints behind the name."""
    return private_machine.run(build / "gristmill", "--version").stdout.split()[-1]


def wrong_version(one, told):
    """A copy of the program whose version text is another one: no switch for tests is needed."""
    version = version_of(one.build)
    other = version[:-1] + ("1" if version[-1] == "0" else "0")
    copy = one.folder / "other-version"
    copy.mkdir()
    for program in one.build.glob("gristmill-*"):
        (copy / program.name).symlink_to(program)
    content = (one.build / "gristmill").read_bytes()
    (copy / "gristmill").write_bytes(content.replace(version.encode(), other.encode()))
    (copy / "gristmill").chmod(0o755)
    if version_of(copy) != other:
        told.faults.append("the copy still says version " + version_of(copy))
        return
    node = one.add("stranger", gristmill=copy / "gristmill")
    refused(one, told, node, ["version"])
    shutil.rmtree(copy)


# The machine of a node is not as it should be.

DISK = "48m"


def small_disk(one, _):
    state = one.folder / "state" / "n2"
    state.mkdir(parents=True)
    private_machine.run("mount", "-t", "tmpfs", "-o", "size=" + DISK, "tmpfs", state)


def fill_disk(one, told):
    told.may_be_lost.add("n2")
    filler = one.folder / "state" / "n2" / "filler"
    written = 0
    with open(filler, "wb", buffering=0) as out:
        try:
            while True:
                written += out.write(b"\0" * 65536)
        except OSError:
            pass
    told.notes.append("%s on n2 full for 20 s (%d MiB by the filler)" % (DISK, written >> 20))
    time.sleep(20)
    filler.unlink()


def take_disk_away(one, _):
    one.nodes["n2"].kill()
    left = [str(path.relative_to(one.folder)) for path in (one.folder / "state" / "n2").rglob("*")
            if path.parent.name in ("jobs", "data")]
    private_machine.run("umount", "-l", one.folder / "state" / "n2")
    if left:
        raise RuntimeError("left on n2: " + left[0])


def other_clocks(one, told):
    """n1 a day ahead and n2 a day behind by the wall clock, n3 by the clocks that only count."""
    for name, seconds in (("n1", DAY), ("n2", -DAY)):
        one.nodes[name].kill()
        one.add(name, env={"LD_PRELOAD": str(FAKETIME), "FAKETIME": "%+d" % seconds,
                           "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    one.nodes["n3"].kill()
    one.add("n3", wrap=["unshare", "--time", "--monotonic", str(DAY), "--boottime", str(DAY), "--fork",
                        "--kill-child=KILL"])
    told.may_be_lost.update(one.names)
    until(lambda: set(one.names) <= {each["node"] for each in (one.status() or {}).get("nodes", [])
                                     if each.get("state") == "ready"}, 60, "nodes with other clocks are ready")
    told.notes.append("wall clocks of n1, n2: +1 day, -1 day; counting clocks of n3: +1 day")


def has_faketime():
    if not FAKETIME.exists():
        return "Debian's package faketime is not installed"
    if not os.path.exists("/proc/self/ns/time"):
        return "the kernel has no time namespaces"
    return ""


SCENARIOS = {
    "calm": scenario("nothing happens"),
    "kill_node": scenario("kill -9 of a node", kill_node),
    "kill_and_return": scenario("kill -9 of a node, which is started again after 3 s", kill_node_and_return),
    "kill_coordinator": scenario("kill -9 of the coordinator, then `gristmill resume`", kill_coordinator),
    "kill_all": scenario("kill -9 of everything, then `gristmill resume` and new nodes", kill_everything),
    "freeze_node": scenario("a node stands still (SIGSTOP) for longer than the time-out", freeze_node),
    "node_leaves": scenario("SIGTERM to a node", node_leaves),
    "containers": scenario("all nodes are process 1 on one machine; one gets SIGTERM", container_stops,
                           before=as_containers),
    "link_down_5s": scenario("the link of a node is down for 5 s", link_down(5)),
    "link_down_60s": scenario("the link of a node is down for 60 s", link_down(60)),
    "unheard": scenario("what a node sends is lost", one_way("out"), impairs=True),
    "deaf": scenario("what is sent to a node is lost", one_way("in"), impairs=True),
    "slow_lines": scenario("100 ms delay and 2 % loss on all lines", slow_lines, impairs=True),
    "wrong_certificate": scenario("a node with the certificate of another authority", wrong_certificate),
    "borrowed_certificate": scenario("a node under the certificate of another node", borrowed_certificate),
    "wrong_version": scenario("a node of another version", wrong_version),
    "full_disk": scenario("the disk of a node is full for 20 s", fill_disk, before=small_disk, after=take_disk_away),
    "clock_off": scenario("clocks of the nodes a day off", other_clocks, needs=has_faketime),
}
