#!/usr/bin/env python3
"""A coordinator and two nodes on the loopback; one node is killed with -9 while it measures.

The whole programs as a user starts them, without rights and without a network. The folder of the programs is GRISTMILL_BIN, as
ctest sets it.
"""

import os
import shutil
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(SOURCE / "bench" / "cluster"))

from cluster import cluster, leave  # noqa: E402
from programs import until  # noqa: E402
from work import fixed_work  # noqa: E402

BIN = Path(os.environ.get("GRISTMILL_BIN", SOURCE / "build" / "dev"))
PATIENCE = 240
# Of six candidates for a problem four are right, one is wrong and one does not compile.
EXPECTED = {"PASSED": 4, "INCORRECT_NUMERICAL": 1, "COMPILE_ERROR": 1}


class two_nodes_on_the_loopback(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="cluster-loopback-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        work = fixed_work(self.folder / "work", each=6, problems=["tiny"], texts=1)
        self.one = cluster(BIN, self.folder / "cluster", work.flags(), nodes=["n1", "n2"], workers=2, node_workers=1)
        self.addCleanup(self.one.stop)

    def events_of(self, node, kind):
        return [event for event in self.one.log.events(kind) if event["data"].get("node") == node]

    def assert_all_is_there(self):
        verdicts, twice = self.one.log.verdicts()
        self.assertEqual(twice, [])
        given = [event for event in self.one.log.events("verdict") if event["data"]["key"].startswith("file/")]
        self.assertEqual(Counter(event["data"]["status"] for event in given), EXPECTED, verdicts)
        sound, words = self.one.log.verify()
        self.assertTrue(sound, words)
        granted, closed, faults = self.one.log.leases()
        self.assertEqual(faults, [])
        self.assertEqual(granted, closed)
        self.assertGreaterEqual(granted, 5)
        self.assertEqual(self.one.left_behind(), [])

    def test_a_node_that_is_killed_while_it_measures_costs_no_verdict(self):
        self.one.start()
        until(lambda: [e for e in self.one.log.events("lease_active") if e["gpu"].startswith("n1/")], PATIENCE,
              "n1 measures")
        self.one.nodes["n1"].kill()
        code, deaf, stuck = self.one.finish(PATIENCE)
        self.assertIn(code, (0, 3), self.one.coordinator.err()[-3000:])
        self.assertEqual((deaf, stuck), ([], []))
        self.assertEqual(len(self.events_of("n1", "node_lost")), 1)
        self.assertEqual(self.events_of("n2", "node_lost"), [])
        self.assert_all_is_there()

    def test_a_node_that_is_told_to_end_leaves_in_peace(self):
        self.one.start()
        until(lambda: self.events_of("n1", "node_joined") and self.events_of("n2", "node_joined"), PATIENCE,
              "both nodes are there")
        self.assertEqual(leave(self.one.nodes["n1"]), 0, self.one.nodes["n1"].err()[-3000:])
        code, deaf, stuck = self.one.finish(PATIENCE)
        self.assertIn(code, (0, 3), self.one.coordinator.err()[-3000:])
        self.assertEqual((deaf, stuck), ([], []))
        self.assertEqual(self.one.log.events("node_lost"), [])
        self.assert_all_is_there()


if __name__ == "__main__":
    unittest.main()
