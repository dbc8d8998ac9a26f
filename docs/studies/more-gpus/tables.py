#!/usr/bin/env python3
"""Tables and figures of docs/studies/more-gpus.md, from the folders that `gristmill sweep` wrote.

    python3 docs/studies/more-gpus/tables.py FOLDER [--keep DIR]

FOLDER holds the folders gamma2, gamma4, policies and flows, or some of them. Prints every table. Python's standard
library only.
"""

import argparse
import csv
import math
import pathlib
import re
import shutil
import statistics

# Student's t, 97.5 %, by degrees of freedom: for at most 20 seeds.
T = [None, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
     2.131, 2.120, 2.110, 2.101, 2.093]


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def place(row):
    """Of a row of any of the files: the point of the grid, as the tables call it."""
    if "gpus.count" not in row:
        return "27 GPUs, compile on the lease"
    return f"{row['gpus.count']} GPUs, compile {'on' if row['compile.on_lease'] == 'true' else 'off'} the lease"


def number(value):
    size = abs(value)
    return f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 20 else f"{value:.3f}"


def with_half(values):
    """Mean and half width of the 95 % interval; None stands for a target that was not reached."""
    if any(v is None for v in values):
        return f"none in {sum(v is None for v in values)} of {len(values)}"
    mean = statistics.fmean(values)
    if len(values) < 2:
        return number(mean)
    half = T[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{number(mean)} ± {number(half)}"


def table(title, head, lines):
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")


def grouped(folder):
    """(point, policy, planner) -> rows of results.csv by seed, in the order of the file."""
    out = {}
    for row in rows(folder / "results.csv"):
        out.setdefault((place(row), row["policy"], row["planner"]), []).append(row)
    return out


def metrics_table(title, folder, keys, names):
    runs = grouped(folder)
    table(title, ["case", "policy", "planner"] + names,
          [[*who] + [with_half([float(r[k]) for r in all_of]) for k in keys] for who, all_of in runs.items()])


def crossing(curve, target, key):
    """Where a curve first reaches the target, between the two points linearly; None if it never does."""
    before = None
    for point in curve:
        y, x = float(point["geomean"]), float(point[key])
        if y >= target:
            if before is None or y == before[0]:
                return x
            return before[1] + (x - before[1]) * (target - before[0]) / (y - before[0])
        before = (y, x)
    return None


def to_target(folder):
    """When each case reaches the geomean that equal share on 27 GPUs with compilers on the lease ends with."""
    curves = {}
    for row in rows(folder / "curves.csv"):
        curves.setdefault((row["variant"], row["seed"]), []).append(row)
    runs = grouped(folder)
    base = next(iter(runs))
    target = {r["seed"]: float(r["geomean"]) for r in runs[base]}

    def reached(all_of, key):
        return [crossing(curves[(r["variant"], r["seed"])], target[r["seed"]], key) for r in all_of]

    lines = []
    for who, all_of in runs.items():
        line = [*who]
        for key, unit in (("time_s", 86400.0), ("gpu_hours", 1.0)):
            at, first = reached(all_of, key), reached(runs[base], key)
            line.append(with_half([None if a is None else a / unit for a in at]))
            line.append(with_half([None if a is None else a / b for a, b in zip(at, first)]))
        lines.append(line)
    table(f"{folder.name}: days and leased GPU-hours until the geomean that `{base[0]}`, equal share, ends with",
          ["case", "policy", "planner", "days", "of the first case's", "GPU-hours", "of the first case's"], lines)


def differences(folder, title, wanted, keys):
    lines = []
    for row in rows(folder / "differences.csv"):
        if row["metric"] not in keys or not wanted(row):
            continue
        base = {k[len("baseline_"):]: v for k, v in row.items() if k.startswith("baseline_")}
        if row["mean"] == "":
            continue
        value = f"{float(row['mean']):+.4g}" + (f" ± {float(row['half']):.2g}" if row["half"] else "")
        lines.append([f"{place(row)}, {row['policy']}, {row['planner']}",
                      f"{place(base)}, {base['policy']}, {base['planner']}", row["metric"], value, row["verdict"]])
    table(title, ["case", "minus", "metric", "difference", "verdict"], lines)


def bounds(folder):
    """What `gristmill sweep` computes from equal share and the oracle under the same lease policy."""
    lines = []
    for row in rows(folder / "summary.csv"):
        if row["metric"] in ("hours_to_95", "budget_to_equal") and row["planner"] == "oracle":
            value = (f"none in {row['without_value']} of {int(row['seeds']) + int(row['without_value'])}"
                     if row["mean"] == "" else f"{float(row['mean']):.4g} ± {float(row['half'] or 0):.2g}")
            lines.append([place(row), row["policy"], row["metric"], value])
    table(f"{folder.name}: the oracle against equal share of the same case", ["case", "policy", "metric", "oracle"], lines)


def oracle_gains(folder):
    """Oracle minus equal share, same case, lease policy and seed."""
    runs, lines = grouped(folder), []
    for (where, policy, planner), all_of in runs.items():
        equal = runs.get((where, policy, "equal"))
        if planner != "oracle" or equal is None:
            continue
        lines.append([where, policy] + [
            with_half([float(a[k]) - float(b[k]) for a, b in zip(all_of, equal)])
            for k in ("geomean", "area", "wins", "above_two", "median_sol")])
    table(f"{folder.name}: oracle minus equal share, pairs of equal seeds",
          ["case", "policy", "geomean", "area", "wins", "> 2x", "median SOL"], lines)


def gains(folder):
    """Everything minus the first variant."""
    runs, lines = grouped(folder), []
    first = next(iter(runs))
    for who, all_of in runs.items():
        if who != first:
            lines.append([*who] + [with_half([float(a[k]) - float(b[k]) for a, b in zip(all_of, runs[first])])
                                   for k in ("geomean", "area", "wins", "above_two", "median_sol")])
    table(f"{folder.name}: minus `{', '.join(first)}`, pairs of equal seeds",
          ["case", "policy", "planner", "geomean", "area", "wins", "> 2x", "median SOL"], lines)


def saturation(folder):
    lines = []
    for (where, policy, planner), all_of in grouped(folder).items():
        if planner != "equal":
            continue
        agents, gpus = 300, int(all_of[0]["gpus.count"])
        of = [(float(r["leases_per_s"]), float(r["wait_mean_s"]), float(r["hold_mean_s"])) for r in all_of]
        think = [agents / x - w - s for x, w, s in of]
        hold = [s for _, _, s in of]
        lines.append([where, with_half(think), with_half(hold),
                      with_half([gpus * (z + s) / s for z, s in zip(think, hold)])])
    table(f"{folder.name}: Z = 300/X - W - S, S, and N* = c (Z + S)/S", ["case", "Z, s", "S, s", "N*"], lines)


def identity(folder):
    lines = []
    for who, all_of in grouped(folder).items():
        lines.append([*who, all_of[0]["config"][:16], f"{all_of[0]['seed']} to {all_of[-1]['seed']}",
                      " ".join(r["digest"] for r in all_of[:3])])
    table(f"{folder.name}: what ran (digests of the first three seeds)",
          ["case", "policy", "planner", "config", "seeds", "digests"], lines)


STYLE = """<style>svg{background:#fff;color:#222}text{fill:currentColor;font:12px system-ui,sans-serif}
.title{font-size:14px;font-weight:600}.inside{fill:#fff;font-size:11px}.grid{stroke:#8886;stroke-width:.6}
.axis{stroke:currentColor;fill:none}.mark{stroke:currentColor;stroke-dasharray:4 3}</style>"""


def keep(folder, where):
    (where / folder.name).mkdir(parents=True, exist_ok=True)
    for name in ("summary.csv", "results.csv"):
        shutil.copyfile(folder / name, where / folder.name / name)
    kinds = {"Geometric mean against GPU-hours": "geomean", "How long leases were waited for": "waits"}
    wanted = "waits" if folder.name == "policies" else "geomean"
    for svg in re.findall(r"<svg.*?</svg>", (folder / "report.html").read_text(), re.S):
        label = re.search(r'aria-label="([^":]*): compile.on_lease = (true|false), gpus.count = (\d+)', svg)
        if label and kinds.get(label[1]) == wanted:
            name = f"{wanted}-{label[3]}-{'on' if label[2] == 'true' else 'off'}.svg"
            (where / folder.name / name).write_text(re.sub(r">", ">" + STYLE, svg, count=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="where the folders of the sweeps lie")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="also put summary.csv, results.csv and the charts that the page shows into DIR/SWEEP")
    arguments = parser.parse_args()
    first = ["leases", "leases_per_s", "utilisation", "wait_mean_s", "wait_p99_s", "gpu_hours"]
    outcome = ["geomean", "wins", "above_two", "median_sol", "area"]
    for name in ("gamma2", "gamma4", "policies", "flows"):
        folder = arguments.folder / name
        if not (folder / "summary.csv").exists():
            continue
        identity(folder)
        metrics_table(f"{name}: the queue", folder, first,
                      ["leases", "leases/s", "leased", "wait mean, s", "wait p99, s", "GPU-hours"])
        metrics_table(f"{name}: the outcome", folder, outcome, ["geomean", "wins", "> 2x", "median SOL", "area"])
        if name != "policies":
            bounds(folder)
            oracle_gains(folder)
        if name in ("policies", "flows"):
            metrics_table(f"{name}: fairness", folder, ["wait_p50_s", "wait_max_s", "jain_seconds", "starved"],
                          ["wait p50, s", "wait max, s", "Jain of seconds", "starved"])
            differences(folder, f"{name}: against the first policy",
                        lambda r: r.get("gpus.count") == r.get("baseline_gpus.count")
                        and r.get("compile.on_lease") == r.get("baseline_compile.on_lease"),
                        ("leases_per_s", "wait_mean_s", "jain_seconds", "geomean", "area", "wins"))
        else:
            saturation(folder)
        gains(folder)
        to_target(folder)
        if arguments.keep:
            keep(folder, arguments.keep)


if __name__ == "__main__":
    main()
