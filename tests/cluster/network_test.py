#!/usr/bin/env python3
"""Whether the network of bench/cluster does what it says: cuts, one-way loss, delay, loss, and nothing left behind.

Skips with exit code 77 where network namespaces may not be made.
"""

import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench" / "cluster"))

import private_machine  # noqa: E402
from network import has_netem, network  # noqa: E402

# One datagram each way, numbered, so that the test sees which of them arrived.
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 9000))
print("ready", flush=True)
while True:
    text, who = s.recvfrom(100)
    print(text.decode(), flush=True)
    s.sendto(text, who)
"""
ASK = """
import select, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
many, apart, patience = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
sent, back = {}, {}
def listen(until):
    while time.monotonic() < until:
        if select.select([s], [], [], max(0, until - time.monotonic()))[0]:
            try:
                number = int(s.recv(100))
            except OSError:
                continue
            back[number] = time.monotonic() - sent[number]
for number in range(many):
    sent[number] = time.monotonic()
    try:
        s.sendto(str(number).encode(), (sys.argv[1], 9000))
    except OSError:
        pass
    listen(time.monotonic() + apart)
listen(time.monotonic() + patience)
times = sorted(back.values())
print(len(back), times[len(times) // 2] if times else -1)
"""


class network_rules(unittest.TestCase):
    carrier = "wire"

    def setUp(self):
        self.net = network(["hub", "n1"], carrier=self.carrier)
        self.addCleanup(self.net.close)
        self.server = subprocess.Popen(self.net.command("hub", sys.executable, "-c", ECHO), stdout=subprocess.PIPE,
                                       text=True)
        self.addCleanup(self.stop)
        self.assertEqual(self.server.stdout.readline(), "ready\n")

    def stop(self):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def ask(self, many=1, apart=0.01, patience=0.3):
        """(how many answers came back, median round trip in seconds)"""
        done = subprocess.run(self.net.command("n1", sys.executable, "-c", ASK, self.net.address("hub"), many, apart,
                                               patience), capture_output=True, text=True, check=True)
        count, median = done.stdout.split()
        return int(count), float(median)

    def heard(self):
        """What the server has been told, after it has been stopped."""
        self.server.kill()
        return len(self.server.stdout.read().split())

    def test_machines_reach_each_other(self):
        self.assertEqual(self.ask(20)[0], 20)

    def test_a_pulled_cable_lets_nothing_through_until_it_is_back(self):
        self.assertEqual(self.ask()[0], 1)
        self.net.down("n1")
        self.assertEqual(self.ask(3)[0], 0)
        self.net.up("n1")
        end = time.monotonic() + 10
        while self.ask()[0] == 0:
            self.assertLess(time.monotonic(), end)

    def test_a_machine_that_is_not_heard_still_hears(self):
        self.ask()
        self.net.deafen("n1", "out")
        self.assertEqual(self.ask(5)[0], 0)
        self.assertEqual(self.heard(), 1)

    def test_a_machine_that_does_not_hear_is_still_heard(self):
        self.ask()
        self.net.deafen("n1", "in")
        self.assertEqual(self.ask(5)[0], 0)
        self.assertEqual(self.heard(), 6)

    def test_delay_is_added_both_ways_and_taken_away(self):
        before = self.ask(5)[1]
        self.net.impair("n1", delay_ms=100)
        count, median = self.ask(5, patience=0.6)
        self.assertEqual(count, 5)
        self.assertGreaterEqual(median, 0.2)
        self.net.heal("n1")
        self.assertLess(before, 0.2)
        self.assertEqual(self.ask(5)[0], 5)

    def test_about_the_share_is_lost_that_was_asked_for(self):
        self.net.impair("n1", loss=0.2)
        # Each round trip passes twice: 0.64 of 500 is 320, with a deviation of 11.
        count = self.ask(500, apart=0.001)[0]
        self.assertTrue(260 <= count <= 380, count)

    def test_nothing_is_left_when_it_is_closed(self):
        self.stop()
        self.net.close()
        self.assertEqual(private_machine.run("ip", "netns", "list").stdout, "")
        self.assertEqual(private_machine.processes(), {})


@unittest.skipUnless(private_machine.inside() and has_netem(), "the kernel has no netem")
class network_rules_by_netem(network_rules):
    carrier = "netem"


class what_is_left(unittest.TestCase):
    def test_a_process_that_nobody_waits_for_is_seen(self):
        left = subprocess.Popen(["sleep", "60"])
        try:
            self.assertIn(left.pid, private_machine.processes())
        finally:
            left.kill()
            left.wait()
        self.assertNotIn(left.pid, private_machine.processes())

    def test_the_machine_s_own_network_is_out_of_reach(self):
        links = private_machine.run("ip", "-brief", "link").stdout.split("\n")
        self.assertEqual([line.split()[0] for line in links if line], ["lo"])


if __name__ == "__main__":
    private_machine.enter()
    os.chdir("/")
    unittest.main()
