#!/usr/bin/env python3
"""deploy/slurm/gristmill-node.sbatch in a Slurm of its own: jobs become nodes of a run and leave before their limit.

slurmctld, slurmd and munged run on this machine in namespaces of their own, with their configuration and state in a temporary
folder. Skips with exit code 77 where they are not installed (Debian: slurm-wlm) or namespaces may not be made. With
GRISTMILL_BIN (as ctest sets it) jobs and coordinator are the real program, else a stand-in.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
SCRIPT = SOURCE / "deploy" / "slurm" / "gristmill-node.sbatch"
sys.path.insert(0, str(SOURCE / "bench" / "cluster"))

import private_machine  # noqa: E402
from programs import environment, program, until  # noqa: E402
from run_log import run_log  # noqa: E402
from work import fixed_work  # noqa: E402

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")

CONFIGURATION = """
ClusterName=mill
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/slurmd
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MinJobAge=600
KillWait=30
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class slurm:
    def __init__(self, folder):
        self.folder = Path(folder)
        host = socket.gethostname().split(".")[0]
        for name in ("ctld", "slurmd"):
            (self.folder / name).mkdir(parents=True)
        # munged refuses sockets and keys in folders that others may write to.
        os.chmod(self.folder, 0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        self.env = environment(self.folder, SLURM_CONF=str(self.folder / "slurm.conf"))
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=self.folder,
                                                                     cpus=os.cpu_count()))
        # sbatch and munged look users up, and this namespace has its own /run.
        self.daemons = [
            program("munged", ["munged", "--foreground", "--force", "--socket", self.folder / "munge.sock",
                               "--key-file", key, "--pid-file", self.folder / "munged.pid", "--log-file",
                               self.folder / "munged.log", "--seed-file", self.folder / "munged.seed"],
                    self.folder, self.env),
            program("slurmctld", ["slurmctld", "-D"], self.folder, self.env),
            program("slurmd", ["slurmd", "-D"], self.folder, self.env)]

    def __enter__(self):
        # Slurm asks for addresses other than the loopback's before it opens a port; nothing goes there.
        private_machine.run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        private_machine.run("ip", "address", "add", "10.77.1.1/24", "dev", "veth0")
        for name in ("veth0", "veth1"):
            private_machine.run("ip", "link", "set", name, "up")
        self.daemons[0].start()
        until(lambda: (self.folder / "munge.sock").exists() or self.failed(), 20, "munged listens")
        for one in self.daemons[1:]:
            one.start()
        until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T") or self.failed(), 60, "Slurm is idle")
        return self

    def failed(self):
        for one in self.daemons:
            if one.child and not one.runs():
                raise RuntimeError("%s has ended: %s" % (one.name, one.last_words(6)))
        return False

    def __exit__(self, *_):
        for one in reversed(self.daemons):
            if one.child:
                one.kill()
        private_machine.run("ip", "link", "del", "veth0")

    def ask(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=self.env, timeout=60)
        return done.stdout.strip() if done.returncode == 0 else ""

    def submit(self, *command):
        done = subprocess.run(["sbatch", *map(str, command)], capture_output=True, text=True, env=self.env,
                              cwd=self.folder, timeout=60)
        found = re.search(r"Submitted batch job (\d+)", done.stdout)
        if not found:
            raise RuntimeError("sbatch: " + done.stderr.strip())
        return found.group(1)

    def state(self, job):
        """Such as ("RUNNING", "0:0")."""
        text = self.ask("scontrol", "show", "job", job)
        state, code = re.search(r"JobState=(\w+)", text), re.search(r"ExitCode=(\S+)", text)
        return (state.group(1) if state else "", code.group(1) if code else "")

    def until_state(self, job, states, at_most):
        try:
            until(lambda: self.state(job)[0] in states, at_most, "job %s is %s" % (job, " or ".join(states)))
        except TimeoutError as late:
            words = self.ask("scontrol", "show", "job", job)
            raise AssertionError("%s\n%s\n%s\n%s" % (late, words, self.daemons[1].last_words(12),
                                                     self.daemons[2].last_words(12))) from late

    def log(self, job):
        path = self.folder / ("gristmill-node-%s.log" % job)
        return path.read_text(errors="replace") if path.exists() else ""


