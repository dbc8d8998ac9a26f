#!/usr/bin/env python3
"""Builds exported solutions with the real PyTorch and compares them with their references.

usage: export_check.py EXPORT_FOLDER [--max-bytes N] [--operators] [--time] [--jobs N] [--verbose]

EXPORT_FOLDER is what `gristmill export` wrote, or one problem of it. For each problem: builds
solution.json with torch.utils.cpp_extension and its own flags, then, for every workload whose tensors fit,
draws random inputs, runs the reference of definition.json on the GPU and the solution in destination-passing
style, and compares by the workload's tolerance (a NaN or infinity on either side fails). With --operators the
torch operator in op/ is built and compared as well. With --time the reference, run eagerly, and the solution
are timed in turns on each workload: device events around one call, L2 flushed before it by writing to 256 MB,
median of 20. --jobs builds that many solutions at a time. One line a problem; exit code 0 when all that ran were
right and something ran, 1 when something was wrong, 2 for bad usage. Needs PyTorch with CUDA, nvcc and a GPU.
"""

import argparse
import importlib.util
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import torch
from torch.utils import cpp_extension

DTYPES = {
    "float64": torch.float64, "float32": torch.float32, "float16": torch.float16,
    "bfloat16": torch.bfloat16, "int64": torch.int64, "int32": torch.int32, "int16": torch.int16,
    "int8": torch.int8, "bool": torch.bool,
    "float8_e4m3fn": getattr(torch, "float8_e4m3fn", None),
    "float8_e5m2": getattr(torch, "float8_e5m2", None),
}


def resolve_axes(definition, workload):
    axes = {name: axis["value"] for name, axis in definition["axes"].items() if "value" in axis}
    axes.update(workload["axes"])
    for name, axis in definition["axes"].items():
        if "expression" in axis:
            if not re.fullmatch(r"[\w\s+\-*/%().]*", axis["expression"]):
                raise ValueError(f"axis {name}: {axis['expression']!r}")
            axes[name] = int(eval(axis["expression"], {"__builtins__": {}}, dict(axes)))
    return axes


def shape_of(spec, axes):
    return [int(size) if size.isdigit() else axes[size] for size in spec["shape"]]


def draw(spec, axes, generator):
    dtype = DTYPES.get(spec["dtype"])
    if dtype is None:
        raise NotImplementedError(f"no inputs of dtype {spec['dtype']} here")
    shape = shape_of(spec, axes)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, device="cuda", generator=generator).to(dtype)
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", generator=generator).to(dtype)
    if not dtype.is_floating_point:
        return torch.randint(-1024, 1024, shape, device="cuda", generator=generator).to(dtype)
    wide = torch.randn(shape, device="cuda", generator=generator, dtype=torch.float32)
    return (wide.clamp(-2, 2) if spec["dtype"].startswith("float8") else wide).to(dtype)


def make_inputs(definition, workload, axes, generator):
    values = []
    for name, spec in definition["inputs"].items():
        given = workload["inputs"].get(name, {})
        kind = given.get("type", "scalar" if "value" in given else "random")
        if kind not in ("random", "scalar"):
            raise NotImplementedError(f"input {name} is of kind {kind}")
        if spec["shape"] is None:
            if kind != "scalar":
                raise NotImplementedError(f"input {name} is a number that the workload does not give")
            values.append(given["value"])
        else:
            values.append(draw(spec, axes, generator))
    return values


def bytes_of(definition, axes):
    total = 0
    for spec in [*definition["inputs"].values(), *definition["outputs"].values()]:
        if spec["shape"] is not None:
            width = DTYPES[spec["dtype"]].itemsize if DTYPES.get(spec["dtype"]) else 1
            total += math.prod(shape_of(spec, axes)) * width
    return total


def clones(values):
    return [value.clone() if torch.is_tensor(value) else value for value in values]


def as_list(result, definition):
    if isinstance(result, dict):
        return [result[name] for name in definition["outputs"]]
    return list(result) if isinstance(result, (tuple, list)) else [result]


