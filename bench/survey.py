#!/usr/bin/env python3
"""For how many problems of a folder does `gristmill run` find a correct kernel?

usage: bench/survey.py BUILD_FOLDER [PROBLEMS] [--out FOLDER] [--budget 3attempts] [--timeout 150] [--jobs 2]
                       [--only NAME ...]

PROBLEMS is a folder whose sub-folders are problems in SOL-ExecBench form; default is data/sol-execbench of the
folder that the environment variable GRISTMILL_SHARED names. Each problem that loads is run alone:

    gristmill run FOLDER --budget 3attempts --workers 1 --gpus mock:h200:1 --out OUT/NAME

and gets one line: its name, the verdict of the best attempt, seconds, modelled speed-up over the plain kernel, the key
of that attempt, and the reason where nothing was correct. The last line counts. Times are no measurements: candidates run on the
modelled GPU. Build the targets gristmill, gristmill-compiler, gristmill-judge, gristmill-runner, gristmill-jail
and gristmill-oracle first. Standard library only.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time


def table_of(text):
    """The document that `--json` prints, which may have other lines around it."""
    start = text.find("{")
    while start >= 0:
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except json.JSONDecodeError:
            start = text.find("{", start + 1)
    return None


def run_one(arguments, problem):
    out = pathlib.Path(arguments.out) / problem.name
    shutil.rmtree(out, ignore_errors=True)
    command = [str(pathlib.Path(arguments.build) / "gristmill"), "run", str(problem), "--budget",
               arguments.budget, "--workers", "1", "--gpus", "mock:h200:1", "--json", "--out", str(out)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout)
        text, code = done.stdout, done.returncode
        errors = done.stderr
    except subprocess.TimeoutExpired as late:
        text = (late.stdout or b"").decode(errors="replace")
        errors, code = f"no end within {arguments.timeout} s", None
    seconds = time.monotonic() - began
    document = table_of(text) or {}
    row = (document.get("problems") or [{}])[0]
    reason = row.get("reason", "")
    if not document:
        lines = [line for line in errors.strip().splitlines() if line.strip()]
        reason = lines[-1] if lines else f"exit code {code}"
    elif not reason and row.get("status") != "PASSED":
        reason = f"its last attempt ended with {row.get('status') or 'nothing'}"
    return {"name": problem.name, "status": row.get("status", "NONE"), "seconds": seconds,
            "key": row.get("key", ""), "speedup": row.get("speedup"), "reason": reason}


def line_of(result):
    speedup = f"{result['speedup']:.2f}x" if result["speedup"] else ""
    return f"{result['name']:36} {result['status'] or 'NONE':20} {result['seconds']:6.1f} s {speedup:>8}  " \
           f"{result['key'] or '-'}  {result['reason']}".rstrip()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("build")
    parser.add_argument("problems", nargs="?")
    parser.add_argument("--out", default="/tmp/gristmill-survey")
    parser.add_argument("--budget", default="3attempts")
    parser.add_argument("--timeout", type=float, default=150)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    root = arguments.problems
    if root is None:
        shared = os.environ.get("GRISTMILL_SHARED")
        if not shared:
            sys.exit("name a folder of problems, or set GRISTMILL_SHARED")
        root = os.path.join(shared, "data", "sol-execbench")
    problems = sorted(path.parent for path in pathlib.Path(root).glob("*/definition.json"))
    if arguments.only:
        problems = [path for path in problems if path.name in arguments.only]
    pathlib.Path(arguments.out).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = []
        for result in pool.map(lambda path: run_one(arguments, path), problems):
            print(line_of(result), flush=True)
            results.append(result)
    passed = sum(result["status"] == "PASSED" for result in results)
    print(f"\n{passed} of {len(results)} problems have a correct kernel; "
          f"{sum(not result['reason'] and result['status'] != 'PASSED' for result in results)} "
          "have none and no reason")


if __name__ == "__main__":
    main()
