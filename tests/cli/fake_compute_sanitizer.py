#!/usr/bin/env python3
"""Stands in for compute-sanitizer: starts its target as that does and writes a report of the same form, in
words of our own. The file `behaviour` beside this one says how it behaves, in one word."""

import os
import pathlib
import subprocess
import sys
import time

how = pathlib.Path(__file__).with_name("behaviour")
how = how.read_text().strip() if how.exists() else "clean"
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("A sanitizer that is none\nVersion 9.1.0 (for tests)")
    sys.exit(0)
if arguments == ["--help"]:
    print("  --show-backtrace arg\n  --padding arg")
    sys.exit(0)

values = {}
while arguments and arguments[0].startswith("--"):
    values[arguments[0]] = arguments[1]
    arguments = arguments[2:]
tool = values["--tool"]
# Of the options that it can do without, those that its help names.
assert "--report-api-errors" not in values and values["--show-backtrace"] == "no"
assert ("--padding" in values) == (tool == "memcheck")

if how == "hangs":
    # Its own child has to go with it.
    subprocess.Popen(["/bin/sleep", "300"])
    time.sleep(300)
if how == "crashes":
    os.abort()

target = subprocess.run(arguments, stdin=subprocess.DEVNULL).returncode
lines = ["COMPUTE-SANITIZER"]
errors = 0
if how == "finds" and tool == "memcheck":
    errors = 3
    for thread in range(errors):
        lines += ["Invalid __global__ write of size 4 bytes", "    at kernel(float const*, float*, int, int)+0x7c0",
                  f"    by thread ({thread},0,0) in block (5,0,0)", "    Address 0x7f00000000 is out of bounds", ""]
if how == "unsupported":
    lines += ["Device not supported"]
if target != 0:
    lines += ["Target application returned an error"]
if how != "silent":
    if tool == "racecheck":
        lines += [f"RACECHECK SUMMARY: {errors} hazards displayed ({errors} errors, 0 warnings)"]
    else:
        lines += [f"ERROR SUMMARY: {errors} errors"]
pathlib.Path(values["--log-file"]).write_text("".join(f"========= {line}".rstrip() + "\n" for line in lines))
sys.exit(int(values["--error-exitcode"]) if errors else target)
