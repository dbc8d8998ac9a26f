#!/usr/bin/env python3
"""bench/calibration/expansion_table.py: what one application becomes, its source form, and refusals."""

import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("GRISTMILL_SOURCE", "."))
SCRIPT = SOURCE / "bench/calibration/expansion_table.py"
HEAD = ["ID", "Kernel Name", "Grid Size", "smsp__inst_executed.sum", "smsp__inst_executed_pipe_alu.sum",
        "smsp__inst_executed_pipe_lsu.sum"]
BLOCKS = 132


def launch(number, issue, alu, lsu):
    return [str(number), "expand", f"({BLOCKS}, 1, 1)", f"{issue * BLOCKS:,}", str(alu * BLOCKS), str(lsu * BLOCKS)]


def run(names, launches):
    with tempfile.TemporaryDirectory() as folder:
        chained, counted = Path(folder, "chained.csv"), Path(folder, "ncu.csv")
        chained.write_text("probe,variant,metric,value,unit\n"
                           + "".join(f"expansion,{n},chained,{c},cycles\n" for n, c in names))
        with open(counted, "w", newline="") as file:
            csv.writer(file).writerows([HEAD, *launches])
        return subprocess.run([sys.executable, "-B", SCRIPT, chained, counted], capture_output=True, text=True)


NOTHING = [("nothing.u32", 5), ("nothing.f32", 4)]
AROUND = [launch(0, 12, 1, 2), launch(1, 28, 1, 18), launch(2, 12, 1, 2), launch(3, 28, 1, 18)]


class Expansion(unittest.TestCase):
    def test_a_row_is_an_eighth_of_the_difference_less_what_stands_around(self):
        done = run([*NOTHING, ("rem.u32", 62)], [*AROUND, launch(4, 29, 7, 2), launch(5, 181, 55, 18)])
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual((row["name"], row["issue"], row["alu"], row["cycles"]), ("rem.u32", "17.00", "6.00", "57.00"))
        self.assertEqual(row["xu"], "")

    def test_the_load_of_a_second_operand_is_no_part_of_it(self):
        done = run([*NOTHING, ("add.f32", 8)], [*AROUND, launch(4, 14, 1, 3), launch(5, 46, 1, 27)])
        row, = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual((row["issue"], row["lsu"]), ("1.00", "0.00"))

    def test_the_source_form_is_in_eighths_and_leaves_plain_ones_out(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder, "expansion.csv")
            table.write_text("name,issue,alu,fma,fmaheavy,fp16,fp64,xu,lsu,uniform,cbu,adu,cycles\n"
                             "add.u32,1.00,0.62,0.38,0.38,,0.00,0.00,0.00,0.00,0.00,0.00,-1.07\n"
                             "call.tanhf,15.00,4.00,9.00,2.71,,0.00,2.00,0.00,0.00,0.00,0.00,61.88\n")
            done = subprocess.run([sys.executable, "-B", SCRIPT, table], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[1:], ['{"call.tanhf", 120, 32, 72, 22, 16, 0, 62},'])

    def test_launches_that_do_not_match_the_names_are_exit_code_two(self):
        done = run([*NOTHING, ("rem.u32", 62)], AROUND)
        self.assertEqual(done.returncode, 2)
        self.assertIn("4 launches for 3 names", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(subprocess.run([sys.executable, "-B", SCRIPT, "/nonexistent"], capture_output=True).returncode, 2)
        self.assertEqual(subprocess.run([sys.executable, "-B", SCRIPT], capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
