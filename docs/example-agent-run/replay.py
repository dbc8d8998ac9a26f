#!/usr/bin/env python3
"""Sends the recorded session to a fresh `gristmill mcp` and compares what comes back.

usage: replay.py GRISTMILL [--out FOLDER] [--limit N]

The same requests in the same order, one at a time. Compared are the verdicts, the MODELLED times and
every other part of the structured results; not compared is what may differ between two machines that
are both right (VOLATILE below). Exit code 0: everything equal; 1: something differs, and what.

Times are compared only when both come from the same model: the recorded answers name its version
("times_are"), and a program with another clock gives other times for the same kernels. Then
everything is left out that follows from times (TIMED below), and a line says so.

The modelled times are a function of the compiled code. Another version of the compiler than the one
in README.md may give other code, and then other times; the difference says so.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Which compiler, and what only time decides.
VOLATILE = {"toolchain", "cached", "log", "over", "state"}
# Times, what is computed from them, and what is decided or said because of them.
TIMED = {"times_are", "time_ns", "baseline_ns", "best_ns", "objective_ns", "terms", "terms_ns", "limited_by",
         "limiter", "speedup", "sol_score", "floor_share", "faster_count", "improved", "best_candidate", "best_key",
         "words", "summary", "reason", "class"}


def without(value, left_out):
    if isinstance(value, dict):
        return {k: without(v, left_out) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [without(v, left_out) for v in value]
    return value


def what_counts(answer, left_out):
    if "error" in answer:
        return {"error": answer["error"]["code"]}
    result = answer["result"]
    return {"isError": result.get("isError", False),
            "structured": without(result.get("structuredContent"), left_out)}


def label_of(answers):
    """What the times of these answers are, as the first says that does."""
    for answer in answers:
        label = ((answer.get("result") or {}).get("structuredContent") or {}).get("times_are")
        if label:
            return label
    return ""


def differences(path, old, new):
    if type(old) is not type(new):
        return [f"{path}: {old!r} became {new!r}"]
    if isinstance(old, dict):
        return [line for key in sorted(old.keys() | new.keys())
                for line in differences(f"{path}.{key}", old.get(key), new.get(key))]
    if isinstance(old, list) and len(old) == len(new):
        return [line for i, (a, b) in enumerate(zip(old, new))
                for line in differences(f"{path}[{i}]", a, b)]
    return [] if old == new else [f"{path}: {old!r} became {new!r}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gristmill")
    parser.add_argument("--out", help="run directory of the replay; else a temporary one")
    parser.add_argument("--limit", type=int, default=0, help="only the first N requests")
    given = parser.parse_args()

    header, *lines = (json.loads(line) for line in (HERE / "session.jsonl").open())
    requests = [x["message"] for x in lines if x["from"] == "client"]
    answers = {x["message"]["id"]: x["message"] for x in lines
               if x["from"] == "server" and "id" in x["message"]}
    listing = next(r for r in requests if r.get("params", {}).get("name") == "list_problems")
    if given.limit:
        requests = requests[:given.limit]
    scratch = tempfile.TemporaryDirectory()
    out = given.out or f"{scratch.name}/run"
    server = subprocess.Popen([given.gristmill, *header["arguments"], "--out", out],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(request):
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        while True:
            line = server.stdout.readline()
            if not line:
                sys.exit("the server has gone")
            answer = json.loads(line)
            if answer.get("id") == request["id"]:
                return answer

    # The plain kernels had been measured when the agent first asked for them.
    for number in range(1_000_000, 1_000_600):
        listed = ask({**listing, "id": number})
        told = listed["result"]["structuredContent"]["problems"]
        if all(problem["baseline_ns"] > 0 for problem in told):
            break
        time.sleep(0.5)
    else:
        sys.exit("the plain kernels were not measured within five minutes")
    left_out = set(VOLATILE)
    recorded, now = label_of(answers.values()), label_of([listed])
    if recorded != now:
        left_out |= TIMED
        print(f"times are not compared: recorded {recorded!r}, this program {now!r}")
    different = 0
    for request in requests:
        answer = ask(request)
        if request["method"] != "tools/call":
            continue
        name = request["params"]["name"]
        if name == "list_problems":  # How far the run has come at that moment.
            continue
        old, new = what_counts(answers[request["id"]], left_out), what_counts(answer, left_out)
        found = differences(name, old, new)
        for line in found[:5]:
            print(f"request {request['id']}: {line}")
        different += bool(found)
    server.stdin.close()
    code = server.wait(timeout=120)
    print(f"{len(requests)} requests, {different} answered differently, server ended with {code}")
    return 1 if different or code else 0


if __name__ == "__main__":
    sys.exit(main())
