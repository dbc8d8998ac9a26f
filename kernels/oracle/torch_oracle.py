"""Runs the reference of a problem with torch on the CPU, for gristmill-oracle.

Called as `python3 -I -B torch_oracle.py FOLDER`. Reads FOLDER/torch_job.json and writes one JSON line
for each answer to FOLDER/torch_answers.jsonl:

    {"workload": UUID, "status": STATUS, "reason": TEXT, "numbers": [{INPUT: NUMBER}, ...]}
    {"graph": FILE | "", "reason": TEXT}

STATUS is PASSED, with a reason that begins with "emulated" where the reference ran in another way than
it is written; INVALID_REFERENCE when the reference is wrong; RUNTIME_ERROR when the custom entry
point is; INFRASTRUCTURE when this machine lacks what they need. `numbers` are the inputs without a
shape that the entry point returned, call by call.

Tensors are raw little-endian files. Nothing is drawn here but the tiny inputs of a trace, whose values
do not matter, and what a custom entry point draws, which is seeded by the job.
"""

import importlib.util
import json
import os
import random
import sys
import time
import traceback
import types

DTYPES = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "float4_e2m1": "float4_e2m1fn_x2",
    "float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "bool": "bool",
}
PACKED = ("float4_e2m1", "float4_e2m1fn_x2")


class InvalidReference(Exception):
    """The reference does not do what the definition declares."""


class InvalidInputs(Exception):
    """The custom entry point does not do what the definition declares."""


class Lacking(Exception):
    """The reference may be right, but not here."""


