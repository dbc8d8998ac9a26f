#!/usr/bin/env python3
"""Whether bench/cluster/usage.py tells a leak from memory that comes and goes, or that has to be remembered."""

import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench" / "cluster"))

from usage import slope, why_it_grows  # noqa: E402


def series(minutes, per_minute=0.0, burst=0.0, seed=1):
    """(seconds, MiB) once a second: 60 MiB with noise, which grow, and bursts of 20 s in every minute."""
    chance = random.Random(seed)
    out = []
    for second in range(int(60 * minutes)):
        value = 60 + per_minute * second / 60 + chance.uniform(0, 1)
        # Each later one is larger, so that the mean grows.
        out.append((second, value + (burst * second / 60 if second % 60 < 20 else 0)))
    return out


class memory(unittest.TestCase):
    def judged(self, points, remembered=0.0):
        return why_it_grows(slope(points, lowest=True), remembered)

    def test_memory_that_stays_as_it_is_is_flat(self):
        self.assertIsNone(self.judged(series(12)))

    def test_a_leak_is_found(self):
        self.assertIn("memory grows: at least", self.judged(series(12, per_minute=1.0)))

    def test_a_leak_is_found_under_bursts(self):
        self.assertIn("memory grows: at least", self.judged(series(12, per_minute=1.0, burst=5.0)))

    def test_bursts_that_go_away_are_no_leak_though_the_mean_grows(self):
        points = series(40, burst=5.0)
        self.assertGreater(slope(points).low, 0)
        self.assertIsNone(self.judged(points))

    def test_what_has_to_be_remembered_is_no_leak_and_more_is(self):
        self.assertIsNone(self.judged(series(12, per_minute=1.0), remembered=11.5))
        self.assertIsNotNone(self.judged(series(12, per_minute=2.0), remembered=11.5))

    def test_minutes_that_are_too_few_are_not_judged(self):
        self.assertIsNone(self.judged(series(5, per_minute=10.0)))
        self.assertIsNone(self.judged([]))


if __name__ == "__main__":
    unittest.main(verbosity=1)
