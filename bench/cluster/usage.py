"""Memory, open files and processor time of a process over time, and how fast a series changes."""

import collections
import math
import os
import threading
import time

# `at` is monotonic, `wall` is Unix time, both in seconds; `cpu` in seconds.
sample = collections.namedtuple("sample", "at wall pid rss_kib files threads cpu")
TICK = os.sysconf("SC_CLK_TCK")


def of_process(pid):
    """None when it is gone."""
    try:
        with open("/proc/%d/status" % pid) as lines:
            status = dict(line.split(":", 1) for line in lines)
        with open("/proc/%d/stat" % pid) as line:
            fields = line.read().rpartition(")")[2].split()
        files = len(os.listdir("/proc/%d/fd" % pid))
        return sample(time.monotonic(), time.time(), pid, int(status["VmRSS"].split()[0]), files, int(status["Threads"]),
                      (int(fields[11]) + int(fields[12])) / TICK)
    except (OSError, KeyError, IndexError, ValueError):
        return None


class watch:
    """Looks at the process that `pid()` names once a second until `stop` is set; `join()` gives the samples."""

    def __init__(self, pid, stop, apart=1.0):
        self.samples = []
        self.thread = threading.Thread(target=self.look, args=(pid, stop, apart), daemon=True)
        self.thread.start()

    def look(self, pid, stop, apart):
        while not stop.wait(apart):
            number = pid()
            one = of_process(number) if number else None
            if one:
                self.samples.append(one)

    def join(self):
        self.thread.join()
        return self.samples


class slope:
    """Change per minute of (seconds, value) by least squares over blocks, with a 95 % interval.

    Single samples are not independent of each other, means of blocks are nearly so; below four blocks nothing is known.
    With `lowest`, the least value of each block instead of its mean: what comes and goes is left out of it, and what
    stays is not.
    """

    # Student's t, two-sided 95 %, for 1 … 30 degrees of freedom.
    T95 = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10,
           2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04]

    def __init__(self, points, skip=0.0, blocks=20, lowest=False):
        points = points[int(len(points) * skip):]
        size = max(1, len(points) // blocks)
        means = []
        for first in range(0, len(points) - size + 1, size):
            part = points[first:first + size]
            value = min(p[1] for p in part) if lowest else sum(p[1] for p in part) / size
            means.append((sum(p[0] for p in part) / size / 60, value))
        self.known = len(means) >= 4
        self.blocks = len(means)
        self.mean = sum(m[1] for m in means) / len(means) if means else 0.0
        self.minutes = means[-1][0] - means[0][0] if means else 0.0
        self.per_minute = self.low = self.high = 0.0
        if not self.known or self.minutes <= 0:
            self.known = False
            return
        n = len(means)
        x0 = sum(x for x, _ in means) / n
        sxx = sum((x - x0) ** 2 for x, _ in means)
        self.per_minute = sum((x - x0) * (y - self.mean) for x, y in means) / sxx
        rest = sum((y - self.mean - self.per_minute * (x - x0)) ** 2 for x, y in means)
        half = self.T95[min(n - 2, 30) - 1] * math.sqrt(rest / (n - 2) / sxx)
        self.low, self.high = self.per_minute - half, self.per_minute + half

    def text(self, unit):
        if not self.known:
            return "too few samples (%d blocks)" % self.blocks
        return "mean %.1f %s, %+.3f %s a minute (95 %% interval %+.3f to %+.3f; %d blocks over %.1f minutes)" % (
            self.mean, unit, self.per_minute, unit, self.low, self.high, self.blocks, self.minutes)


# Below this nothing is said: a run's first minutes are no measure of what it leaks.
MINUTES_TO_JUDGE = 10


def why_it_grows(floor, remembered):
    """A fault, or None: whether the lowest memory (a `slope` in MiB) grew by more than what was to be `remembered` in that
    time (MiB) and 5 % of its mean."""
    growth = floor.low * floor.minutes
    if not floor.known or floor.minutes < MINUTES_TO_JUDGE or growth <= remembered + 0.05 * floor.mean:
        return None
    return "memory grows: at least %.1f MiB in %.1f minutes, of which %.1f are remembered" % (growth, floor.minutes, remembered)
