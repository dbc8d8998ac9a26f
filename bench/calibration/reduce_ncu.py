#!/usr/bin/env python3
"""Keeps of ncu's raw page the counters that the mock's clock counts as well.

usage: reduce_ncu.py RAW.csv > ncu.csv

RAW.csv is what `ncu --csv --page raw --print-units base` prints, with the kernel's name of the corpus as a first
column: for each kernel a line of column names, a line of units, and a line for each launch. Here a launch is one
line: name, entry, and the counters below as plain numbers, in ncu's base units (sectors, requests, wavefronts,
instructions, cycles, ns). A counter that was not measured is empty. Exit code 0, or 2 for a file that is not of that form.
"""

import csv
import sys

COUNTERS = (
    "dram__sectors_read.sum", "dram__sectors_write.sum",
    "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum",
    "lts__t_sectors_op_atom.sum", "lts__t_sectors_op_red.sum", "lts__t_sectors_lookup_hit.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "smsp__inst_executed.sum", "sm__inst_executed_pipe_tensor.sum",
    "sm__cycles_elapsed.max", "gpu__time_duration.sum",
    "launch__registers_per_thread", "launch__grid_size", "launch__block_size",
)


def reduced(lines):
    """The rows of ncu.csv, its head first, of the lines of a raw file. Raises ValueError."""
    yield ["name", "entry", *COUNTERS]
    columns = None
    for number, row in enumerate(csv.reader(lines), 1):
        if len(row) > 1 and row[1] == "ID":
            columns = {name: place for place, name in enumerate(row)}
            if "Kernel Name" not in columns:
                raise ValueError(f"line {number}: no column 'Kernel Name'")
        elif columns is None:
            raise ValueError(f"line {number}: no line of column names above it")
        elif len(row) != len(columns):
            raise ValueError(f"line {number}: {len(row)} fields under {len(columns)} column names")
        elif row[1]:  # A line of units has no ID.
            values = [row[columns[name]].replace(",", "") if name in columns else "" for name in COUNTERS]
            yield [row[0], row[columns["Kernel Name"]], *values]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], newline="") as file:
            rows = list(reduced(file))
    except (OSError, ValueError, csv.Error) as why:
        print(f"reduce_ncu.py: {sys.argv[1]}: {why}", file=sys.stderr)
        return 2
    csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
