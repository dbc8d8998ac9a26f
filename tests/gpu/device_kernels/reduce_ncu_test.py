#!/usr/bin/env python3
"""bench/calibration/reduce_ncu.py: a row a launch with the wanted counters as plain numbers, and refusals."""

import csv
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("GRISTMILL_SOURCE", "."))
SCRIPT = SOURCE / "bench/calibration/reduce_ncu.py"
HEAD = ["one", "ID", "Process ID", "Kernel Name", "smsp__inst_executed.avg", "smsp__inst_executed.sum",
        "dram__sectors_read.sum", "launch__grid_size"]
UNITS = ["one", "", "", "", "inst", "inst", "sector", ""]


def run(*rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "raw.csv")
        with open(path, "w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
        return subprocess.run([sys.executable, "-B", SCRIPT, path], capture_output=True, text=True)


def read(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


class Reducing(unittest.TestCase):
    def test_a_launch_is_a_row_of_plain_numbers_and_units_are_none(self):
        done = run(HEAD, UNITS, ["one", "0", "77", "scan", "1.5", "5,868,544", "2,105", "1,056"],
                   ["one", "1", "77", "add", "1", "12", "0", "3"])
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = read(done)
        self.assertEqual(len(first), 21)
        self.assertEqual((first["name"], first["entry"]), ("one", "scan"))
        self.assertEqual(first["smsp__inst_executed.sum"], "5868544")
        self.assertEqual(first["dram__sectors_read.sum"], "2105")
        self.assertEqual(first["launch__grid_size"], "1056")
        self.assertNotIn("smsp__inst_executed.avg", first)
        self.assertEqual(second["entry"], "add")

    def test_each_kernel_is_read_by_its_own_column_names_and_what_was_not_measured_is_empty(self):
        done = run(HEAD, UNITS, ["one", "0", "7", "scan", "1", "2", "3", "4"],
                   ["two", "ID", "dram__sectors_read.sum", "Kernel Name"], ["two", "0", "55", "copy"])
        self.assertEqual(done.returncode, 0, done.stderr)
        row = read(done)[1]
        self.assertEqual((row["name"], row["entry"], row["dram__sectors_read.sum"]), ("two", "copy", "55"))
        self.assertEqual(row["smsp__inst_executed.sum"], "")

    def test_a_file_of_another_form_is_exit_code_two_and_names_the_line(self):
        for rows, line in (([UNITS], 1), ([HEAD, UNITS[:-1]], 2), ([["one", "ID", "Grid Size"]], 1)):
            done = run(*rows)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"line {line}: ", done.stderr)
            self.assertEqual(done.stdout, "")
        missing = subprocess.run([sys.executable, "-B", SCRIPT, "/nonexistent"], capture_output=True)
        self.assertEqual(missing.returncode, 2)


if __name__ == "__main__":
    unittest.main()
