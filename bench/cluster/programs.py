"""Programs as somebody starts them on a machine of the network, with what they print kept in files."""

import os
import signal
import subprocess
import time
from pathlib import Path


def environment(folder, **more):
    """Ours without settings of gristmill; temporary files go below `folder`, so that leftovers are seen."""
    out = {name: value for name, value in os.environ.items() if not name.startswith("GRISTMILL_")}
    temporary = Path(folder) / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    out.update(TMPDIR=str(temporary), **more)
    return out


class program:
    """`folder/NAME.out` and `folder/NAME.err` have what it printed, over all its starts."""

    def __init__(self, name, command, folder, env=None):
        self.name, self.command, self.folder = name, list(map(str, command)), Path(folder)
        self.env = env or environment(folder)
        self.child = None
        self.began = 0.0

    def start(self, command=None):
        with open(self.folder / (self.name + ".out"), "ab") as out, open(self.folder / (self.name + ".err"),
                                                                         "ab") as err:
            self.child = subprocess.Popen(list(map(str, command or self.command)), stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=err, env=self.env)
        self.began = time.monotonic()
        return self

    @property
    def pid(self):
        return self.child.pid

    def runs(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        if self.runs():
            self.child.send_signal(number)

    def kill(self):
        """kill -9, and waits until it is gone."""
        self.signal(signal.SIGKILL)
        if self.child:
            self.child.wait()

    def wait(self, at_most):
        """The exit code; None when it has not ended in time."""
        try:
            return self.child.wait(max(0.01, at_most))
        except subprocess.TimeoutExpired:
            return None

    def err(self):
        path = self.folder / (self.name + ".err")
        return path.read_text(errors="replace") if path.exists() else ""

    def out(self):
        path = self.folder / (self.name + ".out")
        return path.read_text(errors="replace") if path.exists() else ""

    def last_words(self, lines=3):
        said = [line for line in self.err().strip().split("\n") if line.strip()]
        return " / ".join(said[-lines:])


def until(holds, at_most, what, apart=0.1):
    """Waits for a condition; an error that names it when it takes too long."""
    end = time.monotonic() + at_most
    while True:
        got = holds()
        if got:
            return got
        if time.monotonic() >= end:
            raise TimeoutError("%s: not within %g s" % (what, at_most))
        time.sleep(apart)
