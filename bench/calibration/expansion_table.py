#!/usr/bin/env python3
"""What one PTX instruction or library call becomes: machine instructions by pipe, and cycles in a chain.

usage: expansion_table.py CHAINED.csv NCU.csv > expansion.csv
       expansion_table.py expansion.csv > gpu/mock/ptx/expansion_table.inc

CHAINED.csv is what `probes CHAINED.csv expansion` writes; NCU.csv what `ncu --csv --page raw --print-units base
-k regex:expand` prints of the same program: for each name of CHAINED.csv, in that order, a launch with 1 and one
with 9 applications. A row is an eighth of their difference a warp, less that of the row `nothing.TYPE` of the same
width, to hundredths. Latency is the chained one less that of `nothing.TYPE`. Exit code 0, or 2 for files that are not
of that form.
"""

import csv
import re
import sys

APPLICATIONS = 8
PIPES = ("alu", "fma", "fmaheavy", "fp16", "fp64", "xu", "lsu", "uniform", "cbu", "adu")


def chained_rows(lines):
    """Name -> cycles, in the order of the file."""
    return {row["variant"]: float(row["value"]) for row in csv.DictReader(lines) if row["metric"] == "chained"}


def launches_of(lines):
    """A dict for each launch: counter -> instructions a warp."""
    columns = None
    for row in csv.reader(lines):
        if row and row[0] == "ID":
            columns = row
        elif columns and len(row) == len(columns) and row[0].isdigit():
            named = dict(zip(columns, row))
            blocks = re.findall(r"\d+", named["Grid Size"])
            yield {name: float(value.replace(",", "")) / int(blocks[0])
                   for name, value in named.items() if name.startswith("smsp__inst_executed") and value}


def width_of(name):
    return name.rpartition(".")[2] if name.rpartition(".")[2] in ("u64", "s64", "f64") else "32"


def table(chained, launches):
    if len(launches) != 2 * len(chained):
        raise ValueError(f"{len(launches)} launches for {len(chained)} names; two for each are wanted")
    counters = {"issue": "smsp__inst_executed.sum"}
    counters |= {pipe: f"smsp__inst_executed_pipe_{pipe}.sum" for pipe in PIPES}
    found, nothing = {}, {}
    for at, (name, cycles) in enumerate(chained.items()):
        few, many = launches[2 * at], launches[2 * at + 1]
        row = {column: (many[counter] - few[counter]) / APPLICATIONS if counter in many else None
               for column, counter in counters.items()}
        row["cycles"] = cycles
        if name.startswith("nothing."):
            nothing[name.removeprefix("nothing.")] = row
        else:
            found[name] = row
    yield ["name", *counters, "cycles"]
    for name, row in found.items():
        wide = width_of(name)
        around = nothing["u64" if wide in ("u64", "s64") else wide if wide == "f64" else
                         "u32" if name.endswith(("u32", "s32", "b32")) else "f32"]
        values = {column: value - around[column] for column, value in row.items() if value is not None}
        values["issue"] -= values.get("lsu", 0)
        values["lsu"] = 0
        yield [name, *(f"{values[column]:.2f}" if column in values else "" for column in row)]


# What is not one instruction here but is where kernels use it, with constants or for addresses; or is plain.
PLAIN = ("add.u32", "add.u64", "min.u32", "add.f32", "add.f64", "bfe.u32")


def code(rows):
    """The lines of expansion_table.inc."""
    yield "// Written by bench/calibration/expansion_table.py from bench/calibration/h200/expansion.csv."
    for row in rows:
        if row["name"] in PLAIN:
            continue
        eighths = (round(8 * float(row[pipe] or 0)) for pipe in ("issue", "alu", "fma", "fmaheavy", "xu", "fp64"))
        yield f'{{"{row["name"]}", {", ".join(map(str, eighths))}, {max(0, round(float(row["cycles"])))}}},'


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if len(sys.argv) == 2:
            with open(sys.argv[1], newline="") as file:
                print("\n".join(list(code(csv.DictReader(file)))))
            return 0
        with open(sys.argv[1], newline="") as one, open(sys.argv[2], newline="") as other:
            rows = list(table(chained_rows(one), list(launches_of(other))))
    except (OSError, ValueError, KeyError, csv.Error) as why:
        print(f"expansion_table.py: {why!r}", file=sys.stderr)
        return 2
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
