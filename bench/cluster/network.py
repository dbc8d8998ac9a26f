"""A small network of machines that are namespaces: who is connected, cut off, slow or heard in one direction only.

    net = network(["hub", "n1", "n2"])
    net.address("n1")                 # 10.77.0.2
    net.command("n1", "ping", …)      # the command line that runs there
    net.down("n1"); net.up("n1")      # the cable is pulled, and put back
    net.impair("n1", delay_ms=100, loss=0.02)    # both ways, each
    net.deafen("n1", "out")           # what n1 sends is lost, what it is sent arrives; "in" the other way round
    net.heal("n1")

Each machine has eth0 on a bridge in a namespace of its own. The line between is a veth pair, and netem of the kernel
delays and loses on it. Where the kernel has no netem, a line that is to be impaired is a pair of TAP devices with
wire.py between (`carrier="wire"`), which does the same frame by frame. `net.carrier` says which it is.

Only inside `private_machine.enter()`.
"""

import os
import subprocess
import sys
from pathlib import Path

import private_machine
from private_machine import run

HERE = Path(__file__).resolve().parent
SWITCH = "switch"


def has_netem():
    """Whether the kernel knows netem: asked on an interface that is made for it."""
    run("ip", "link", "add", "ask0", "type", "veth", "peer", "name", "ask1")
    done = run("tc", "qdisc", "add", "dev", "ask0", "root", "netem", "delay", "1ms", check=False)
    run("ip", "link", "del", "ask0")
    return done.returncode == 0


def why_no_impairment():
    """Empty when lines can be delayed and made to lose; else the reason."""
    if has_netem():
        return ""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "the kernel has no netem, and /dev/net/tun may not be opened"
    return ""


class network:
    def __init__(self, machines, carrier="auto", seed=1):
        if carrier == "auto":
            carrier = "netem" if has_netem() else "wire"
        if carrier not in ("netem", "wire", "plain"):
            raise ValueError("carrier is netem, wire, plain or auto, not %s" % carrier)
        self.carrier = carrier
        self.machines = list(machines)
        self.wires = {}
        run("ip", "netns", "add", SWITCH)
        self.there(SWITCH, "ip", "link", "add", "br0", "type", "bridge")
        self.there(SWITCH, "ip", "link", "set", "br0", "up")
        for number, name in enumerate(self.machines):
            self.connect(name, number, seed + number)

    def connect(self, name, number, seed):
        port = "p%d" % number
        run("ip", "netns", "add", name)
        if self.carrier == "wire":
            for where, device in ((name, "eth0"), (SWITCH, port)):
                self.there(where, "ip", "tuntap", "add", "dev", device, "mode", "tap")
            self.wires[name] = subprocess.Popen(
                [sys.executable, "-B", str(HERE / "wire.py"), "/run/netns/%s:eth0" % name,
                 "/run/netns/%s:%s" % (SWITCH, port), "--seed", str(seed)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            private_machine.helpers.add(self.wires[name].pid)
            if self.wires[name].stdout.readline() != "ready\n":
                raise RuntimeError("the wire of %s does not start" % name)
        else:
            run("ip", "link", "add", port, "netns", SWITCH, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.there(SWITCH, "ip", "link", "set", port, "master", "br0", "up")
        self.there(name, "ip", "address", "add", "%s/24" % self.address(name), "dev", "eth0")
        self.there(name, "ip", "link", "set", "eth0", "up")
        self.there(name, "ip", "link", "set", "lo", "up")

    def address(self, name):
        return "10.77.0.%d" % (self.machines.index(name) + 1)

    def command(self, name, *command):
        return ["nsenter", "--net=/run/netns/%s" % name, *map(str, command)]

    def there(self, name, *command):
        return run(*self.command(name, *command))

    def port(self, name):
        return "p%d" % self.machines.index(name)

    def down(self, name):
        self.there(SWITCH, "ip", "link", "set", self.port(name), "down")

    def up(self, name):
        self.there(SWITCH, "ip", "link", "set", self.port(name), "up")

    def impair(self, name, delay_ms=0, loss=0.0):
        self.shape(name, "both", delay_ms, loss)

    def deafen(self, name, direction):
        if direction not in ("out", "in"):
            raise ValueError("a direction is out or in, not %s" % direction)
        self.shape(name, direction, 0, 1.0)

    def heal(self, name):
        if self.carrier != "plain":
            self.shape(name, "both", 0, 0.0)
        self.up(name)

    def shape(self, name, direction, delay_ms, loss):
        """What happens to frames that the machine sends ("out"), gets ("in"), or both."""
        if self.carrier == "plain":
            raise RuntimeError("this network was made without a way to impair its lines")
        if self.carrier == "wire":
            self.wires[name].stdin.write("%s %g %g\n" % (direction, delay_ms, loss))
            self.wires[name].stdin.flush()
            if self.wires[name].stdout.readline() != "done\n":
                raise RuntimeError("the wire of %s is gone" % name)
            return
        # netem works on what an interface sends: eth0 of the machine for "out", the port of the switch for "in".
        for way, where, device in (("out", name, "eth0"), ("in", SWITCH, self.port(name))):
            if direction not in (way, "both"):
                continue
            if delay_ms or loss:
                self.there(where, "tc", "qdisc", "replace", "dev", device, "root", "netem", "delay",
                           "%gms" % delay_ms, "loss", "%g%%" % (100 * loss), "limit", "100000")
            else:
                run(*self.command(where, "tc", "qdisc", "del", "dev", device, "root"), check=False)

    def close(self):
        for wire in self.wires.values():
            wire.stdin.close()
            wire.stdout.close()
            wire.kill()
            wire.wait()
            private_machine.helpers.discard(wire.pid)
        self.wires = {}
        for name in [*self.machines, SWITCH]:
            run("ip", "netns", "del", name, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
