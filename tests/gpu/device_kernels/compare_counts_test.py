#!/usr/bin/env python3
"""bench/calibration/compare_counts.py: counts of a sample against ncu's, by launch, and refusals."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("GRISTMILL_SOURCE", "."))
SCRIPT = SOURCE / "bench/calibration/compare_counts.py"
HEAD = ("name,entry,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,"
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,"
        "smsp__inst_executed.sum,sm__inst_executed_pipe_tensor.sum\n")


def launch(entry, **counts):
    out = {"entry": entry, "grid": 100, "blocks_run": 10, "threads": 33, "machine_instructions": 50}
    for category in ("load_global", "store_global", "load_shared", "store_shared", "atomic_shared", "shuffle", "mma"):
        out[category] = {"sectors": 0, "instructions": 0, "wavefronts": 0, "bytes": 0}
    for category, (what, value) in counts.items():
        out[category][what] = value
    return out


def run(counts, ncu):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "counts").write_text(counts)
        Path(folder, "ncu.csv").write_text(ncu)
        return subprocess.run([sys.executable, "-B", SCRIPT, Path(folder, "counts"), Path(folder, "ncu.csv")],
                              capture_output=True, text=True)


class Comparing(unittest.TestCase):
    def test_counts_of_a_sample_are_scaled_to_the_grid(self):
        counts = json.dumps({"name": "one", "launches": [
            launch("a", load_global=("sectors", 40)), launch("b", load_shared=("wavefronts", 3), shuffle=("instructions", 7))]}) + "\n"
        done = run(counts, HEAD + "one,a,400,0,0,200,1000,0\none,b,0,0,0,200,500,0\nother,c,1,1,1,1,1,1\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second, third = done.stdout.splitlines()[1:4]
        self.assertEqual(first.split(), ["one", "a", "1.000", "1.000", "1.000", "1.000", "0.500", "1.000"])
        self.assertEqual(second.split()[5], "1.500")
        self.assertIn("not run by the mock", third)
        loads = next(line for line in done.stdout.splitlines() if line.startswith("load sectors"))
        self.assertEqual(loads.split(), ["load", "sectors", "2", "2", "2", "1.000"])

    def test_what_is_of_no_such_form_is_refused(self):
        for counts, ncu, words in (("{}\n", HEAD, "counts, line 1"), ("", "name,entry\n", "no column"),
                                   ("x\n", HEAD, "counts, line 1")):
            done = run(counts, ncu)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
