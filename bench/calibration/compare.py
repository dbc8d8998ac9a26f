#!/usr/bin/env python3
"""Sets the mock's modelled times against measured ones.

usage: compare.py MEASURED.csv MODELLED.csv [--split split.toml] [--flush official|clean|warm] [--pairs]
                  [--by class|family] [--csv OUT.csv]

MEASURED.csv is kernels.csv of run_on_device.sh, MODELLED.csv what `gristmill-bench-corpus mock` prints. For each
class (or family) and for each part of the split prints exp(mean |ln(modelled / measured)|): 1.10 means "off by
10 % on average, in either direction". With --pairs also how well the modelled order agrees with the measured one
among the settings of a folder: Kendall's tau over pairs that differ by more than 3 %, and how much slower the
setting is that the model would choose. Exit code 0, or 2 for files that cannot be read.
"""

import argparse
import csv
import math
import sys
import tomllib
from pathlib import Path


def read_measured(path, flush):
    """{name: row} of one kind of flush; kernels whose result was wrong do not count."""
    rows = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["flush"] != flush:
                continue
            if row["verdict"] != "right":
                print(f"left out: {row['name']} gave wrong numbers", file=sys.stderr)
                continue
            rows[row["name"]] = row
    return rows


def read_modelled(path):
    with open(path, newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def part_of(split, name, family):
    if name in split.get("sealed", []):
        return "sealed"
    for part in ("open", "held_out"):
        if family in split.get(part, []):
            return part
    raise ValueError(f"{name}: family {family} is in no part of the split")


def score(pairs):
    """exp(mean |ln(modelled / measured)|) of (modelled, measured) pairs."""
    return math.exp(sum(abs(math.log(m / r)) for m, r in pairs) / len(pairs))


def bias(pairs):
    """exp(mean ln(modelled / measured)): below 1 the model is too fast."""
    return math.exp(sum(math.log(m / r) for m, r in pairs) / len(pairs))


def order(pairs, least=0.03):
    """Kendall's tau over pairs that differ by more than `least`, and the regret of the model's choice."""
    agree = differ = 0
    for i, (m, r) in enumerate(pairs):
        for m2, r2 in pairs[i + 1:]:
            if abs(r - r2) <= least * min(r, r2):
                continue
            if (m - m2) * (r - r2) > 0:
                agree += 1
            else:
                differ += 1
    chosen = min(pairs)[1]
    best = min(r for _, r in pairs)
    tau = (agree - differ) / (agree + differ) if agree + differ else math.nan
    return tau, chosen / best - 1


def table(title, groups):
    print(f"{title:<22} {'kernels':>7} {'factor':>8} {'bias':>7}  worst")
    for key in sorted(groups):
        rows = groups[key]
        pairs = [(m, r) for _, m, r in rows]
        name, m, r = max(rows, key=lambda row: abs(math.log(row[1] / row[2])))
        print(f"{key:<22} {len(rows):>7} {score(pairs):>8.3f} {bias(pairs):>7.3f}  {name} {m:.1f} for {r:.1f} us")
    every = [(m, r) for rows in groups.values() for _, m, r in rows]
    print(f"{'all':<22} {len(every):>7} {score(every):>8.3f} {bias(every):>7.3f}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("modelled", type=Path)
    parser.add_argument("--split", type=Path, default=Path(__file__).with_name("split.toml"))
    parser.add_argument("--flush", default="official", choices=["official", "clean", "warm"])
    parser.add_argument("--by", default="class", choices=["class", "family"])
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    try:
        measured = read_measured(arguments.measured, arguments.flush)
        modelled = read_modelled(arguments.modelled)
        split = tomllib.loads(arguments.split.read_text())
    except (OSError, KeyError, tomllib.TOMLDecodeError) as why:
        print(f"compare.py: {why}", file=sys.stderr)
        return 2
    groups, parts, folders, rows = {}, {}, {}, []
    missing = []
    for name, row in sorted(measured.items()):
        model = modelled.get(name)
        if model is None or not model["modelled_us"]:
            missing.append(name)
            continue
        m, r = float(model["modelled_us"]), float(row["median_us"])
        part = part_of(split, name, row["family"])
        groups.setdefault(row[arguments.by], []).append((name, m, r))
        parts.setdefault(part, []).append((name, m, r))
        folders.setdefault(name.split(".")[0], []).append((m, r))
        rows.append([name, row["family"], row["class"], part, f"{r:.3f}", f"{m:.3f}", f"{m / r:.4f}", model["bound"]])
    if not rows:
        print("compare.py: the files have no kernel in common", file=sys.stderr)
        return 2
    labels = {row["label"] for row in modelled.values()}
    print(f"modelled: {'; '.join(sorted(labels))}\nmeasured: {arguments.measured}, flush {arguments.flush}\n")
    for row in sorted(rows, key=lambda one: float(one[6])):
        print(f"{row[0]:<26} {row[3]:<9} measured {row[4]:>11} us  modelled {row[5]:>11} us  x {row[6]}  {row[7]}")
    print()
    table(arguments.by, groups)
    table("part of the split", parts)
    if arguments.pairs:
        for folder, pairs in sorted(folders.items()):
            if len(pairs) > 1:
                tau, regret = order(pairs)
                print(f"{folder:<22} {len(pairs)} settings, tau {tau:+.2f}, regret {regret * 100:.1f} %")
        print()
    if missing:
        print(f"no modelled time ({len(missing)}): {' '.join(missing)}")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["name", "family", "class", "part", "measured_us", "modelled_us", "ratio", "bound"])
            out.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
