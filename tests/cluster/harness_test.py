#!/usr/bin/env python3
"""Whether bench/cluster/faults.py sees what goes wrong: it is run on a stand-in that does right, and on ones that do not.

Skips with exit code 77 where network namespaces may not be made. No build of gristmill takes part.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCH = HERE.parent.parent / "bench" / "cluster"
sys.path.insert(0, str(BENCH))

import private_machine  # noqa: E402


class faults_on_a_stand_in(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="harness-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        shutil.copy(HERE / "stand_in.py", self.folder / "gristmill")
        (self.folder / "gristmill").chmod(0o755)

    def faults(self, *scenarios, defect=None):
        if defect:
            (self.folder / "defect").write_text(defect)
        done = subprocess.run(
            [sys.executable, "-B", str(BENCH / "faults.py"), str(self.folder), *scenarios, "--each", "9",
             "--node-timeout", "2s", "--heartbeat", "0.5s", "--at-most", "200"],
            capture_output=True, text=True, timeout=1200)
        return done.returncode, done.stdout + done.stderr

    def assert_seen(self, defect, scenario, words):
        code, text = self.faults(scenario, defect=defect)
        self.assertEqual(code, 1, text)
        self.assertIn(words, text)

    def test_a_cluster_that_does_right_passes(self):
        code, text = self.faults("kill_node", "kill_and_return", "kill_coordinator", "node_leaves", "link_down_5s",
                                 "unheard", "slow_lines", "wrong_certificate", "wrong_version")
        self.assertEqual(code, 0, text)

    def test_a_second_verdict_is_seen(self):
        self.assert_seen("twice", "kill_node", "two verdicts for")

    def test_a_verdict_that_is_lost_with_its_node_is_seen(self):
        self.assert_seen("forgets", "kill_node", "here no verdict")

    def test_a_loss_that_nobody_notices_is_seen(self):
        self.assert_seen("blind", "kill_node", "node_lost never")

    def test_a_lease_that_stays_open_is_seen(self):
        self.assert_seen("open", "kill_node", "is never closed")

    def test_a_file_that_is_left_is_seen(self):
        self.assert_seen("litter", "kill_node", "left: temporary file tmp/litter")

    def test_a_process_that_is_left_is_seen(self):
        self.assert_seen("stays", "kill_node", "sleep 300")

    def test_a_node_of_another_version_that_gets_in_is_seen(self):
        self.assert_seen("trusting", "wrong_version", "the stranger ")


if __name__ == "__main__":
    if private_machine.way_in()[0] is None:
        private_machine.skip(private_machine.way_in()[1])
    os.environ.pop(private_machine.MARK, None)
    unittest.main()
