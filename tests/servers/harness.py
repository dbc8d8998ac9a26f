"""What the end-to-end tests of language models share: servers, the program as a user starts it, its log.

The folder of the programs is GRISTMILL_BIN and the source tree GRISTMILL_SOURCE, as ctest sets them. Standard library
only, for Debian's Python.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ.get("GRISTMILL_SOURCE", HERE.parent.parent))
BIN = Path(os.environ.get("GRISTMILL_BIN", SOURCE / "build" / "release"))
# In 10^-9 USD a token, as the servers bill, and in USD per million tokens, as a price table says it.
PRICES = {"input": 3000, "cached_read": 300, "cache_write": 3750, "output": 15000}
SKIPPED = 77


def say(text):
    print(text, file=sys.stderr, flush=True)


class server:
    """A test server as a child. `with server("fault_server.py", "--seed", "3") as s: s.url(…)`."""

    def __init__(self, script, *arguments, env=None, command=None):
        self.command = command or ["/usr/bin/python3", str(HERE / script), *map(str, arguments)]
        self.env = {**os.environ, **(env or {})}
        self.child = None
        self.port = 0
        self.first_line = ""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.child = subprocess.Popen(self.command, stdout=subprocess.PIPE, env=self.env, text=True)
        self.first_line = self.child.stdout.readline()
        found = re.match(r"listening on (\d+)", self.first_line)
        if not found:
            raise RuntimeError("%s does not start" % self.command)
        self.port = int(found.group(1))

    def stop(self, how=signal.SIGTERM):
        if self.child and self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        if self.child:
            self.child.stdout.close()
        self.child = None

    def url(self, path="/v1", scheme="http"):
        return "%s://127.0.0.1:%d%s" % (scheme, self.port, path)

    def books(self):
        with urllib.request.urlopen(self.url("/books"), timeout=20) as answer:
            return json.load(answer)


def front(upstream, folder, *arguments):
    """nginx before a server; its `ca_file` is what a client has to trust."""
    made = server("front.py", "--upstream", upstream, "--folder", folder, *arguments)
    made.ca_file = str(Path(folder).resolve() / "authority.pem")
    return made


def has_nginx():
    return bool(shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/sbin"))


class outcome:
    def __init__(self, code, out, err, took):
        self.code, self.out, self.err, self.took = code, out, err, took


def environment(**more):
    """Ours, without settings of gristmill and without keys or proxies of the person who runs the tests."""
    out = {name: value for name, value in os.environ.items()
           if not name.startswith("GRISTMILL_") and not name.endswith("_API_KEY")
           and name.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
    out.update(more)
    return out


def start_gristmill(*arguments, env=None, cwd=None):
    return subprocess.Popen([str(BIN / "gristmill"), *map(str, arguments)], stdout=subprocess.PIPE, cwd=cwd,
                            stderr=subprocess.PIPE, text=True, env=environment(**(env or {})))


def gristmill(*arguments, env=None, cwd=None, at_most=240):
    began = time.monotonic()
    child = start_gristmill(*arguments, env=env, cwd=cwd)
    try:
        out, err = child.communicate(timeout=at_most)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise AssertionError("gristmill %s did not end within %d s\nstdout: %s\nstderr: %s" %
                             (" ".join(map(str, arguments)), at_most, out[-2000:], err[-4000:]))
    return outcome(child.returncode, out, err, time.monotonic() - began)


def events(run, *kinds):
    """The log of a run as objects, in order; of these kinds alone when some are named."""
    shown = gristmill("log", "show", run, "--json")
    assert shown.code == 0, shown.err
    lines = [json.loads(line) for line in shown.out.splitlines() if line.strip()]
    return [line for line in lines if not kinds or line["kind"] in kinds]


def number_of(call):
    """The server's number of the request that a try became; empty when it is not known."""
    found = re.search(r"req-\d+-\d+", call["data"].get("provider_request", ""))
    return found.group(0) if found else ""


def models_file(path, endpoint, dialect="openai-chat", model="test-model", key_env="", priced=True, ca_file="",
                extra_body="", in_flight=8, deadlines=None, output_tokens_max=0, more=""):
    """Writes a file of models with one deployment and the prices that the test servers bill."""
    lines = ["[[deployment]]", 'name = "test"', 'dialect = "%s"' % dialect, 'endpoint = "%s"' % endpoint,
             'model = "%s"' % model, "in_flight_max = %d" % in_flight]
    if key_env:
        lines.append('key_env = "%s"' % key_env)
    if ca_file:
        lines.append('ca_file = "%s"' % ca_file)
    if extra_body:
        lines.append("extra_body = '''%s'''" % extra_body)
    if output_tokens_max:
        lines.append("output_tokens_max = %d" % output_tokens_max)
    if deadlines:
        lines.append("deadlines = { %s }" % ", ".join('%s = "%s"' % pair for pair in deadlines.items()))
    if priced:
        lines += ["", "[[price]]", 'model = "%s"' % model, "as_of = 2026-11-30"]
        lines += ["%s = %s" % (name, price / 1000) for name, price in PRICES.items()]
    Path(path).write_text("\n".join(lines) + "\n" + more, encoding="utf-8")
    return str(path)


def llm_run(out, models, *arguments, problems=("softmax",), workers=1, budget=("8attempts", "120s"), seed=7, env=None,
            at_most=240):
    """`gristmill run --proposer llm` with what every test wants the same."""
    limits = [part for value in budget for part in ("--budget", value)]
    return gristmill("run", *problems, "--proposer", "llm", "--models", models, "--workers", workers, "--gpus",
                     "mock:h200:1", "--seed", seed, "--out", out, *limits, *arguments, env=env, at_most=at_most)


class scratch_case(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = 4000

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gristmill-e2e-"))

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def kept(self, run):
        """For messages: the end of what a run said."""
        return "exit %d after %.1f s\nstdout: %s\nstderr: %s" % (run.code, run.took, run.out[-3000:], run.err[-5000:])


def main():
    """Runs the tests of a file. When each of them was skipped, ctest is told so."""
    if not (BIN / "gristmill").exists():
        say("SKIPPED: there is no program %s; run by ctest, or set GRISTMILL_BIN" % (BIN / "gristmill"))
        sys.exit(SKIPPED)
    result = unittest.main(exit=False, verbosity=2).result
    for test, why in result.skipped:
        say("SKIPPED: %s: %s" % (test.id(), why))
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun and len(result.skipped) == result.testsRun:
        sys.exit(SKIPPED)
