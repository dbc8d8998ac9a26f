"""A real llama-server with a model of our own making, for tests.

It is looked for at GRISTMILL_LLAMA_SERVER, then on PATH; scripts/fetch-llama-server brings one.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import make_gguf
import make_grammar
from harness import HERE, SOURCE

REPLY = HERE / "random" / "softmax.reply"
CURE = "scripts/fetch-llama-server FOLDER, then export GRISTMILL_LLAMA_SERVER=FOLDER/llama-server"


def find():
    """The program; None when there is none."""
    named = os.environ.get("GRISTMILL_LLAMA_SERVER")
    if named:
        return named if os.access(named, os.X_OK) else None
    return shutil.which("llama-server")


def grammar_body(reply=REPLY):
    """`extra_body` of a file of models, on one line."""
    return make_grammar.extra_body(reply.read_text(encoding="utf-8"))


class llama_server:
    """`with llama_server(folder) as s: s.port`. Its model is written into the folder first."""

    def __init__(self, folder, parallel=4, context=131072, seed=1, reply=REPLY, lines=None):
        """`lines` are tokens of their own; by default those of the protocol file."""
        self.folder, self.parallel, self.context, self.seed = Path(folder), parallel, context, seed
        self.reply, self.lines = reply, lines
        self.child, self.port = None, 0

    def __enter__(self):
        text = self.reply.read_text(encoding="utf-8")
        lines = self.lines
        if lines is None:
            lines = (SOURCE / "protocol" / "program.md").read_text(encoding="utf-8").split("\n")
        model = self.folder / "random.gguf"
        model.write_bytes(make_gguf.model(self.seed, 1, 64, 65536, make_gguf.pieces(text),
                                          [line for line in lines if len(line) >= make_gguf.LINE_MIN]))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(self.folder / "llama-server.log", "wb")
        self.child = subprocess.Popen(
            [find(), "-m", str(model), "--host", "127.0.0.1", "--port", str(self.port), "--parallel", str(self.parallel),
             "-c", str(self.context), "-t", "2", "--metrics"], stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.child.poll() is not None:
                break
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/health" % self.port, timeout=5) as answer:
                    if answer.status == 200:
                        return self
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.1)
        self.__exit__()
        raise RuntimeError("llama-server does not start:\n" +
                           (self.folder / "llama-server.log").read_text(errors="replace")[-2000:])

    def __exit__(self, *_):
        if self.child and self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.log.close()

    def url(self, path="/v1"):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def metrics(self):
        """Counters of the server by name."""
        out = {}
        with urllib.request.urlopen(self.url("/metrics"), timeout=20) as answer:
            for line in answer.read().decode().splitlines():
                if line and not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    out[name] = float(value)
        return out
