"""Namespaces of our own, so that whatever a script of this folder does to a network ends with it.

`enter()` starts the script again in new namespaces of network, mounts and processes. There it may make as many
network namespaces, bridges and mounts as it likes: the machine's own network is never touched, and when the script
ends, in whatever way, the kernel kills every process and takes away every interface and mount that it made.

As another user than root a user namespace is tried too. Where nothing works, the script ends with exit code 77 and
says why. Standard library only.
"""

import os
import shutil
import signal
import subprocess
import sys

SKIPPED = 77
MARK = "GRISTMILL_PRIVATE_MACHINE"


def skip(reason):
    print("SKIPPED: %s" % reason, file=sys.stderr, flush=True)
    raise SystemExit(SKIPPED)


def inside():
    return os.environ.get(MARK) == "1"


def way_in():
    """The command line of unshare that works here; (None, reason) when none does."""
    if not sys.platform.startswith("linux"):
        return None, "network namespaces are a matter of Linux"
    for program in ("unshare", "nsenter", "ip", "mount"):
        if not shutil.which(program, path=search_path()):
            return None, "the program `%s` is missing (Debian: util-linux, iproute2)" % program
    plain = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    tries = [plain] if os.geteuid() == 0 else [plain[:1] + ["--user", "--map-root-user"] + plain[1:]]
    said = ""
    for command in tries:
        # An interface of the kind that is needed, not only the namespaces.
        probe = subprocess.run([*command, "ip", "link", "add", "veth0", "type", "veth", "peer", "name",
                                "veth1"],
                               capture_output=True, text=True, env={**os.environ, "PATH": search_path()})
        if probe.returncode == 0:
            return command, ""
        said = (probe.stderr or probe.stdout).strip().split("\n")[-1]
    return None, "no right to make network namespaces: %s" % said


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


def enter():
    """Returns inside the namespaces; does not return outside."""
    if inside():
        become_init()
        os.environ["PATH"] = search_path()
        # Names of network namespaces live here; the machine's are not seen and not changed.
        run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
        run("ip", "link", "set", "lo", "up")
        return
    command, reason = way_in()
    if command is None:
        skip(reason)
    sys.stdout.flush()
    os.execvpe(command[0], [*command, sys.executable, "-B", *sys.argv],
               {**os.environ, MARK: "1", "PATH": search_path()})


def become_init():
    """Process 1 of the namespace must reap what others leave behind: it does only that, and a child goes on."""
    if os.getpid() != 1:
        return
    child = os.fork()
    if child == 0:
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: os.kill(child, got))
    while True:
        try:
            pid, status = os.wait()
        except InterruptedError:
            continue
        if pid == child:
            # Its end is the end of every process in the namespace.
            os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def run(*command, check=True):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(map(str, command)), (done.stderr or done.stdout).strip()))
    return done


def processes():
    """Every living process in the namespace but this one, its parent and the programs in `helpers`: {pid: command}."""
    mine = {os.getpid(), 1, os.getppid()}
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in mine or int(entry) in helpers:
            continue
        try:
            with open("/proc/%s/stat" % entry) as stat:
                state = stat.read().rpartition(")")[2].split()[0]
            with open("/proc/%s/cmdline" % entry, "rb") as line:
                words = line.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if state != "Z":
            found[int(entry)] = words or "(no command line)"
    return found


# Processes of the harness itself, which are no leftovers.
helpers = set()
