#!/usr/bin/env python3
"""Writes docs/results-h200.md from a run and the bounds table that it ran with.

usage: bench/h200_results.py RUN_DIR BOUNDS -o FILE [--gristmill PROGRAM] [--command TEXT]

Every number comes from the run's log (`gristmill log show RUN --json`) or from the table (schema
gristmill.bounds/3, `gristmill baseline`). What is missing is shown as `-`, never filled in. Exit code 2 for
input that cannot be used. Python 3.9, standard library only.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path


class BadInput(Exception):
    pass


def read_events(program, run):
    done = subprocess.run([program, "log", "show", run, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BadInput(f"{program} log show {run}: {done.stderr.strip() or done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def read_table(path):
    table = json.loads(Path(path).read_text(encoding="utf-8"))
    if table.get("schema") != "gristmill.bounds/3":
        raise BadInput(f"{path}: schema: {table.get('schema')!r} says not where T_b is from; "
                       "gristmill.bounds/3 is needed")
    return table


def counted(mode):
    """The summary that counts: the tracer's where it saw all, else events."""
    return mode.get("activity_ns") or mode.get("device_ns")


def geomean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def interval(blocks):
    """Fastest and slowest median among our blocks of one comparison, in nanoseconds. None without two."""
    ours = [b["median_ns"] for b in blocks if not b["rival"] and b["median_ns"]]
    if len(ours) < 2:
        return None
    return min(ours), max(ours)


class Best:
    """The best verdict of each workload: a promotion where there is one, else the fastest that passed."""

    def __init__(self, events):
        self.rows = {}
        for event in events:
            data = event.get("data") or {}
            if event["kind"] != "verdict" or data.get("kind") == "baseline":
                continue
            if data.get("status", "").lower() != "passed" or data.get("incumbent_stays"):
                continue
            promoted = bool(data.get("promotion"))
            for row in data.get("workloads", []):
                key = (event["problem"], row["uuid"])
                if row.get("status", "").lower() != "passed" or not row.get("time_ns"):
                    continue
                old = self.rows.get(key)
                better = old is None or (promoted and not old["promoted"]) or (
                    promoted == old["promoted"] and row["time_ns"] < old["row"]["time_ns"])
                if better:
                    self.rows[key] = {"row": row, "promoted": promoted, "event": event,
                                      "findings": data.get("findings", [])}


def gpu_seconds(events):
    """Seconds under lease of each problem, and the share of the run's wall time with a lease out."""
    by_problem, total = {}, 0
    for event in events:
        data = event.get("data") or {}
        if event["kind"] in ("lease_release", "lease_withdraw", "lease_revoke"):
            held = data.get("held_ns", 0)
            total += held
            by_problem[event["problem"]] = by_problem.get(event["problem"], 0) + held
    wall = max((e["t"] for e in events), default=0)
    return by_problem, total, wall


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def problem_lines(table, best, held):
    lines, ratios, against_eager, copies = [], [], [], []
    for problem, entry in table["problems"].items():
        for uuid, bounds in entry["workloads"].items():
            baseline = bounds["baseline"]
            t_b, t_sol = bounds["t_b_ns"], bounds["t_sol_ns"]
            found = best.rows.get((problem, uuid))
            time = found["row"]["time_ns"] if found else None
            eager = next((counted(m) for m in baseline["modes"] if m["mode"] == "eager" and counted(m)), None)
            copy = baseline.get("copy_ns")
            score = sol = speed = speed_eager = share = None
            if time:
                sol = t_sol / time
                speed = t_b / time
                score = found["row"]["sol_score"]
                speed_eager = eager["median"] / time if eager else None
                # A copy bounds nothing that computes longer than it moves.
                share = copy["median"] / time if copy else None
            ratios.append(speed or 1.0)
            if eager:
                against_eager.append(speed_eager or 1.0)
            spread = ""
            if found and found["row"].get("blocks"):
                ends = interval(found["row"]["blocks"])
                if ends:
                    spread = f" ({t_b / ends[1]:.2f} to {t_b / ends[0]:.2f})"
            memory_bound = copy and t_sol and t_sol < 1.6 * copy["median"]
            if share is not None and memory_bound:
                copies.append((problem, share))
            note = []
            if found and not found["promoted"]:
                note.append("not promoted")
            if found and found["row"].get("needs_audit"):
                note.append("audit")
            if time and time < t_sol:
                note.append("below T_SOL")
            if t_b < t_sol:
                note.append("T_b below T_SOL")
            lines.append(
                f"| {problem} | {number(t_b / 1e3)} ({baseline['winner']}) | "
                f"{number(eager['median'] / 1e3 if eager else None)} | {number(time / 1e3 if time else None)} | "
                f"{number(speed)}{spread} | {number(speed_eager)} | {number(share if memory_bound else None)} | "
                f"{number(sol)} | {number(score, 3)} | {number(held.get(problem, 0) / 1e9, 1)} | "
                f"{', '.join(note) or ' '} |")
    return lines, ratios, against_eager, copies


