"""A line between two TAP devices that delays and loses frames, for kernels without netem.

usage: wire.py NAMESPACE:DEVICE NAMESPACE:DEVICE [--seed N]

The first end is the machine, the second the switch. Prints `ready`, then reads lines `out|in|both DELAY_MS LOSS` from
standard input and answers each with `done`: frames that the machine sends (`out`) or gets (`in`) are from then on
held back that long and lost with that probability. A frame that is on its way already keeps the old rule. Ends with
its standard input.
"""

import argparse
import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0002, 0x1000, 0x40000000
FRAME_MAX = 65536
# Of one direction: as a switch that is overrun, what comes on top is lost.
WAITING_MAX = 20000


def attach(end):
    namespace, device = end.rsplit(":", 1)
    there = os.open(namespace, os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(there, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns " + namespace)
    os.close(there)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class direction:
    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.delay, self.loss = 0.0, 0.0
        # (when it is due, frame); in order, because a line does not let frames overtake.
        self.waiting = collections.deque()

    def take(self, now, chance):
        for _ in range(64):
            try:
                frame = os.read(self.source, FRAME_MAX)
            except (BlockingIOError, OSError):
                return
            if self.loss and chance.random() < self.loss or len(self.waiting) >= WAITING_MAX:
                continue
            due = now + self.delay
            if self.waiting:
                due = max(due, self.waiting[-1][0])
            self.waiting.append((due, frame))

    def give(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            try:
                os.write(self.sink, self.waiting[0][1])
            except OSError:
                pass  # The interface is down: a frame on a pulled cable.
            self.waiting.popleft()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("machine")
    parser.add_argument("switch")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    near, far = attach(options.machine), attach(options.switch)
    ways = {"out": direction(near, far), "in": direction(far, near)}
    chance = random.Random(options.seed)
    print("ready", flush=True)
    ask = select.poll()
    for fd in (near, far, 0):
        ask.register(fd, select.POLLIN)
    text = b""
    while True:
        now = time.monotonic()
        due = min((w.waiting[0][0] for w in ways.values() if w.waiting), default=None)
        ready = {fd for fd, _ in ask.poll(None if due is None else max(0.0, 1000 * (due - now)))}
        now = time.monotonic()
        for way in ways.values():
            if way.source in ready:
                way.take(now, chance)
            way.give(now)
        if 0 in ready:
            got = os.read(0, 4096)
            if not got:
                return
            text += got
            while b"\n" in text:
                line, text = text.split(b"\n", 1)
                name, delay_ms, loss = line.decode().split()
                for way in ways.values() if name == "both" else [ways[name]]:
                    way.delay, way.loss = float(delay_ms) / 1000, float(loss)
                print("done", flush=True)


if __name__ == "__main__":
    sys.exit(main())
