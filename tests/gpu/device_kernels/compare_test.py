#!/usr/bin/env python3
"""bench/calibration/compare.py: scores, refusals, and what does not count."""

import csv
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("GRISTMILL_SOURCE", "."))
COMPARE = SOURCE / "bench/calibration/compare.py"
sys.path.insert(0, str(COMPARE.parent))
sys.dont_write_bytecode = True
import compare  # noqa: E402


def run(measured, modelled, *flags):
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a.csv"), Path(folder, "b.csv")
        for path, rows in ((first, measured), (second, modelled)):
            with open(path, "w", newline="") as file:
                out = csv.DictWriter(file, rows[0].keys())
                out.writeheader()
                out.writerows(rows)
        return subprocess.run([sys.executable, "-B", COMPARE, first, second, *flags], capture_output=True, text=True)


def measured(name, family, us, verdict="right", flush="official"):
    return {"name": name, "family": family, "class": "ffma", "flush": flush, "median_us": us, "verdict": verdict}


def modelled(name, us):
    return {"name": name, "modelled_us": us, "bound": "dram", "label": "MODELLED"}


class Comparing(unittest.TestCase):
    def test_a_score_treats_both_directions_alike(self):
        self.assertAlmostEqual(compare.score([(2, 1), (1, 2)]), 2)
        self.assertAlmostEqual(compare.bias([(2, 1), (1, 2)]), 1)

    def test_regret_is_what_the_models_choice_costs(self):
        tau, regret = compare.order([(1, 30), (2, 20), (3, 10)])
        self.assertEqual(tau, -1)
        self.assertAlmostEqual(regret, 2)

    def test_what_the_model_does_not_tell_apart_counts_against_it(self):
        tau, regret = compare.order([(1, 10), (1, 30)])
        self.assertEqual(tau, -1)
        self.assertAlmostEqual(regret, 2)

    def test_pairs_within_three_percent_do_not_count(self):
        tau, _ = compare.order([(1, 100), (2, 101), (3, 200)])
        self.assertEqual(tau, 1)

    def test_wrong_numbers_and_other_flushes_are_left_out(self):
        done = run([measured("map_scale.v1", "streaming", 10), measured("rope", "rope", 10, "WRONG"),
                    measured("map_scale.v1", "streaming", 99, flush="clean")],
                   [modelled("map_scale.v1", 11), modelled("rope", 99)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rope gave wrong numbers", done.stderr)
        self.assertRegex(done.stdout, r"ffma +1 +1\.100")

    def test_a_kernel_without_a_modelled_time_is_named(self):
        done = run([measured("map_scale.v1", "streaming", 10), measured("grid_sync", "cooperative", 10)],
                   [modelled("map_scale.v1", 10), modelled("grid_sync", "")])
        self.assertIn("no modelled time (1): grid_sync", done.stdout)

    def test_the_score_without_a_family_leaves_out_its_kernels(self):
        done = run([measured("map_scale.v1", "streaming", 10), measured("gemv.row", "gemv", 10)],
                   [modelled("map_scale.v1", 10), modelled("gemv.row", 20)], "--without-families")
        self.assertRegex(done.stdout, r"gemv +1 kernels, 2\.000 inside, 1\.000 without")
        self.assertRegex(done.stdout, r"streaming +1 kernels, 1\.000 inside, 2\.000 without")

    def test_the_errors_of_a_data_file_count_every_kernel_once(self):
        done = run([measured("map_scale.v1", "streaming", 10), measured("gemv.row", "gemv", 10)],
                   [modelled("map_scale.v1", 10), modelled("gemv.row", 12.1)], "--errors")
        self.assertIn('[{"class": "all", "factor": 1.1, "kernels": 2}, {"class": "ffma", "factor": 1.1, "kernels": 2}]',
                      done.stdout)

    def test_points_of_a_template_are_ranked_and_odd_numbers_left_out(self):
        def point(name, us, magnitude=1.0):
            return {"name": name, "family": "softmax", "class": "reduction", "median_us": us, "mean_magnitude": magnitude}
        done = run([point("softmax.a", 10), point("softmax.b", 20), point("softmax.c", 1, 3.0)],
                   [modelled("softmax.a", 12), modelled("softmax.b", 11), modelled("softmax.c", 1)], "--rank")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"softmax +2 +2\.0 +-1\.00 +100\.0 %.*b, a")
        self.assertIn("left out, other numbers than the rest: softmax.c", done.stderr)

    def test_files_that_cannot_be_read_are_exit_code_two(self):
        done = subprocess.run([sys.executable, "-B", COMPARE, "/nonexistent", "/nonexistent"], capture_output=True)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