def mode_lines(table):
    lines = []
    for problem, entry in table["problems"].items():
        for uuid, bounds in entry["workloads"].items():
            for mode in bounds["baseline"]["modes"]:
                times = counted(mode)
                if times:
                    what = (f"{times['median'] / 1e3:.2f} | {times['mad'] / 1e3:.2f} | "
                            f"{mode['span_ns']['median'] / 1e3:.2f} | {mode.get('choice', '')}")
                else:
                    what = f"- | - | - | {mode['reason']}"
                lines.append(f"| {uuid} | {mode['mode']} | {what} |")
    return lines


def page(run, table, events, command):
    best = Best(events)
    held, total, wall = gpu_seconds(events)
    rows, ratios, against_eager, copies = problem_lines(table, best, held)
    started = next((e for e in events if e["kind"] == "run_started"), {"data": {}})
    ended = next((e for e in events if e["kind"] == "run_ended"), None)
    verdicts = sum(1 for e in events if e["kind"] == "verdict")
    provenance = table.get("provenance", {})
    out = ["# Results on an H200", "",
           f"Generated by `bench/h200_results.py` from the log of one run and the table of baselines of {table['date']}.",
           "Device times in microseconds, medians. The ratio in brackets is that of the slowest and the fastest block of",
           "the comparison that made the kernel the best one.", "",
           "| problem | T_b (mode) | eager | best | T_b / best | eager / best | of a copy | T_SOL / best | SOL score | GPU-s | note |",
           "|---|---|---|---|---|---|---|---|---|---|---|"]
    out += rows
    ratio, eager = geomean(ratios), geomean(against_eager)
    worst = min(copies, key=lambda each: each[1], default=None)
    out += ["", f"Geometric mean over {len(ratios)} workloads (one without a kernel counts 1.0): "
                f"**{number(ratio)}x** over the best PyTorch mode, **{number(eager)}x** over eager. "
                f"At least as fast as the best mode: {sum(1 for r in ratios if r >= 1)} of {len(ratios)}.",
            "",
            "Memory-bound problems reach at least "
            + (f"{worst[1]:.2f} of a copy of equal bytes ({worst[0]})." if worst else "- of a copy: none was measured."),
            "", "## Circumstances", "",
            f"- Device: {table['device']}; clocks {table['clock']}",
            f"- Table: T_SOL {table.get('t_sol_method', '-')}",
            f"- Table: T_b {table.get('t_b_method', '-')}"]
    out += [f"- {name}: {words}" for name, words in provenance.items()]
    out += [f"- Run: {verdicts} verdicts in {wall / 1e9:.0f} s; {total / 1e9:.1f} GPU-seconds under lease, "
            f"{100 * total / wall if wall else 0:.0f} % of the wall time",
            f"- Times of the run: {started['data'].get('time_note', '-')}",
            f"- The run {'ended in order' if ended else 'has no end in its log'}",
            f"- Command: `{command or 'not told'}`", "", "## All modes of the baselines", "",
            "| workload | mode | median | MAD | span without the wait | choice, or why not |", "|---|---|---|---|---|---|"]
    out += mode_lines(table)
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("bounds")
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--gristmill", default="gristmill")
    parser.add_argument("--command", default="")
    given = parser.parse_args()
    try:
        table = read_table(given.bounds)
        events = read_events(given.gristmill, given.run)
        Path(given.out).write_text(page(given.run, table, events, given.command), encoding="utf-8")
    except (BadInput, OSError, json.JSONDecodeError, KeyError) as error:
        print(f"h200_results: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
