#!/usr/bin/env python3
"""Hostile peers against a coordinator, with a real node beside them: none costs more than its own
connection. usage: hostile_peers.py STUB [CASE...]

Each case attacks, then checks that the node beside it has gone on, that nothing was lost, that the
coordinator holds as many descriptors as before, and that its memory has never grown much.
"""

import concurrent.futures
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

STUB = sys.argv[1]
# The program's own, so that it goes with the next release as well.
VERSION = subprocess.run([STUB, "version"], capture_output=True, text=True, check=True).stdout.strip()
JOIN = f"gristmill-join 1 {VERSION} ".encode()
# Peak of the coordinator during a case, over what it had at first. One header alone announces 1 GiB.
GROWTH_MAX_KIB = 24 * 1024
# 32 MiB wait for a peer that does not read, behind as much that is on its way, in buffers that double. Last of its
# cluster: malloc keeps some of it.
GROWTH_MAX_KIB_OF = {"never_reads": 160 * 1024}


class Process:
    """A stub whose lines are collected."""

    def __init__(self, *arguments):
        # A sanitizer keeps what was freed; that is not to count as memory of the stub.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
        self.process = subprocess.Popen([STUB, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, "ASAN_OPTIONS": asan})
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def wait_line(self, start, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.lines:
                if line.startswith(start):
                    return line
            time.sleep(0.02)
        raise AssertionError(f"no line '{start}' in {seconds} s; said {self.lines[-5:]}")

    def status(self, field):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        raise AssertionError(field)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("it does not end")


class Cluster:
    """A coordinator with a node; `tls` is the folder of `init`, or None."""

    def __init__(self, tls):
        self.tls = tls
        self.hub = Process("listen", "127.0.0.1:0", tls + "/coordinator" if tls else "-")
        self.port = int(self.hub.wait_line("port ").split()[1])
        self.node = Process("join", f"127.0.0.1:{self.port}", tls + "/nodes/a" if tls else "-")
        self.node.wait_line("alive 2")
        self.descriptors = self.hub.descriptors()
        self.memory = self.hub.status("VmRSS")

    def forget_peak(self):
        with open(f"/proc/{self.hub.process.pid}/clear_refs", "w") as file:
            file.write("5")

    def check(self, growth_max, seconds=20):
        """After an attack."""
        seen = len(self.node.lines)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if len(self.node.lines) >= seen + 4 and self.hub.descriptors() == self.descriptors:
                break
            time.sleep(0.05)
        assert self.hub.process.poll() is None, "the coordinator ended"
        assert not any(line.startswith("lost") for line in self.node.lines), "the node was lost"
        assert len(self.node.lines) >= seen + 4, "the node does not go on"
        assert self.hub.descriptors() == self.descriptors, (
            f"{self.hub.descriptors()} descriptors, {self.descriptors} before")
        grown = self.hub.status("VmHWM") - self.memory
        assert grown < growth_max, f"memory has grown by {grown} KiB, {growth_max} are allowed"
        return grown

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def context(self, node):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if node:
            context.load_cert_chain(node + "/cert.pem", node + "/key.pem")
        return context

    def secure(self, node):
        return self.context(node).wrap_socket(self.connect())

    def enter(self, process, version=VERSION, protocol=1):
        """As a process of ours, up to the welcome. Answers the connection, or the refusal."""
        line = self.secure(self.tls + "/nodes/b") if self.tls else self.connect()
        line.sendall(f"gristmill-join {protocol} {version} {process}\n".encode())
        said = read_line(line)
        if not said.startswith("challenge "):
            line.close()
            return said
        line.sendall(f"answer {said.split()[3]}\n".encode())
        assert read_line(line) == "welcome"
        return line

    def expect_return(self):
        """The node has been lost, and joins again."""
        seen = len(self.node.lines)
        end = time.monotonic() + 20
        while not (any(line.startswith("alive") for line in self.node.lines[seen:])
                   and any(line == "joined" for line in self.node.lines[1:])):
            assert time.monotonic() < end, f"it does not come back; said {self.node.lines[-3:]}"
            time.sleep(0.05)
        self.node.lines[:] = [line for line in self.node.lines if line.startswith("alive")]

    def end(self):
        self.node.process.kill()
        self.node.process.wait()
        self.hub.end()


def read_line(line):
    text = b""
    while not text.endswith(b"\n") and len(text) < 1024:
        byte = line.recv(1)
        if not byte:
            break
        text += byte
    return text.decode(errors="replace").strip()


def closed(line, seconds=15):
    """Whether the other side closes within the time; what it says before does not matter."""
    line.settimeout(seconds)
    try:
        while line.recv(65536):
            pass
        return True
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        return True
    except TimeoutError:
        return False


def ignore_errors(function, *arguments):
    try:
        return function(*arguments)
    except OSError:
        return None


# ---- the cases; each takes a cluster


def random_bytes(cluster):
    chance = random.Random(7)
    for size in [1, 2, 31, 32, 33, 1000, 100_000] * 8:
        line = cluster.connect()
        ignore_errors(line.sendall, chance.randbytes(size))
        assert size < 32 or closed(line), size
        line.close()


# What CAF 0.17 reads first: operation, three bytes, length, and three numbers of 64 bits.
def header(operation, length):
    return struct.pack(">BBBBIQQQ", operation, 0, 0, 0, length, 3, 0, 0)


def huge_header(cluster):
    """Without a word of ours before it: nothing of it is ever parsed."""
    for length in (1 << 30, 0xffffffff):
        line = cluster.connect()
        ignore_errors(line.sendall, header(1, length))
        assert closed(line)
        line.close()


def huge_header_inside(cluster):
    """From a process that was let in: closed before anything is allocated."""
    for number, length in enumerate((1 << 30, 0xffffffff, (16 << 20) + 1)):
        line = cluster.enter(f"big{number}")
        line.sendall(header(1, length))
        ignore_errors(line.sendall, b"x" * 100_000)
        assert closed(line)
        line.close()


def random_bytes_inside(cluster):
    chance = random.Random(8)
    for number in range(40):
        line = cluster.enter(f"noise{number}")
        # A wrong operation, so that the header is refused whatever the rest says.
        ignore_errors(line.sendall, bytes([0xff]) + chance.randbytes(95))
        assert closed(line)
        line.close()


def broken_payloads_inside(cluster):
    """Headers that hold, with payloads that do not."""
    chance = random.Random(9)
    for number in range(60):
        line = cluster.enter(f"broken{number}")
        ignore_errors(line.recv, 4096)
        size = chance.choice([1, 8, 60, 500])
        ignore_errors(line.sendall, header(chance.choice([0, 1, 2, 3, 4, 5]), size) + chance.randbytes(size))
        ignore_errors(line.sendall, header(chance.choice([2, 3]), 64) + b"\xff" * 64)
        line.close()


def slow_loris(cluster):
    """Many that say a byte now and then, and one that says nothing: none stays."""
    lines = [cluster.connect() for _ in range(300)]
    end = time.monotonic() + 8
    text = JOIN + b"z" * 400
    for byte in text:
        for line in lines:
            ignore_errors(line.send, bytes([byte]))
        time.sleep(0.25)
        if time.monotonic() > end:
            break
    assert cluster.hub.descriptors() <= cluster.descriptors + 64
    assert all(closed(line) for line in lines)
    for line in lines:
        line.close()


def slow_loris_tls(cluster):
    """A TLS hello, a byte at a time."""
    hello = ssl_hello()
    lines = [cluster.connect() for _ in range(100)]
    end = time.monotonic() + 7
    for byte in hello:
        for line in lines:
            ignore_errors(line.send, bytes([byte]))
        time.sleep(0.25)
        if time.monotonic() > end:
            break
    assert all(closed(line) for line in lines)
    for line in lines:
        line.close()


def ssl_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    handshake = context.wrap_bio(incoming, outgoing)
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def silent_inside(cluster):
    """Let in, and not a word after that: closed after some seconds."""
    lines = [cluster.enter(f"mute{number}") for number in range(20)]
    for line in lines:
        assert closed(line, 20)
        line.close()


def frames_of(data):
    """The messages behind the lines of a recorded session."""
    data = data[data.index(b"\n", data.index(b"answer ")) + 1:]
    while data:
        size = 32 + struct.unpack(">I", data[4:8])[0]
        yield data[:size]
        data = data[size:]


def never_reads(cluster):
    """Asks and asks, and reads no answer: closed when too much waits for it."""
    frames = list(frames_of(record(cluster)))
    hello = next(frame for frame in frames if b"cluster_hello" in frame)
    line = cluster.enter("deaf")
    line.sendall(b"".join(frames))
    line.settimeout(1)
    burst = hello * 100
    sent = 0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            line.sendall(burst)
        except TimeoutError:
            continue
        except OSError:
            break
        sent += len(burst)
    else:
        raise AssertionError(f"{sent} bytes of questions, and it is not closed")
    line.close()


def end_with_one_that_never_reads(cluster):
    """The coordinator ends although a peer reads nothing of what is still to be sent."""
    frames = list(frames_of(record(cluster)))
    line = cluster.enter("deaf")
    line.sendall(b"".join(frames))
    hello = next(frame for frame in frames if b"cluster_hello" in frame)
    line.sendall(hello * 1000)
    time.sleep(1)
    cluster.hub.end()
    line.close()


def stopped_node(cluster):
    """A node whose machine stands still is lost after the time-out, and comes back by itself."""
    os.kill(cluster.node.process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    while cluster.hub.descriptors() == cluster.descriptors:
        assert time.monotonic() < begun + 10, "the coordinator keeps the connection"
        time.sleep(0.05)
    assert time.monotonic() > begun + 2, "lost before the time-out"
    os.kill(cluster.node.process.pid, signal.SIGCONT)
    cluster.expect_return()


def stopped_coordinator(cluster):
    """The other way round."""
    seen = len(cluster.node.lines)
    os.kill(cluster.hub.process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    while not any(line.startswith("lost") for line in cluster.node.lines[seen:]):
        assert time.monotonic() < begun + 10, "the node keeps the connection"
        time.sleep(0.05)
    os.kill(cluster.hub.process.pid, signal.SIGCONT)
    cluster.expect_return()


def crowd(cluster):
    """A thousand connections that come and go at once, while a real process wants to join."""
    stop = threading.Event()

    def pester():
        while not stop.is_set():
            line = ignore_errors(cluster.connect)
            if line:
                ignore_errors(line.sendall, b"gristmill-join ")
                line.close()

    threads = [threading.Thread(target=pester) for _ in range(4)]
    for thread in threads:
        thread.start()
    tls = cluster.tls + "/nodes/b" if cluster.tls else "-"
    joined = subprocess.run([STUB, "try", f"127.0.0.1:{cluster.port}", tls], capture_output=True, text=True, timeout=60)
    time.sleep(1)
    stop.set()
    for thread in threads:
        thread.join()
    assert joined.stdout.strip() == "ok", joined.stdout


def old_version(cluster):
    for version, protocol in (("0.0.9", 1), (VERSION, 0), (VERSION, 2)):
        refusal = cluster.enter("old", version, protocol)
        assert refusal.startswith("refused ") and version in refusal and VERSION in refusal, refusal
        assert f"cluster protocol {protocol})" in refusal, refusal


def record(cluster):
    """Every byte that a real process sends in a session that works."""
    door = socket.create_server(("127.0.0.1", 0))
    recorded = bytearray()

    def pump(source, sink, keep):
        try:
            while data := source.recv(65536):
                if keep is not None:
                    keep.extend(data)
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            ignore_errors(each.shutdown, socket.SHUT_RDWR)

    def relay():
        client, _ = door.accept()
        server = cluster.connect()
        back = threading.Thread(target=pump, args=(server, client, None))
        back.start()
        pump(client, server, recorded)
        back.join()
        client.close()
        server.close()

    relaying = threading.Thread(target=relay)
    relaying.start()
    tls = cluster.tls + "/nodes/b" if cluster.tls else "-"
    joined = subprocess.run([STUB, "try", f"127.0.0.1:{door.getsockname()[1]}", tls], capture_output=True, text=True,
                            timeout=30)
    relaying.join()
    door.close()
    assert joined.stdout.strip() == "ok", joined.stdout
    assert len(recorded) > 150
    return bytes(recorded)


def replay(cluster):
    """A recorded session once more."""
    recorded = record(cluster)
    for _ in range(3):
        line = cluster.connect()
        ignore_errors(line.sendall, recorded)
        said = b""
        line.settimeout(15)
        try:
            while data := line.recv(65536):
                said += data
        except ConnectionError:
            pass
        assert b"welcome" not in said, said[:100]
        line.close()


def no_certificate(cluster):
    for _ in range(10):
        try:
            line = cluster.secure(None)
            line.sendall(JOIN + b"x\n")
            assert closed(line)
            line.close()
        except (ssl.SSLError, ConnectionError):
            pass


def foreign_certificate(cluster):
    with tempfile.TemporaryDirectory(prefix="gristmill-hostile-") as folder:
        subprocess.run([STUB, "init", folder + "/c", "b"], check=True)
        for _ in range(10):
            try:
                line = cluster.secure(folder + "/c/nodes/b")
                line.sendall(JOIN + b"x\n")
                assert closed(line)
                line.close()
            except (ssl.SSLError, ConnectionError):
                pass
        refused = subprocess.run([STUB, "try", f"127.0.0.1:{cluster.port}", folder + "/c/nodes/b"],
                                 capture_output=True, text=True, timeout=30)
        assert "of another CA" in refused.stdout, refused.stdout


def no_tls(cluster):
    for text in (JOIN + b"x\n", b"GET / HTTP/1.1\r\n\r\n", header(1, 1 << 30)):
        line = cluster.connect()
        ignore_errors(line.sendall, text)
        assert closed(line)
        line.close()
    refused = subprocess.run([STUB, "try", f"127.0.0.1:{cluster.port}", "-"], capture_output=True, text=True, timeout=30)
    assert refused.returncode == 2 and "--tls FOLDER" in refused.stdout, refused.stdout


def another_user(cluster):
    """Only root can be two users. A process of `nobody` says all the right words."""
    if os.geteuid() != 0:
        print("  skipped: another user takes root")
        return
    # Loaded while its file can be read; looking an address up takes it.
    "localhost".encode("idna")
    child = os.fork()
    if child == 0:
        said = ""
        try:
            os.setgid(65534)
            os.setuid(65534)
            said = enter_as_stranger(cluster.port)
        finally:
            os._exit(0 if "another user (65534)" in said else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "it was let in, or not told why"


def enter_as_stranger(port):
    line = socket.create_connection(("127.0.0.1", port), 10)
    line.sendall(JOIN + b"stranger\n")
    line.sendall(f"answer {read_line(line).split()[3]}\n".encode())
    return read_line(line)


PLAIN = [random_bytes, huge_header, huge_header_inside, random_bytes_inside, broken_payloads_inside, slow_loris,
         crowd, old_version, replay, another_user, stopped_node, never_reads]
TLS = [random_bytes, huge_header, huge_header_inside, no_certificate, foreign_certificate, no_tls, slow_loris_tls,
       silent_inside, old_version, replay, crowd, stopped_coordinator]


def run(kind, tls, cases):
    wanted = [case for case in cases if not sys.argv[2:] or case.__name__ in sys.argv[2:]]
    if not wanted:
        return
    cluster = Cluster(tls)
    try:
        for case in wanted:
            begun, used = time.monotonic(), cluster.hub.processor_seconds()
            cluster.forget_peak()
            case(cluster)
            grown = cluster.check(GROWTH_MAX_KIB_OF.get(case.__name__, GROWTH_MAX_KIB))
            print(f"{kind:5} {case.__name__:24} {time.monotonic() - begun:5.1f} s, the coordinator: {grown:6d} KiB "
                  f"more, {cluster.hub.processor_seconds() - used:.2f} s of processor", flush=True)
        if kind == "plain":
            begun = time.monotonic()
            end_with_one_that_never_reads(cluster)
            print(f"{kind:5} end_with_one_that_never_reads {time.monotonic() - begun:.1f} s", flush=True)
        else:
            cluster.end()
    finally:
        for each in (cluster.node, cluster.hub):
            each.process.kill()
            each.process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="gristmill-hostile-") as top:
        subprocess.run([STUB, "init", top + "/c", "a", "b"], check=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(run, "plain", None, PLAIN), pool.submit(run, "tls", top + "/c", TLS)]:
                done.result()