class jobs_as_nodes(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        if "GRISTMILL_BIN" in os.environ:
            self.gristmill = Path(os.environ["GRISTMILL_BIN"]) / "gristmill"
            self.gpus, work = "sleep:200ms", ["softmax", "--proposer", "sleep", "--seed", "1", "--budget", "15m"]
        else:
            self.gristmill = self.folder / "gristmill"
            # Enough for some minutes of the stand-in.
            self.gpus, work = "mock:h200", fixed_work(self.folder / "work", each=450).flags()
            shutil.copy(HERE / "stand_in.py", self.gristmill)
            self.gristmill.chmod(0o755)
        self.coordinator = program("coordinator", [
            self.gristmill, "run", *work, "--gpus", "nodes:" + self.gpus, "--workers", 2, "--listen", "127.0.0.1:0",
            "--heartbeat", "1s", "--node-timeout", "15s", "--out", self.folder / "run"], self.folder)
        self.coordinator.start()
        self.addCleanup(self.coordinator.kill)
        self.address = until(lambda: re.search(r"listening on (\S+)", self.coordinator.err()), 60,
                             "the coordinator listens").group(1)
        self.log = run_log(self.gristmill, self.folder / "run")

    def submit(self, cluster, *flags):
        return cluster.submit("--cpus-per-task=1", "--export=ALL,GRISTMILL=%s" % self.gristmill, *flags, SCRIPT,
                              self.address, "-", "--gpus", self.gpus, "--workers", "1")

    def lost(self):
        return [event["data"]["node"] for event in self.log.events("node_lost")]

    def until_joined(self, cluster, job):
        def joined():
            return any(event["data"].get("node") == "slurm-" + job for event in self.log.events("node_joined"))

        try:
            until(joined, 60, "job %s is a node" % job)
        except TimeoutError as late:
            raise AssertionError("%s; %s; %s" % (late, cluster.state(job), cluster.log(job))) from late

    def test_a_job_joins_and_leaves_before_its_limit_and_another_goes_on(self):
        with slurm(self.folder / "slurm") as cluster:
            # Slurm keeps its limits to the minute, and its warning may be up to a minute early.
            first = self.submit(cluster, "--time=2", "--signal=B:USR1@60")
            self.until_joined(cluster, first)
            cluster.until_state(first, ("COMPLETED", "FAILED", "TIMEOUT"), 200)
            self.assertEqual(cluster.state(first), ("COMPLETED", "0:0"), cluster.log(first))
            self.assertEqual(self.lost(), [])

            second = self.submit(cluster, "--time=10")
            self.until_joined(cluster, second)
            self.assertTrue(self.coordinator.runs())
            cluster.ask("scancel", second)
            cluster.until_state(second, ("CANCELLED",), 100)
            until(lambda: "slurm-" + second not in cluster.ask("ps", "-e", "-o", "args"), 60, "its node is gone")
            self.assertEqual(self.lost(), [])
            self.assertEqual(list((cluster.folder / "tmp").glob("gristmill-node-*")), [])

    def test_a_job_without_arguments_says_how_it_is_used(self):
        with slurm(self.folder / "slurm") as cluster:
            job = cluster.submit("--cpus-per-task=1", SCRIPT)
            cluster.until_state(job, ("FAILED",), 60)
            self.assertEqual(cluster.state(job)[1], "2:0")
            self.assertIn("usage: sbatch gristmill-node.sbatch HOST:PORT", cluster.log(job))


if __name__ == "__main__":
    missing = [name for name in DAEMONS if not shutil.which(name, path=private_machine.search_path())]
    if missing:
        private_machine.skip("%s is not installed (Debian: slurm-wlm)" % missing[0])
    private_machine.enter()
    unittest.main()