def compare(got, want, tolerance):
    """None when it matches, else what is wrong."""
    if tuple(got.shape) != tuple(want.shape) or got.dtype != want.dtype:
        return f"{tuple(got.shape)} {got.dtype}, expected {tuple(want.shape)} {want.dtype}"
    x, y = got.float().flatten(), want.float().flatten()
    if x.numel() == 0:
        return None
    if not (torch.isfinite(x).all() and torch.isfinite(y).all()):
        return "NaN or infinity"
    if y.norm() > 0 and x.norm() == 0:
        return "all zero"
    error = (x - y).abs()
    atol, rtol = tolerance.get("max_atol", 0.01), tolerance.get("max_rtol", 0.01)
    matched = 1 - (error > atol + rtol * y.abs()).double().mean().item()
    if matched < tolerance.get("required_matched_ratio", 0.99):
        return f"matched {matched:.6f}, largest error {error.max().item():.3e}"
    cap = tolerance.get("max_error_cap")
    if cap is not None and error.max().item() > cap:
        return f"largest error {error.max().item():.3e} above {cap}"
    return None


def build(solution, folder, verbose):
    for source in solution["sources"]:
        path = folder / source["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source["content"])
    options = solution["spec"]["compile_options"] or {}
    units = [str(folder / s["path"]) for s in solution["sources"]
             if "/" not in s["path"] and Path(s["path"]).suffix in (".cu", ".cpp", ".cc", ".cxx", ".c")]
    return cpp_extension.load(
        name="gristmill_" + re.sub(r"\W", "_", solution["name"]), sources=units,
        extra_cflags=options.get("cflags", []), extra_cuda_cflags=options.get("cuda_cflags", []),
        extra_ldflags=options.get("ld_flags", []), extra_include_paths=[str(folder)],
        build_directory=str(folder), verbose=verbose)


def load_module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def event_times(functions, flush):
    """Microseconds of each function, sample by sample, in turns."""
    times = [[] for _ in functions]
    for turn in range(23):
        for place, function in enumerate(functions):
            flush.fill_(turn & 127)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(200_000)  # So that the call is enqueued before the start is stamped.
            start.record()
            function()
            end.record()
            torch.cuda.synchronize()
            if turn >= 3:
                times[place].append(start.elapsed_time(end) * 1e3)
    return [sorted(samples) for samples in times]


def time_workload(label, reference, run, inputs, outputs, flush):
    eager, ours = event_times([lambda: reference(*inputs), lambda: run(*inputs, *outputs)], flush)
    middle = len(ours) // 2
    return (f"{label}: eager {eager[middle]:.1f} us ({eager[0]:.1f} to {eager[-1]:.1f}), solution "
            f"{ours[middle]:.1f} us ({ours[0]:.1f} to {ours[-1]:.1f}), ratio {eager[middle] / ours[middle]:.3f}",
            eager[middle] / ours[middle])


def check_problem(folder, arguments):
    """The texts of failures, of skipped workloads, the number that ran, texts of times, their ratios."""
    definition = json.loads((folder / "definition.json").read_text())
    solution = json.loads((folder / "solution.json").read_text())
    workloads = [json.loads(line) for line in (folder / "workload.jsonl").read_text().splitlines()
                 if line.strip()]
    failures, skipped, ran, times, ratios = [], [], 0, [], []
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda") if arguments.time else None
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "_reference.py").write_text(definition["reference"])
        reference = load_module(scratch / "_reference.py", "_reference").run
        built = arguments.builds / folder.name if arguments.builds else scratch / "build"
        built.mkdir(parents=True, exist_ok=True)
        run = getattr(build(solution, built, arguments.verbose),
                      solution["spec"]["entry_point"].split("::")[1])
        operator = None
        if arguments.operators:
            for path in (folder / "op").glob("*_op.py"):
                load_module(path, path.stem)
                operator = getattr(torch.ops.gristmill, path.stem[:-len("_op")])
        generator = torch.Generator(device="cuda").manual_seed(7)
        for workload in workloads:
            label = workload["uuid"]
            try:
                axes = resolve_axes(definition, workload)
                if bytes_of(definition, axes) > arguments.max_bytes:
                    skipped.append(f"{label}: too large")
                    continue
                inputs = make_inputs(definition, workload, axes, generator)
            except NotImplementedError as why:
                skipped.append(f"{label}: {why}")
                continue
            with torch.no_grad():
                wanted = as_list(reference(*clones(inputs)), definition)
                outputs = [torch.empty_like(one) for one in wanted]
                for one in outputs:
                    if one.element_size() > 1:
                        one.fill_(1)  # What nobody writes must not be right by chance.
                given = clones(inputs)
                for _ in range(3):  # Also that scratch is as a second call needs it.
                    run(*given, *outputs)
                torch.cuda.synchronize()
                produced = {"solution": outputs}
                if operator is not None:
                    produced["operator"] = as_list(operator(*clones(inputs)), definition)
            ran += 1
            for what, outs in produced.items():
                for name, got, want in zip(definition["outputs"], outs, wanted):
                    wrong = compare(got, want, workload.get("tolerance", {}))
                    if wrong:
                        failures.append(f"{label}: {what}, output {name}: {wrong}")
            for name, before, after in zip(definition["inputs"], inputs, given):
                if torch.is_tensor(before) and not torch.equal(before.view(torch.uint8) if before.dim() else before,
                                                               after.view(torch.uint8) if after.dim() else after):
                    failures.append(f"{label}: input {name} was written")
            if arguments.time:
                with torch.no_grad():
                    text, ratio = time_workload(label, reference, run, given, outputs, flush)
                times.append(text)
                ratios.append(ratio)
    return failures, skipped, ran, times, ratios


