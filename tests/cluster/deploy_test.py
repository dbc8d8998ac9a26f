#!/usr/bin/env python3
"""Whether the files of deploy/ are well formed and name only flags that the program has.

The programs are those of GRISTMILL_BIN, as ctest sets it. What needs systemd is skipped, loudly, where there is none.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
DEPLOY = SOURCE / "deploy"
BIN = Path(os.environ.get("GRISTMILL_BIN", SOURCE / "build" / "dev"))


def flags_of(*verb):
    done = subprocess.run([BIN / "gristmill", *verb, "--help"], capture_output=True, text=True)
    return set(re.findall(r"--[a-z][a-z-]+", done.stdout))


class files_of_deploy(unittest.TestCase):
    def test_systemd_finds_nothing_wrong_with_the_units(self):
        if not shutil.which("systemd-analyze"):
            print("SKIPPED: systemd-analyze is not installed", file=sys.stderr)
            self.skipTest("no systemd")
        for unit in sorted((DEPLOY / "systemd").glob("*.service")):
            done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), unit.name)

    def test_every_flag_in_them_is_one_of_the_program(self):
        known = {"node": flags_of("node"), "run": flags_of("run")}
        for name, text in (("node", (DEPLOY / "systemd" / "gristmill-node.service").read_text()),
                           ("node", (DEPLOY / "systemd" / "gristmill-node.env").read_text()),
                           ("node", (DEPLOY / "slurm" / "gristmill-node.sbatch").read_text()),
                           ("run", (DEPLOY / "systemd" / "gristmill-run.env").read_text()),
                           ("run", (DEPLOY / "systemd" / "gristmill-run@.service").read_text())):
            # Comments speak of other programs' flags.
            lines = [line for line in text.split("\n") if not line.startswith("#")]
            used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines)))
            self.assertTrue(used)
            self.assertEqual(used - known[name], set())

    def test_the_sbatch_script_is_well_formed(self):
        script = DEPLOY / "slurm" / "gristmill-node.sbatch"
        self.assertEqual(subprocess.run(["bash", "-n", script]).returncode, 0)
        if shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "-S", "warning", script], capture_output=True, text=True)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
