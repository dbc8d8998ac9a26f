#!/usr/bin/python3 -B
"""Stands in for `gristmill` where the harness of bench/cluster is tested: a coordinator, nodes and a log, nothing more.

A file `defect` beside it names what it does wrong: `twice` (a verdict is written twice), `forgets` (what a lost node had
is never tried again), `blind` (a lost node is not written down), `open` (a lease stays open), `litter` (a file is
left), `stays` (a process is left), `trusting` (any version is let in). The harness must see each of them.
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

VERSION = "7.6.0"
HERE = pathlib.Path(__file__).resolve().parent
TASK_SECONDS = 0.4


def defect(name):
    file = HERE / "defect"
    return file.exists() and file.read_text().strip() == name


def seconds(text):
    return float(text.rstrip("s"))


class lines:
    """JSON lines over a socket."""

    def __init__(self, sock):
        self.sock, self.lock = sock, threading.Lock()

    def send(self, **what):
        with self.lock:
            self.sock.sendall(json.dumps(what).encode() + b"\n")

    def __iter__(self):
        text = b""
        while True:
            got = self.sock.recv(4096)
            if not got:
                return
            text += got
            while b"\n" in text:
                line, text = text.split(b"\n", 1)
                yield json.loads(line)


def wrapped(sock, folder, server):
    if not folder:
        return sock
    folder = pathlib.Path(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    context.load_verify_locations(folder / "ca.pem")
    return context.wrap_socket(sock, server_side=server)


class log:
    def __init__(self, run):
        self.file = pathlib.Path(run) / "log.jsonl"
        self.events = [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []
        self.lock = threading.RLock()

    def write(self, kind, problem="", candidate="", gpu="", token=0, **data):
        with self.lock:
            event = {"seq": len(self.events) + 1, "wall": time.time_ns(), "kind": kind, "problem": problem,
                     "candidate": candidate, "gpu": gpu, "token": token, "data": data}
            self.events.append(event)
            with open(self.file, "a") as out:
                out.write(json.dumps(event) + "\n")


class coordinator:
    def __init__(self, settings):
        self.settings = settings
        self.log = log(settings["run"])
        self.lock = threading.RLock()
        self.nodes = {}
        closed = {(e["gpu"], e["token"]) for e in self.log.events if e["kind"].startswith("lease_re")}
        for e in list(self.log.events):
            if e["kind"] == "lease_grant" and (e["gpu"], e["token"]) not in closed:
                self.log.write("lease_revoke", gpu=e["gpu"], token=e["token"])
        self.token = max([e["token"] for e in self.log.events], default=0)
        done = {(e["problem"], e["candidate"]) for e in self.log.events if e["kind"] == "verdict"}
        self.todo = collections.deque(c for c in map(tuple, settings["candidates"]) if c not in done)
        self.left = len(self.todo)

    def serve(self):
        host, port = self.settings["listen"].rsplit(":", 1)
        door = socket.create_server((host, int(port)))
        self.settings["listen"] = "%s:%d" % (host, door.getsockname()[1])
        print("listening on " + self.settings["listen"], file=sys.stderr, flush=True)
        (pathlib.Path(self.settings["run"]) / "settings.json").write_text(json.dumps(self.settings))
        threading.Thread(target=self.accept, args=(door,), daemon=True).start()
        while self.left:
            time.sleep(0.05)
        for node in list(self.nodes.values()):
            node["to"].send(farewell=True)
        time.sleep(0.2)
        self.log.write("run_ended")
        if defect("litter"):
            (pathlib.Path(os.environ["TMPDIR"]) / "litter").write_text("left")
        if defect("stays"):
            subprocess.Popen(["sleep", "300"])

    def accept(self, door):
        while True:
            sock, _ = door.accept()
            threading.Thread(target=self.node, args=(sock,), daemon=True).start()

    def node(self, sock):
        try:
            sock.settimeout(seconds(self.settings["timeout"]))
            to = lines(wrapped(sock, self.settings["tls"], True))
            heard = iter(to)
            hello = next(heard)
        except (OSError, StopIteration, ValueError):
            return
        if "status" in hello:
            to.send(nodes=[{"node": name, "state": "ready"} for name in self.nodes])
            return
        if hello["version"] != VERSION and not defect("trusting"):
            to.send(refused="version %s does not go with version %s" % (hello["version"], VERSION))
            return
        name, mine = hello["node"], {"to": to, "task": None, "told": False}
        with self.lock:
            self.nodes[name] = mine
        self.log.write("node_joined", node=name)
        try:
            to.send(welcome=True)
            threading.Thread(target=self.feed, args=(name, mine), daemon=True).start()
            for said in heard:
                if "done" in said:
                    self.finished(name, mine)
                elif "leaving" in said:
                    mine["told"] = True
                    while mine["task"]:
                        time.sleep(0.05)
                    to.send(farewell=True)
        except OSError:
            pass
        self.lost(name, mine)

    def feed(self, name, mine):
        timer = 0.0
        try:
            while self.nodes.get(name) is mine:
                with self.lock:
                    if not mine["task"] and self.todo and not mine["told"]:
                        mine["task"] = self.todo.popleft()
                        self.token += 1
                        mine["token"] = self.token
                        self.log.write("lease_grant", *mine["task"], gpu=name, token=self.token)
                        mine["to"].send(task=True)
                if time.monotonic() > timer:
                    mine["to"].send(beat=True)
                    timer = time.monotonic() + seconds(self.settings["heartbeat"])
                time.sleep(0.05)
        except OSError:
            pass

    def finished(self, name, mine):
        with self.lock:
            if not mine["task"] or self.nodes.get(name) is not mine:
                return
            problem, candidate = mine["task"]
            if not (defect("open") and self.left == 3):
                self.log.write("lease_release", problem, candidate, gpu=name, token=mine["token"])
            for _ in range(2 if defect("twice") and self.left == 5 else 1):
                self.log.write("verdict", problem, candidate, status="PASSED", objective_ns=len(candidate), speedup=1)
            mine["task"] = None
            self.left -= 1

    def lost(self, name, mine):
        with self.lock:
            if self.nodes.get(name) is mine:
                del self.nodes[name]
            if mine["task"]:
                self.log.write("lease_revoke", *mine["task"], gpu=name, token=mine["token"])
                if defect("forgets"):
                    self.left -= 1
                else:
                    self.todo.append(mine["task"])
                mine["task"] = None
            if not mine["told"] and self.left and not defect("blind"):
                self.log.write("node_lost", node=name)


def node(options):
    pathlib.Path(options.state).mkdir(parents=True, exist_ok=True)
    host, port = options.join.rsplit(":", 1)
    leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leaving.set())
    wait, tries = 0.2, 0
    while tries < 60:
        tries += 1
        try:
            sock = socket.create_connection((host, int(port)), timeout=seconds(options.node_timeout))
            sock.settimeout(seconds(options.node_timeout))
            to = lines(wrapped(sock, options.tls, False))
            to.send(node=options.name, version=VERSION)
            for said in to:
                tries, wait = 0, 0.2
                if "refused" in said:
                    print(said["refused"], file=sys.stderr, flush=True)
                    return 1
                if "task" in said:
                    time.sleep(TASK_SECONDS)
                    to.send(done=True)
                if "farewell" in said:
                    return 0
                if leaving.is_set():
                    to.send(leaving=True)
                    leaving.clear()
                to.send(beat=True)
        except (OSError, ValueError) as error:
            print("cannot join: %s" % error, file=sys.stderr, flush=True)
        if leaving.is_set():
            return 0
        time.sleep(wait)
        wait = min(5.0, 2 * wait)
    return 1


def make_trust(folder, nodes):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
            "/CN=authority", "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    for name in ["coordinator", *("nodes/" + n for n in nodes)]:
        to = folder / name
        to.mkdir(parents=True)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout",
                to / "key.pem", "-out", to / "request.pem")
        openssl("x509", "-req", "-in", to / "request.pem", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
                "-CAcreateserial", "-days", "30", "-out", to / "cert.pem")
        (to / "ca.pem").write_text((folder / "ca.pem").read_text())


def log_show(run, kinds):
    for event in log(run).events:
        if not kinds or event["kind"] in kinds:
            print(json.dumps(event))


def main():
    if sys.argv[1:] == ["--version"]:
        print("gristmill " + VERSION)
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="+")
    for flag in ("--listen", "--join", "--tls", "--name", "--state", "--out", "--heartbeat", "--node-timeout",
                 "--gpus", "--workers", "--compile-slots", "--proposer", "--seed", "--oracle", "--budget", "--toolchain"):
        parser.add_argument(flag)
    for flag in ("--candidate", "--kind", "--node"):
        parser.add_argument(flag, action="append", default=[])
    for flag in ("--json", "--until-run-ends"):
        parser.add_argument(flag, action="store_true")
    parser.set_defaults(heartbeat="1s", node_timeout="15s")
    options = parser.parse_args()
    verb = options.words[0]
    if verb == "run":
        pathlib.Path(options.out).mkdir(parents=True)
        coordinator({"run": options.out, "listen": options.listen, "tls": options.tls, "heartbeat": options.heartbeat,
                     "timeout": options.node_timeout,
                     "candidates": [c.split("=") for c in options.candidate]}).serve()
    elif verb == "resume":
        coordinator(json.loads((pathlib.Path(options.words[1]) / "settings.json").read_text())).serve()
    elif verb == "node":
        return node(options)
    elif verb == "log" and options.words[1] == "show":
        log_show(options.words[2], options.kind)
    elif verb == "log":
        print("the log is sound")
    elif options.words == ["cluster", "status"]:
        host, port = options.join.rsplit(":", 1)
        to = lines(wrapped(socket.create_connection((host, int(port)), timeout=10), options.tls, False))
        to.send(status=True)
        print(json.dumps(next(iter(to))))
    elif options.words[:2] == ["cluster", "init"]:
        make_trust(options.words[2], options.node)
    return 0


if __name__ == "__main__":
    sys.exit(main())