def build_ahead(folders, arguments):
    """Builds in processes of their own; whoever fails fails again, and says so, when it is checked."""
    command = [sys.executable, __file__, "--builds", str(arguments.builds), "--build-only"]
    waiting, running = list(folders), []
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            running.append(subprocess.Popen([*command, str(waiting.pop(0))], stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))
        running.pop(0).wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--max-bytes", type=int, default=16 << 30)
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--builds", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--build-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.build_only:
        solution = json.loads((arguments.folder / "solution.json").read_text())
        built = arguments.builds / arguments.folder.name
        built.mkdir(parents=True, exist_ok=True)
        build(solution, built, False)
        return 0
    folders = ([arguments.folder] if (arguments.folder / "solution.json").exists() else
               sorted(path.parent for path in arguments.folder.glob("*/solution.json")))
    if not folders:
        print(f"{arguments.folder}: no solution.json in it or below", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("no CUDA device", file=sys.stderr)
        return 2
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}")
    torch.backends.cuda.matmul.allow_tf32 = False
    if arguments.jobs > 1:
        arguments.builds = arguments.builds or Path(tempfile.mkdtemp(prefix="gristmill-builds-"))
        build_ahead(folders, arguments)
    wrong = total = 0
    means = []
    for folder in folders:
        times, ratios = [], []
        try:
            failures, skipped, ran, times, ratios = check_problem(folder, arguments)
        except Exception:  # One problem must not hide the others.
            failures, skipped, ran = [traceback.format_exc()], [], 0
        total += ran
        wrong += 1 if failures or ran == 0 else 0
        print(f"{folder.name}: {'WRONG' if failures else 'right' if ran else 'NOTHING RAN'}, "
              f"{ran} workloads ran, {len(skipped)} skipped")
        if ratios and not failures:
            means.append(statistics.geometric_mean(ratios))
            print(f"  eager / solution, geometric mean over its workloads: {means[-1]:.3f}")
        for line in failures + skipped + times:
            print("  " + line.replace("\n", "\n  "), flush=True)
    if means:
        print(f"eager / solution over {len(means)} problems that are right: geometric mean "
              f"{statistics.geometric_mean(means):.3f}, {sum(m > 1 for m in means)} faster, "
              f"{sum(m > 2 for m in means)} more than twice as fast")
    return 1 if wrong or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
