#!/usr/bin/env python3
"""Holds what the mock counts of each kernel against what ncu read on a GPU.

    gristmill-bench-corpus counts tests/corpus/device_kernels > counts.jsonl
    bench/calibration/compare_counts.py counts.jsonl bench/calibration/h200/ncu.csv

The mock counts a sample of blocks; its numbers are scaled to the grid here. A row is a launch; "-" stands where
either side has nothing. Below: for each count how many launches agree to 1 % and to 5 %, and the typical ratio,
which is exp(mean |ln(mock / ncu)|). Exit status 2 for input that is not of these forms.
"""

import csv
import json
import math
import sys

# Column, counter of ncu, and where the mock has the same: categories and what of them.
COUNTS = (
    ("load sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", ("load_global",), "sectors"),
    ("store sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", ("store_global",), "sectors"),
    ("load requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", ("load_global",), "instructions"),
    ("shared wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
     ("load_shared", "store_shared", "atomic_shared"), "wavefronts"),
    ("instructions", "smsp__inst_executed.sum", None, "machine_instructions"),
    ("tensor", "sm__inst_executed_pipe_tensor.sum", ("mma",), "instructions"),
)


def mock_counts(lines):
    """Kernel and number of the launch -> launch, numbers scaled to the whole grid."""
    found = {}
    for number, line in enumerate(lines, 1):
        try:
            kernel = json.loads(line)
            launches = kernel["launches"]
            for at, launch in enumerate(launches):
                found[kernel["name"], at] = launch
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"counts, line {number}: {error!r}") from None
    return found


def of_mock(launch, categories, what):
    if not launch["blocks_run"]:
        return None
    scale = launch["grid"] / launch["blocks_run"]
    if categories is None:
        return launch[what] * scale
    count = sum(launch[c][what] for c in categories) * scale
    # ncu's counter has one for each shuffle and one for each warp that starts, besides.
    if what == "wavefronts":
        count += launch["shuffle"]["instructions"] * scale + launch["grid"] * -(-launch["threads"] // 32)
    return count


def rows_of(ncu, mock):
    """One row a launch: name, entry, and (mock, ncu) for each count."""
    seen = {}
    for row in ncu:
        at = seen.get(row["name"], 0)
        seen[row["name"]] = at + 1
        launch = mock.get((row["name"], at))
        # The same call may have been read by another name of the same entry.
        if launch is None or launch["entry"] != row["entry"]:
            yield row["name"], row["entry"], None
            continue
        yield row["name"], row["entry"], [
            (of_mock(launch, categories, what), float(row[counter]) if row.get(counter) else None)
            for _, counter, categories, what in COUNTS]


def ratio(pair):
    """mock / ncu; None where either is nothing, 1 where both are 0."""
    mock, ncu = pair
    if mock is None or ncu is None:
        return None
    if mock == 0 or ncu == 0:
        return 1.0 if mock == ncu else None
    return mock / ncu


def table(rows):
    yield f"{'kernel':34}{'entry':22}" + "".join(f"{name:>19}" for name, *_ in COUNTS)
    for name, entry, pairs in rows:
        if pairs is None:
            yield f"{name:34}{entry:22}  not run by the mock"
            continue
        cells = []
        for pair in pairs:
            r = ratio(pair)
            cells.append(f"{'-' if r is None else f'{r:.3f}':>19}")
        yield f"{name:34}{entry:22}" + "".join(cells)


def summary(rows):
    yield f"{'count':20}{'launches':>10}{'within 1 %':>12}{'within 5 %':>12}{'typical ratio':>15}"
    for i, (name, *_) in enumerate(COUNTS):
        ratios = [r for _, _, pairs in rows if pairs is not None for r in [ratio(pairs[i])] if r is not None]
        if not ratios:
            yield f"{name:20}{0:>10}"
            continue
        typical = math.exp(sum(abs(math.log(r)) for r in ratios) / len(ratios))
        yield (f"{name:20}{len(ratios):>10}{sum(abs(r - 1) <= 0.01 for r in ratios):>12}"
               f"{sum(abs(r - 1) <= 0.05 for r in ratios):>12}{typical:>15.3f}")


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8") as text:
            mock = mock_counts(text)
        with open(sys.argv[2], encoding="utf-8", newline="") as text:
            reader = csv.DictReader(text)
            missing = [c for _, c, *_ in COUNTS if c not in (reader.fieldnames or [])]
            if missing or "name" not in reader.fieldnames:
                raise ValueError(f"{sys.argv[2]}: no column {(missing or ['name'])[0]}")
            rows = list(rows_of(reader, mock))
    except (OSError, ValueError) as error:
        print(f"compare_counts.py: {error}", file=sys.stderr)
        return 2
    print("\n".join(table(rows)), "\n".join(summary(rows)), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
