#!/usr/bin/env python3
"""The PTX interpreter beside its prototype: compiles the prototype's ten kernels and runs the pair.

    cmake --preset release -DGRISTMILL_BENCH=ON -DGRISTMILL_PTX_PROTOTYPE=PROTOTYPE
    cmake --build --preset release --target gristmill-bench-ptx-pair
    bench/ptx_pair.py PROTOTYPE build/release/bench/gristmill-bench-ptx-pair [ROUNDS [KERNEL]]

PROTOTYPE is the folder with cases.h, kernels/ and ptx/. PTX comes from nvcc, or from clang++-19 with the prototype's
own headers where there is no toolkit. The program prints processor time of both, turn by turn. Exit status: the
program's, or 2 when the kernels cannot be compiled.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def compiler(prototype):
    """The command without the two files."""
    if nvcc := shutil.which("nvcc"):
        return [nvcc, "-arch=sm_90a", "-std=c++17", "-ptx"]
    if clang := shutil.which("clang++-19"):
        return [clang, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90a", "-nocudainc", "-nocudalib",
                "-nostdinc", "-fdeclspec", "-std=c++20", "-O3", f"-I{prototype}/clang/inc",
                "-include", f"{prototype}/clang/cudadev.h", "-w", "-S"]
    raise FileNotFoundError("neither nvcc nor clang++-19 is installed")


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    prototype, program = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        try:
            command = compiler(prototype)
            for source in sorted((prototype / "kernels").glob("*.cu")):
                subprocess.run([*command, "-o", f"{folder}/{source.stem}.ptx", str(source)], check=True)
        except (OSError, subprocess.CalledProcessError) as why:
            print(f"ptx_pair.py: {why}", file=sys.stderr)
            return 2
        print(f"PTX of {Path(command[0]).name}", flush=True)
        return subprocess.run([str(program), folder, *sys.argv[3:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