def last_line(error):
    """What went wrong, in the one line that a person reads first."""
    if isinstance(error, (InvalidReference, InvalidInputs, Lacking)):
        return str(error)
    lines = traceback.format_exception_only(type(error), error)
    text = lines[-1].strip() if lines else repr(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith("reference.py"):
            return f"{text} (reference, line {frame.lineno})"
    return text


NO_DEVICE = ("not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver", "no NVIDIA driver",
             "CUDA driver", "Cannot access accelerator")
NO_KERNEL = ("not implemented for", "Could not run", "not implemented on", "not supported on CPU")
NO_MEMORY = ("not enough memory", "can't allocate memory", "Cannot allocate memory")


def what_is_lacking(error):
    """Why the error says nothing about the reference: what this Python, torch or machine lacks. Empty
    when it does."""
    text = str(error)
    if isinstance(error, Lacking):
        return text
    if isinstance(error, ModuleNotFoundError):
        return f"{sys.executable} has no module `{error.name}`"
    if isinstance(error, ImportError):
        return f"{sys.executable}: {text}"
    if isinstance(error, AttributeError):
        module = getattr(error, "obj", None)
        if isinstance(module, types.ModuleType) and module.__name__.split(".")[0] == "torch":
            return f"torch {torch.__version__} has no {module.__name__}.{error.name}"
    if isinstance(error, (MemoryError, OSError)):
        return last_line(error)
    if isinstance(error, (RuntimeError, AssertionError)):
        if any(part in text for part in NO_MEMORY):
            return f"too little memory: {text.splitlines()[0]}"
        if any(part in text for part in NO_DEVICE):
            return f"it asks for a CUDA device, and this torch has none: {text.splitlines()[0]}"
        if any(part in text for part in NO_KERNEL):
            return f"torch {torch.__version__} lacks an operator on the CPU: {text.splitlines()[0]}"
    return ""


def blame(error, status):
    """The status of a failure that is `status` unless something is lacking, with its reason."""
    lacking = what_is_lacking(error)
    if not lacking:
        return status, last_line(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith("reference.py"):
            return "INFRASTRUCTURE", f"{lacking} (reference, line {frame.lineno})"
    return "INFRASTRUCTURE", lacking


def torch_dtype(name):
    kind = getattr(torch, DTYPES[name], None)
    if kind is None:
        raise Lacking(f"torch {torch.__version__} has no dtype {DTYPES[name]}")
    return kind


def storage_shape(tensor):
    shape = list(tensor["shape"])
    if tensor["dtype"] in PACKED and shape:
        shape[-1] //= 2
    return shape


def load_beside(name):
    """A module of ours from the folder of this file, where an isolated Python does not look."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_reference(folder, source, entry_name):
    # A real file, because a reference may ask for its own source.
    path = os.path.join(folder, "reference.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location("_reference", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["_reference"] = module
    spec.loader.exec_module(module)
    run = getattr(module, "run", None)
    if not callable(run):
        raise InvalidReference("the reference has no function `run`")
    entry = getattr(module, entry_name, None) if entry_name else None
    if entry_name and not callable(entry):
        raise InvalidReference(f"the reference has no function `{entry_name}`")
    return run, entry


def read_tensor(folder, tensor):
    kind = torch_dtype(tensor["dtype"])
    shape = storage_shape(tensor)
    with open(os.path.join(folder, tensor["file"]), "rb") as file:
        content = bytearray(file.read())
    if len(content) != tensor["bytes"]:
        raise OSError(f"{tensor['file']}: {len(content)} bytes instead of {tensor['bytes']}")
    if not content:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(content, dtype=kind).reshape(shape)


def write_tensor(folder, tensor, value):
    path = os.path.join(folder, tensor["file"])
    flat = value.detach().contiguous().reshape(-1)
    with open(path + ".part", "wb") as file:
        if flat.numel() > 0:
            file.write(memoryview(flat.view(torch.uint8).numpy()))
    os.rename(path + ".part", path)


def arguments_of(order, scalars, tensors):
    """The arguments of `run` in the order of the definition's inputs."""
    by_name = {scalar["name"]: scalar["value"] for scalar in scalars}
    by_name.update(tensors)
    missing = [name for name in order if name not in by_name]
    if missing:
        raise OSError(f"no value for the inputs {', '.join(missing)}")
    return [by_name[name] for name in order]


def normalised(returned, declared):
    """The outputs as a list in declared order, whatever form `run` returned them in."""
    names = [tensor["name"] for tensor in declared]
    if isinstance(returned, dict):
        missing = [name for name in names if name not in returned]
        if missing:
            raise InvalidReference(f"`run` returns no {', '.join(missing)}")
        return [returned[name] for name in names]
    values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(values) != len(names):
        raise InvalidReference(f"`run` returns {len(values)} outputs, declared are {len(names)}")
    return values


def checked_outputs(returned, declared):
    values = normalised(returned, declared)
    for i, (value, tensor) in enumerate(zip(values, declared)):
        name = tensor["name"]
        kind = torch_dtype(tensor["dtype"])
        if not isinstance(value, torch.Tensor):
            if isinstance(value, (bool, int, float)) and not tensor["shape"]:
                values[i] = torch.tensor(value, dtype=kind)
                continue
            raise InvalidReference(f"output `{name}` is a {type(value).__name__}, not a tensor")
        if list(value.shape) != storage_shape(tensor):
            raise InvalidReference(
                f"output `{name}` has the shape {list(value.shape)}, declared is {storage_shape(tensor)}")
        if value.dtype != kind:
            raise InvalidReference(
                f"output `{name}` is {str(value.dtype)[6:]}, declared is {tensor['dtype']}")
    return values


def compute(folder, job, run, work, numbers):
    """One workload: the reference on its inputs, which are read afresh and so never shared. Answers
    how it was made where that was not as written."""
    scalars = work["scalars"] + [{"name": name, "value": value} for name, value in numbers.items()]

    def arguments():
        tensors = {tensor["name"]: read_tensor(folder, tensor) for tensor in work["inputs"]}
        return arguments_of(job["inputs"], scalars, tensors)

    note = ""
    # Gradients stay on: references of backward passes ask autograd.
    try:
        returned = run(*arguments())
    except RuntimeError as error:
        half = load_beside("torch_half")
        if not half.is_missing(error):
            raise
        returned, note = half.call(run, arguments())
    values = checked_outputs(returned, work["references"])
    for tensor, value in zip(work["references"], values):
        write_tensor(folder, tensor, value)
    return note


# ---- the custom entry point ----


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def custom_tensor(entry_name, tensor, value):
    name = tensor["name"]
    kind = torch_dtype(tensor["dtype"])
    if isinstance(value, (bool, int, float)) and not tensor["shape"]:
        return torch.tensor(value, dtype=kind)
    if not isinstance(value, torch.Tensor):
        raise InvalidInputs(f"`{entry_name}` gives a {type(value).__name__} for the input `{name}`, "
                            "which is a tensor")
    if list(value.shape) != storage_shape(tensor):
        raise InvalidInputs(f"`{entry_name}` gives the input `{name}` the shape {list(value.shape)}, "
                            f"declared is {storage_shape(tensor)}")
    if value.dtype != kind:
        raise InvalidInputs(f"`{entry_name}` gives the input `{name}` as {str(value.dtype)[6:]}, "
                            f"declared is {tensor['dtype']}")
    return value


def custom_number(entry_name, name, value):
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise InvalidInputs(f"`{entry_name}` gives a {type(value).__name__} for the input `{name}`, "
                            "which is a number")
    return value


def call_entry(folder, entry, entry_name, call):
    """One call: writes the tensors that are wanted and returns the numbers."""
    seed_everything(call["seed"])
    given = dict(call["axes"])
    given.update({scalar["name"]: scalar["value"] for scalar in call["scalars"]})
    returned = entry(given, "cpu")
    wanted = {tensor["name"] for tensor in call["tensors"]}.union(call["numbers"])
    if not isinstance(returned, dict):
        raise InvalidInputs(f"`{entry_name}` returns a {type(returned).__name__}, not a dict of inputs")
    missing = sorted(wanted - set(returned))
    if missing:
        raise InvalidInputs(f"`{entry_name}` returns no {', '.join(missing)}")
    for tensor in call["tensors"]:
        write_tensor(folder, tensor, custom_tensor(entry_name, tensor, returned[tensor["name"]]))
    return {name: custom_number(entry_name, name, returned[name]) for name in call["numbers"]}


def number_text(value):
    """A number as strict JSON has it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return value


def prepare(folder, job, run, entry, work):
    """Inputs of the entry point and references of one workload, as an answer."""
    answer = {"workload": work["uuid"], "status": "PASSED", "reason": "", "numbers": []}
    blamed = "RUNTIME_ERROR"
    try:
        numbers = [call_entry(folder, entry, job["entry_point"], call) for call in work["calls"]]
        answer["numbers"] = [{name: number_text(value) for name, value in call.items()}
                             for call in numbers]
        blamed = "INVALID_REFERENCE"
        if work["references"]:
            answer["reason"] = compute(folder, job, run, work, numbers[0] if numbers else {})
    except (Exception, SystemExit) as error:
        answer["status"], answer["reason"] = blame(error, blamed)
        if blamed == "RUNTIME_ERROR" and not isinstance(error, InvalidInputs):
            answer["reason"] = f"the entry point `{job['entry_point']}`: {answer['reason']}"
    return answer


def main():
    folder = os.path.abspath(sys.argv[1])
    with open(os.path.join(folder, "torch_job.json"), encoding="utf-8") as file:
        job = json.load(file)
    with open(os.path.join(folder, "torch_answers.jsonl"), "w", encoding="utf-8") as answers:

        def answer(what):
            answers.write(json.dumps(what) + "\n")
            answers.flush()

        def answer_all(status, reason):
            for work in job["workloads"]:
                answer({"workload": work["uuid"], "status": status, "reason": reason, "numbers": []})
            if job["trace"]:
                answer({"graph": "", "reason": reason})

        try:
            global torch
            import torch
        except ImportError as error:
            answer_all("INFRASTRUCTURE", f"{sys.executable} cannot import torch: {error}")
            return
        # One thread: other children run beside this one, and sums come out the same everywhere.
        torch.set_num_threads(1)
        try:
            run, entry = load_reference(folder, job["reference"], job["entry_point"])
        except (Exception, SystemExit) as error:
            answer_all(*blame(error, "INVALID_REFERENCE"))
            return
        if job["trace"]:
            answer(load_beside("torch_trace").trace_any(folder, job, run, sys.modules[__name__]))
        for work in job["workloads"]:
            answer(prepare(folder, job, run, entry, work))


if __name__ == "__main__":
    main()
