"""A coordinator and its nodes as processes, on a network of namespaces with TLS, or on the loopback without.

    one = cluster(build, folder, work, net=net, nodes=["n1", "n2", "n3"])
    one.start()
    one.until_verdicts(10, 120)
    one.nodes["n2"].kill()
    one.finish(300)
    one.left_behind()                  # what should not be there any more
"""

import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import private_machine
from programs import environment, program, until
from run_log import run_log

PORT = 4100


class loopback:
    """All on one machine, with no network of our own and no rights: what `net` is when there is none."""

    carrier = "loopback"

    def command(self, _, *command):
        return list(map(str, command))

    def address(self, _):
        return "127.0.0.1"


class cluster:
    def __init__(self, build, folder, work, net=None, nodes=("n1", "n2", "n3"), gpus="mock:h200", workers=6,
                 node_workers=2, compile_slots=1, heartbeat="1s", node_timeout="15s", run_flags=(),
                 node_flags=()):
        self.build, self.folder = Path(build).resolve(), Path(folder)
        self.gristmill = self.build / "gristmill"
        self.net = net or loopback()
        self.tls = net is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run = self.folder / "run"
        self.log = run_log(self.gristmill, self.run)
        self.node_timeout = float(node_timeout.rstrip("s"))
        self.times = ["--heartbeat", heartbeat, "--node-timeout", node_timeout]
        self.node_part = ["--gpus", gpus, "--compile-slots", str(compile_slots), "--workers", str(node_workers),
                          *node_flags]
        self.coordinator = program("coordinator", [], self.folder)
        self.begin = [self.gristmill, "run", *work, "--gpus", "nodes:" + re.sub(r":\d+$", "", gpus), "--workers",
                      str(workers), "--out", self.run, "--json", *run_flags]
        self.names = list(nodes)
        self.nodes = {}
        # What stands before the command of every node, and on which machine of the network each runs if not its own.
        self.wrap, self.machine_of = [], {}
        self.port = PORT if self.tls else 0

    def trust(self, name):
        return ["--tls", self.folder / "trust" / "nodes" / name] if self.tls else []

    def start(self, before_nodes=lambda: None):
        if self.tls:
            self.make_trust(self.folder / "trust", [*self.names, "stranger"])
        listen = "%s:%d" % (self.net.address("hub"), self.port)
        self.begin += ["--listen", listen, *self.times]
        if self.tls:
            self.begin += ["--tls", self.folder / "trust" / "coordinator"]
        self.coordinator.start(self.net.command("hub", *self.begin))
        self.until_listening(60)
        before_nodes()
        for name in self.names:
            self.add(name)
        return self

    def make_trust(self, folder, names):
        command = [self.gristmill, "cluster", "init", folder]
        for name in names:
            command += ["--node", name]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("gristmill cluster init: " + (done.stderr or done.stdout).strip())

    def until_listening(self, at_most):
        def port():
            if not self.coordinator.runs():
                raise RuntimeError("the coordinator has ended with %s: %s" %
                                   (self.coordinator.child.returncode, self.coordinator.last_words()))
            found = re.findall(r"listening on \S+:(\d+)", self.coordinator.err())
            return int(found[-1]) if found else 0

        self.port = until(port, at_most, "the coordinator listens")

    def add(self, name, gristmill=None, wrap=(), env=None, trust=None):
        """Starts a node. `wrap` stands before its command, such as ["unshare", …]."""
        command = [*(wrap or self.wrap), gristmill or self.gristmill, "node", "--join",
                   "%s:%d" % (self.net.address("hub"), self.port), *(self.trust(name) if trust is None else trust),
                   "--name", name, "--state", self.folder / "state" / name, "--until-run-ends", *self.node_part,
                   *self.times]
        (self.folder / "state").mkdir(exist_ok=True)
        one = program(name, self.net.command(self.machine_of.get(name, name), *command), self.folder,
                      {**environment(self.folder), **(env or {})})
        self.nodes[name] = one
        return one.start()

    def resume(self):
        self.coordinator.start(self.net.command("hub", self.gristmill, "resume", self.run, "--json"))

    def until_verdicts(self, count, at_most):
        def enough():
            if not self.coordinator.runs():
                raise RuntimeError("the run has ended with %s before the fault: %s" %
                                   (self.coordinator.child.returncode, self.coordinator.last_words()))
            return self.log.count() >= count

        until(enough, at_most, "%d verdicts" % count, apart=0.3)

    def finish(self, at_most):
        """Waits for the end of the run and of its nodes: exit code of the coordinator or None; nodes that had to be told
        by SIGTERM, as one that is cut off when the run ends never hears of it; nodes that did not end even then."""
        code = self.coordinator.wait(at_most)
        end = time.monotonic() + 20
        deaf = [name for name, node in self.nodes.items() if node.child and node.wait(end - time.monotonic()) is None]
        for name in deaf:
            self.nodes[name].signal(signal.SIGTERM)
        end = time.monotonic() + 60
        return code, deaf, [name for name in deaf if self.nodes[name].wait(end - time.monotonic()) is None]

    def stop(self):
        """Ends everything at once, in whatever state."""
        for one in [self.coordinator, *self.nodes.values()]:
            if one.child:
                one.kill()

    def status(self):
        """`gristmill cluster status --json`, or None."""
        command = [self.gristmill, "cluster", "status", "--json", "--join",
                   "%s:%d" % (self.net.address("hub"), self.port)]
        if self.tls:
            command += self.trust(self.names[0])
        done = subprocess.run(self.net.command("hub", *command), capture_output=True, text=True, timeout=30,
                              env=self.coordinator.env)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def left_behind(self, patience=5.0):
        """What a run must not leave: processes, temporary files, job directories, tensors, sockets."""
        end = time.monotonic() + patience
        while processes_below(self.folder) and time.monotonic() < end:
            time.sleep(0.1)
        out = ["process %d: %s" % item for item in processes_below(self.folder).items()]
        for path in (self.folder / "tmp").rglob("*"):
            out.append("temporary file %s" % path.relative_to(self.folder))
        # What a node that was killed leaves goes with its next start; all others must have cleaned up.
        states = [self.folder / "state" / name for name, node in self.nodes.items()
                  if node.child and node.child.returncode != -signal.SIGKILL]
        for path in [self.run, *states]:
            for found in path.rglob("*"):
                kind = found.lstat().st_mode
                if stat.S_ISSOCK(kind) or found.suffix == ".new":
                    out.append("file %s" % found.relative_to(self.folder))
                elif found.parent.name in ("jobs", "data"):
                    out.append("in %s/: %s" % (found.parent.name, found.relative_to(self.folder)))
        return out


def processes_below(folder):
    """{pid: command}: in namespaces of our own every process, elsewhere those that name the folder or work in it."""
    if private_machine.inside():
        return private_machine.processes()
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc/%s/cmdline" % entry).read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = os.readlink("/proc/%s/cwd" % entry)
        except OSError:
            continue
        if int(entry) != os.getpid() and (str(folder) in words or where.startswith(str(folder))):
            found[int(entry)] = words.strip()
    return found


def leave(node, at_most=150):
    """SIGTERM: the node tells the hub, lets end what measures, and ends with 0."""
    node.signal(signal.SIGTERM)
    return node.wait(at_most)
