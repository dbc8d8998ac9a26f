"""Runs a reference on float16 tensors where this torch has no float16 kernels on the CPU.

Loaded by torch_oracle.py once the reference has failed for that reason. An operator without a kernel
is computed on float32 copies, and each result is rounded to float16 once: what a GPU gives that adds
up in float32.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

MISSING = ("not implemented for 'Half'", "not implemented for Half")


def is_missing(error):
    """Whether the error says that an operator has no float16 kernel."""
    return isinstance(error, RuntimeError) and any(part in str(error) for part in MISSING)


def is_half(x):
    return isinstance(x, torch.Tensor) and x.dtype == torch.float16


class HalfInFloat(TorchDispatchMode):
    """Computes operators without a float16 kernel in float32; `operators` has their names."""

    def __init__(self):
        super().__init__()
        self.operators = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            if not is_missing(error):
                raise
        name = func._schema.name.split("::")[-1]
        self.operators.add(name)

        def widened(x):
            if x is torch.float16:
                return torch.float32
            return x.float() if is_half(x) else x

        def rounded(x):
            return x.half() if isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x

        result = func(*tree_map(widened, args), **tree_map(widened, kwargs))
        if name.endswith("_") and not name.endswith("__"):
            return args[0].copy_(result)
        return tree_map(rounded, result)


def call(run, arguments):
    """What `run` returns, and a sentence that says what was emulated."""
    mode = HalfInFloat()
    with mode:
        returned = run(*arguments)
    names = ", ".join(f"`{name}`" for name in sorted(mode.operators))
    return returned, (f"emulated: torch {torch.__version__} has no float16 kernel on the CPU for "
                      f"{names}, which computed in float32 and rounded to float16")
