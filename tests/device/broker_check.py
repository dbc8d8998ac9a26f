#!/usr/bin/env python3
"""Tries the stand-alone broker on real GPUs.

usage: broker_check.py FOLDER

FOLDER holds the programs gristmill and gristmill-lease. Starts a broker on all GPUs of this machine, in a
folder of its own, and lets PyTorch work under its leases: ordinary work, many at once, a kernel that never
ends, a device-side fault, a process that slips away with the GPU, a broker that is killed, a stranger on the
GPU. One line a check with what was seen; exit code 0 when all passed, 1 when one did not. Needs PyTorch with
CUDA and nvidia-smi.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORK = "import torch; x = torch.ones(1 << 24, device='cuda'); print(int((x * 2).sum().item()))"
ENDLESS = (
    "import torch\n"
    "torch.cuda._sleep(1 << 20); torch.cuda.synchronize()\n"
    "for _ in range(100): torch.cuda._sleep(1 << 40)\n"
    "torch.cuda.synchronize()\n"
)
FAULT = (
    "import torch\n"
    "x = torch.zeros(8, device='cuda')\n"
    "i = torch.full((8,), 1 << 40, device='cuda', dtype=torch.int64)\n"
    "print(x[i].sum().item())\n"
)
SLIPS_AWAY = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    import torch\n"
    "    x = torch.ones(1 << 28, device='cuda'); torch.cuda.synchronize()\n"
    "    open(os.environ['MARK'], 'w').write(str(os.getpid()))\n"
    "    time.sleep(600)\n"
    "while not os.path.exists(os.environ['MARK']): time.sleep(0.05)\n"
)
STRANGER = (
    "import torch, time\n"
    "x = torch.ones(1 << 29, device='cuda'); torch.cuda.synchronize()\n"
    "print('here', flush=True); time.sleep(600)\n"
)

failures = 0


def check(name, fine, seen):
    global failures
    failures += 0 if fine else 1
    print(f"{'ok  ' if fine else 'FAIL'} {name}: {seen}", flush=True)


class Bench:
    def __init__(self, programs, folder):
        self.gristmill = str(programs / "gristmill")
        self.socket = str(folder / "broker.sock")
        self.state = str(folder / "state")
        self.log = open(folder / "broker.log", "w")
        self.broker = None

    def start(self):
        self.broker = subprocess.Popen(
            [self.gristmill, "broker", "--gpus", "cuda:all", "--socket", self.socket, "--state", self.state],
            stdout=self.log, stderr=self.log)
        for _ in range(100):
            if self.status() is not None:
                return True
            time.sleep(0.1)
        return False

    def status(self):
        done = subprocess.run(
            [self.gristmill, "broker", "status", "--json", "--socket", self.socket],
            capture_output=True, text=True)
        try:
            return json.loads(done.stdout) if done.returncode == 0 else None
        except ValueError:
            return None

    def phases(self):
        seen = self.status()
        return [gpu["phase"] for gpu in seen["gpus"]] if seen else []

    def wait_for(self, phase, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.phases() and all(p == phase for p in self.phases()):
                return True
            time.sleep(0.2)
        return False

    def lease(self, code, *flags, env=None):
        return subprocess.Popen(
            [self.gristmill, "lease", "--socket", self.socket, *flags, "--", sys.executable, "-c", code],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "gristmill").exists():
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(Path(sys.argv[1]), folder)
        check("the broker finds the GPUs", bench.start(), bench.status())
        gpus = len(bench.phases())

        run = bench.lease(WORK)
        out, err = run.communicate(timeout=120)
        check("ordinary work", run.returncode == 0 and out.strip() == str(2 << 24), last_line(err))

        begin = time.monotonic()
        many = [bench.lease(WORK + "; import time; time.sleep(0.2)", "--as", f"u{i % 3}/p") for i in range(12)]
        codes = [each.wait(timeout=240) for each in many]
        check("twelve at once", codes == [0] * 12 and bench.wait_for("free", 20),
              f"{time.monotonic() - begin:.1f} s on {gpus} GPU(s)")

        begin = time.monotonic()
        run = bench.lease(ENDLESS, "--cap", "10s")
        _, err = run.communicate(timeout=120)
        check("a kernel that never ends is ended at the cap", run.returncode == 124,
              f"code {run.returncode} after {time.monotonic() - begin:.1f} s; {last_line(err)}")
        check("and its GPU is free again", bench.wait_for("free", 60), bench.phases())

        run = bench.lease(FAULT)
        _, err = run.communicate(timeout=120)
        check("a device-side fault is the command's own exit code", run.returncode not in (0, 124),
              f"code {run.returncode}")
        run = bench.lease(WORK)
        out, _ = run.communicate(timeout=120)
        check("the next lease works", out.strip() == str(2 << 24), f"code {run.returncode}")

        mark = folder / "mark"
        run = bench.lease(SLIPS_AWAY, env={"MARK": str(mark)})
        run.communicate(timeout=120)
        time.sleep(0.5)
        pid = int(mark.read_text()) if mark.exists() else 0
        check("a process that slips away is ended with its lease",
              pid != 0 and not Path(f"/proc/{pid}").exists() and bench.wait_for("free", 60), f"pid {pid}")

        run = bench.lease(WORK + "; import time; time.sleep(6); print('done')", "--cap", "60s")
        while bench.phases() == ["free"] * gpus:
            time.sleep(0.1)
        before = [gpu["token"] for gpu in bench.status()["gpus"]]
        bench.broker.kill()
        bench.broker.wait()
        bench.start()
        time.sleep(1)
        adopted = [gpu["token"] for gpu in bench.status()["gpus"]]
        out, _ = run.communicate(timeout=120)
        check("a killed broker adopts the running lease",
              run.returncode == 0 and out.strip().endswith("done") and adopted == before,
              f"tokens {before} and {adopted}, code {run.returncode}")
        check("and its GPU is free afterwards", bench.wait_for("free", 60), bench.phases())

        stranger = subprocess.Popen([sys.executable, "-c", STRANGER], stdout=subprocess.PIPE, text=True)
        stranger.stdout.readline()
        run = bench.lease(WORK)
        run.communicate(timeout=120)
        suspect = not bench.wait_for("free", 3)
        check("a stranger on the GPU makes it suspect", suspect, bench.phases())
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()
        check("which it no longer is when the stranger is gone", bench.wait_for("free", 60), bench.phases())

        times = []
        for _ in range(20):
            begin = time.monotonic()
            subprocess.run([bench.gristmill, "lease", "--quiet", "--socket", bench.socket, "--", "true"],
                           check=True)
            times.append(time.monotonic() - begin)
        times.sort()
        print(f"     twenty leases of `true` one after another: p50 {times[10] * 1e3:.0f} ms, "
              f"max {times[-1] * 1e3:.0f} ms (the probe asks nvidia-smi each time)")
        bench.broker.send_signal(signal.SIGTERM)
        check("SIGTERM ends it", bench.broker.wait(timeout=30) == 0, f"code {bench.broker.returncode}")
        shown = re.sub(r"\n+", " | ", (folder / "broker.log").read_text().strip())
        print(f"     broker said: {shown[-600:]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
