#!/usr/bin/env python3
"""Sets the mock's modelled times against measured ones.

usage: compare.py MEASURED.csv MODELLED.csv [--split split.toml] [--flush official|clean|warm] [--pairs]
                  [--by class|family] [--part open|held_out|sealed] [--without-families] [--errors] [--csv OUT.csv]
       compare.py --rank VARIANTS.csv MODELLED.csv

MEASURED.csv is kernels.csv (or sealed.csv) of run_on_device.sh, MODELLED.csv what `gristmill-bench-corpus mock`
prints. For each class (or family) and for each part of the split prints exp(mean |ln(modelled / measured)|): 1.10
means "off by 10 % on average, in either direction". With --pairs also how well the modelled order agrees with the
measured one among the settings of a folder: Kendall's tau over pairs that differ by more than 3 %, and how much
slower the setting is that the model would choose. --without-families prints the score of all kernels but those of
one family, for each family: no constant is fitted to a kernel, so what changes is what that family hides. --errors
prints the list `errors` of a GPU's data file.

--rank does the same for the points of our templates: VARIANTS.csv is what `run_on_device.sh OUT templates` wrote,
MODELLED.csv what `gristmill-bench-corpus mock templates` prints. Exit code 0, or 2 for files that cannot be read.
"""

import argparse
import csv
import json
import math
import statistics
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


def first_choice(rows, modelled=0, measured=1):
    """The row that the model would choose; of equal ones the slowest."""
    return min(rows, key=lambda row: (row[modelled], -row[measured]))


def order(pairs, least=0.03):
    """Kendall's tau over pairs that differ by more than `least`, and the regret of the model's choice.

    What the model does not tell apart counts against it: as a wrong order, and as the slowest of its first ones."""
    agree = differ = 0
    for i, (m, r) in enumerate(pairs):
        for m2, r2 in pairs[i + 1:]:
            if abs(r - r2) <= least * min(r, r2):
                continue
            if (m - m2) * (r - r2) > 0:
                agree += 1
            else:
                differ += 1
    chosen = first_choice(pairs)[1]
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


def rank(measured_path, modelled_path):
    """How well the model puts the points of each template in order."""
    modelled = read_modelled(modelled_path)
    templates, missing = {}, []
    with open(measured_path, newline="") as file:
        for row in csv.DictReader(file):
            model = modelled.get(row["name"])
            if model is None or not model["modelled_us"]:
                missing.append(row["name"])
                continue
            templates.setdefault(row["family"], []).append(
                (row["name"], float(model["modelled_us"]), float(row["median_us"]), float(row["mean_magnitude"])))
    if not templates:
        raise ValueError("the files have no variant in common")
    print(f"modelled: {'; '.join(sorted({row['label'] for row in modelled.values()}))}\nmeasured: {measured_path}\n")
    print(f"{'template':<18} {'points':>6} {'span':>6} {'tau':>6} {'regret':>8} {'factor':>7} {'bias':>6}  chosen, best")
    for name, rows in sorted(templates.items()):
        middle = statistics.median(row[3] for row in rows)
        odd = [row[0] for row in rows if abs(row[3] - middle) > 0.01 * middle]
        if odd:
            print(f"left out, other numbers than the rest: {' '.join(odd)}", file=sys.stderr)
        rows = [row for row in rows if row[0] not in odd]
        pairs = [(m, r) for _, m, r, _ in rows]
        tau, regret = order(pairs)
        chosen, best = first_choice(rows, 1, 2), min(rows, key=lambda row: row[2])
        span = max(r for _, r in pairs) / best[2]
        print(f"{name:<18} {len(rows):>6} {span:>6.1f} {tau:>+6.2f} {regret * 100:>6.1f} % {score(pairs):>7.3f}"
              f" {bias(pairs):>6.2f}  {chosen[0].split('.', 1)[1]}, {best[0].split('.', 1)[1]}")
    if missing:
        print(f"no modelled time ({len(missing)}): {' '.join(missing)}")


def without_families(rows):
    """rows: (family, modelled, measured)."""
    every = score([(m, r) for _, m, r in rows])
    print(f"score without a family (all: {every:.3f})")
    for family in sorted({row[0] for row in rows}):
        inside = [(m, r) for f, m, r in rows if f == family]
        rest = [(m, r) for f, m, r in rows if f != family]
        if rest:
            print(f"  {family:<20} {len(inside):>3} kernels, {score(inside):.3f} inside, {score(rest):.3f} without")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", action="store_true")
    parser.add_argument("--part", choices=["open", "held_out", "sealed"])
    parser.add_argument("--without-families", action="store_true")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("measured", type=Path)
    parser.add_argument("modelled", type=Path)
    parser.add_argument("--split", type=Path, default=Path(__file__).with_name("split.toml"))
    parser.add_argument("--flush", default="official", choices=["official", "clean", "warm"])
    parser.add_argument("--by", default="class", choices=["class", "family"])
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    if arguments.rank:
        try:
            rank(arguments.measured, arguments.modelled)
        except (OSError, KeyError, ValueError) as why:
            print(f"compare.py: {why}", file=sys.stderr)
            return 2
        return 0
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
        if arguments.part and part != arguments.part:
            continue
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
    if arguments.without_families:
        without_families([(row[1], float(row[5]), float(row[4])) for row in rows])
    if arguments.errors:
        every = [(m, r) for group in parts.values() for _, m, r in group]
        errors = [("all", every)] + [(key, [(m, r) for _, m, r in group]) for key, group in sorted(groups.items())]
        print(json.dumps([{"class": key, "factor": round(score(pairs), 3), "kernels": len(pairs)} for key, pairs in errors]))
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
