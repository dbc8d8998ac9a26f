"""`gristmill mcp` as a process: what comes on its stdin, how it ends, what is left of the run.

usage: mcp_stdio_check.py GRISTMILL SCRATCH_FOLDER

Standard library only. Each function is a rule; the first that does not hold ends the program.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}
COPY = """extern "C" __global__ void turn(const float* in, float* out, int rows, int columns) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < columns && y < rows) out[(long long)x * rows + y] = in[(long long)y * columns + x];
}
"""
PLAN = json.dumps({"schema": "gristmill.plan/1", "variants": [{"steps": [{
    "op": "launch", "entry": "turn", "grid": ["ceil_div(columns, 16)", "ceil_div(rows, 16)", 1],
    "block": [16, 16, 1], "args": ["matrix", "transposed", "rows", "columns"]}]}]})


def need(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


class Server:
    def __init__(self, program, out, *more):
        self.process = subprocess.Popen(
            [program, "mcp", "transpose", "--gpus", "mock:h200", "--seed", "1", "--out", str(out), *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def read(self):
        line = self.process.stdout.readline()
        need(line, "the server has gone")
        return json.loads(line)

    def call(self, number, name, arguments):
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                   "params": {"name": name, "arguments": arguments}})

    def finish(self):
        self.process.stdin.close()
        self.process.stdin = None
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err.decode()


def no_client_is_a_clean_run(program, scratch):
    """The end of the input ends the run, and its log is complete."""
    server = Server(program, scratch / "none")
    code, out, err = server.finish()
    need(code == 0 and out == b"", f"exit {code}, {out!r}, {err}")
    verified = subprocess.run([program, "log", "verify", scratch / "none"], capture_output=True)
    need(verified.returncode == 0, verified.stderr)


def hostile_input_is_answered_and_survived(program, scratch):
    server = Server(program, scratch / "hostile")
    for line, code in [(b"hello\n", -32700), (b"[]\n", -32600), (b"\xff\xfe\n", -32700),
                       (b"[" * 5000 + b"\n", -32600), (b"A" * 9_000_000 + b"\n", -32600),
                       (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', -32600)]:
        server.write(line)
        answer = server.read()
        need(answer["error"]["code"] == code, f"{line[:20]!r}: {answer}")
    server.send(HELLO)
    need(server.read()["result"]["protocolVersion"] == "2025-11-25", "initialize after all that")
    server.call(1, "compile", {"problem": "transpos", "source": COPY, "plan": PLAN})
    answer = server.read()["result"]
    need(answer["isError"] and "`transpose`" in answer["content"][0]["text"], answer)
    server.call(2, "compile", {"problem": "transpose", "source": "#include <cstdlib>\n" + COPY,
                               "plan": "{"})
    answer = server.read()["result"]
    need(answer["isError"] and "plan" in answer["content"][0]["text"], answer)
    code, _, err = server.finish()
    need(code == 0, err)


def requests_before_the_end_are_answered(program, scratch):
    """A client may write all it has and close its end: everything is answered, in any order."""
    server = Server(program, scratch / "piped")
    server.send(HELLO)
    server.call(1, "evaluate", {"problem": "transpose", "source": COPY, "plan": PLAN,
                                "hypothesis": "The plainest kernel, to have something to beat."})
    server.call(2, "compile", {"problem": "transpose", "source": COPY, "plan": PLAN})
    code, out, err = server.finish()
    answers = {a["id"]: a["result"] for a in map(json.loads, out.splitlines())}
    need(code == 0 and answers.keys() == {"hello", 1, 2}, f"{code} {answers.keys()} {err}")
    need(answers[1]["structuredContent"]["status"] == "PASSED", answers[1])
    shown = subprocess.run([program, "report", scratch / "piped", "--json"], capture_output=True)
    need(json.loads(shown.stdout)["ended"] is True, shown.stdout)


def a_signal_ends_it_and_resume_goes_on(program, scratch):
    """Killed with a candidate in line: the log has it, and `resume` tries it."""
    server = Server(program, scratch / "killed")
    server.send(HELLO)
    server.read()
    server.call(1, "evaluate", {"problem": "transpose", "source": COPY, "plan": PLAN,
                                "hypothesis": "It must survive the death of its server."})
    events = []
    while not any('"planted"' in line for line in events):
        events = subprocess.run([program, "log", "show", scratch / "killed", "--json"],
                                capture_output=True, text=True).stdout.splitlines()
        need(server.process.poll() is None, "the server has gone")
    server.process.send_signal(signal.SIGKILL)
    server.process.communicate()
    resumed = subprocess.run([program, "resume", scratch / "killed", "--json"], capture_output=True)
    table = json.loads(resumed.stdout)
    need(table["problems"][0]["status"] == "PASSED" and table["problems"][0]["attempts"] == 1,
         f"{resumed.returncode} {table} {resumed.stderr}")
    server = Server(program, scratch / "terminated")
    server.send(HELLO)
    server.read()
    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=60)
    need(server.process.returncode == 130, f"exit {server.process.returncode} after SIGTERM")


def a_cancelled_call_is_not_answered(program, scratch):
    server = Server(program, scratch / "cancelled")
    server.send(HELLO)
    server.read()
    server.call(1, "check", {"problem": "transpose", "source": COPY, "plan": PLAN})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    server.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    need(server.read()["id"] == 2, "only the ping is answered")
    code, out, err = server.finish()
    need(code == 0 and out == b"", f"{code} {out!r} {err}")


def the_budget_ends_attempts_but_not_the_server(program, scratch):
    server = Server(program, scratch / "budget", "--budget", "1attempts")
    server.send(HELLO)
    server.read()
    good = {"problem": "transpose", "source": COPY, "plan": PLAN,
            "hypothesis": "The plainest kernel, to have something to beat."}
    server.call(1, "evaluate", good)
    need(server.read()["result"]["structuredContent"]["status"] == "PASSED", "the one attempt")
    server.call(2, "evaluate", {**good, "source": COPY.replace("turn", "turn") + "// second\n"})
    answer = server.read()["result"]
    need(answer["isError"], answer)
    server.call(3, "hand_in", {"problem": "transpose"})
    need(server.read()["result"]["structuredContent"]["candidate"], "hand_in after the end")
    code, _, err = server.finish()
    need(code == 0, err)


def main():
    program, scratch = sys.argv[1], Path(sys.argv[2])
    scratch.mkdir(parents=True)
    for rule in (no_client_is_a_clean_run, hostile_input_is_answered_and_survived,
                 requests_before_the_end_are_answered, a_signal_ends_it_and_resume_goes_on,
                 a_cancelled_call_is_not_answered, the_budget_ends_attempts_but_not_the_server):
        rule(program, scratch)
        print("ok:", rule.__name__.replace("_", " "))


if __name__ == "__main__":
    main()
