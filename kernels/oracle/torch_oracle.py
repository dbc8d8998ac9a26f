"""Runs the reference of a problem with torch on the CPU, for gristmill-oracle.

Called as `python3 -I -B torch_oracle.py FOLDER`. Reads FOLDER/torch_job.json and writes one JSON line
for each answer to FOLDER/torch_answers.jsonl:

    {"workload": UUID, "status": STATUS, "reason": TEXT, "numbers": [{INPUT: NUMBER}, ...]}
    {"graph": FILE | "", "reason": TEXT}

STATUS is PASSED; INVALID_REFERENCE when the reference is wrong; RUNTIME_ERROR when the custom entry
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
TRACE_SECONDS_MAX = 60.0
CONSTANT_ELEMENTS_MAX = 64


class InvalidReference(Exception):
    """The reference does not do what the definition declares."""


class InvalidInputs(Exception):
    """The custom entry point does not do what the definition declares."""


class Lacking(Exception):
    """The reference may be right, but not here."""


class Untraceable(Exception):
    """The reference runs, but its operators do not make a graph."""


def last_line(error):
    """What went wrong, in the one line that a person reads first."""
    if isinstance(error, (InvalidReference, InvalidInputs, Lacking, Untraceable)):
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
    """One workload: the reference on its inputs, which are read afresh and so never shared."""
    tensors = {tensor["name"]: read_tensor(folder, tensor) for tensor in work["inputs"]}
    scalars = work["scalars"] + [{"name": name, "value": value} for name, value in numbers.items()]
    # Gradients stay on: references of backward passes ask autograd.
    returned = run(*arguments_of(job["inputs"], scalars, tensors))
    values = checked_outputs(returned, work["references"])
    for tensor, value in zip(work["references"], values):
        write_tensor(folder, tensor, value)


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
            compute(folder, job, run, work, numbers[0] if numbers else {})
    except (Exception, SystemExit) as error:
        answer["status"], answer["reason"] = blame(error, blamed)
        if blamed == "RUNTIME_ERROR" and not isinstance(error, InvalidInputs):
            answer["reason"] = f"the entry point `{job['entry_point']}`: {answer['reason']}"
    return answer


# ---- the trace ----


def tiny_inputs(tensors):
    made = {}
    for tensor in tensors:
        kind = torch_dtype(tensor["dtype"])
        shape = storage_shape(tensor)
        if kind.is_floating_point:
            # Positive and near 1: no root, logarithm or quotient fails on it.
            made[tensor["name"]] = (torch.rand(shape) + 0.5).to(kind)
        elif kind == torch.bool:
            made[tensor["name"]] = torch.ones(shape, dtype=kind)
        else:
            # Zero is an index that every table has.
            made[tensor["name"]] = torch.zeros(shape, dtype=kind)
    return made


def tracer_class():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Tracer(TorchDispatchMode):
        """Writes down each operator as torch dispatches it, after composite ones came apart."""

        # Which give back what they got, as far as values go.
        TRANSPARENT = ("lift_fresh", "lift", "detach", "alias")
        # Which tell Python about values: what follows may depend on them.
        READS = ("_local_scalar_dense", "item", "is_nonzero", "equal")
        # Which say where and how, not what.
        PLACEMENT = ("device", "layout", "pin_memory", "non_blocking")

        def __init__(self, inputs):
            super().__init__()
            self.values = []
            self.nodes = []
            self.alive = []  # Python must not give an id to a second tensor.
            self.ids = {}
            self.by_storage = {}
            for name, tensor in inputs.items():
                self.add(tensor, {"input": name})

        def add(self, tensor, extra):
            value = {"id": len(self.values), "dtype": str(tensor.dtype)[6:],
                     "shape": list(tensor.shape)}
            value.update(extra)
            self.values.append(value)
            self.point(tensor, value["id"])
            return value["id"]

        def point(self, tensor, value):
            self.alive.append(tensor)
            self.ids[id(tensor)] = value
            if tensor.numel() > 0:
                self.by_storage.setdefault(tensor.storage().data_ptr(), set()).add(id(tensor))

        def value_of(self, tensor):
            known = self.ids.get(id(tensor))
            if known is not None:
                return known
            if tensor.numel() > CONSTANT_ELEMENTS_MAX:
                raise Untraceable(f"the reference holds a tensor of {tensor.numel()} elements")
            # In here torch dispatches as ever, so nothing of this is written down.
            elements = [float(x) for x in tensor.detach().reshape(-1).to(torch.float64).tolist()]
            return self.add(tensor, {"constant": elements})

        def operand(self, op, argument):
            if argument is None or isinstance(argument, (bool, int, float, str)):
                return argument
            if isinstance(argument, torch.Tensor):
                return {"value": self.value_of(argument)}
            if isinstance(argument, (tuple, list)):
                if argument and all(isinstance(x, torch.Tensor) for x in argument):
                    return {"values": [self.value_of(x) for x in argument]}
                if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in argument):
                    return list(argument)
            if isinstance(argument, (torch.dtype, torch.memory_format)):
                return str(argument)[6:]
            raise Untraceable(f"`{op}` has an argument that a graph does not hold")

        def check_in_place(self, op, tensor):
            if tensor.numel() == 0:
                return
            others = self.by_storage.get(tensor.storage().data_ptr(), set()) - {id(tensor)}
            if others:
                raise Untraceable(f"`{op}` writes to a part of a tensor in place")

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            op = func._schema.name.split("::")[-1]
            if op in self.READS:
                raise Untraceable("the reference reads a value of a tensor on the host")
            if "out" in kwargs:
                raise Untraceable(f"`{op}` writes to a tensor that was given as `out`")
            if op in self.TRANSPARENT:
                result = func(*args, **kwargs)
                self.point(result, self.value_of(args[0]))
                return result
            in_place = op.endswith("_") and not op.endswith("__")
            inputs = [self.operand(op, argument) for argument in args]
            attrs = {key: self.operand(op, argument) for key, argument in kwargs.items()
                     if key not in self.PLACEMENT}
            if in_place:
                self.check_in_place(op, args[0])
            result = func(*args, **kwargs)
            results = [result] if isinstance(result, torch.Tensor) else result
            if not isinstance(results, (tuple, list)) or not all(
                    isinstance(x, torch.Tensor) for x in results):
                raise Untraceable(f"`{op}` gives something that is no tensor")
            self.nodes.append({"op": op, "inputs": inputs,
                               "outputs": [self.add(tensor, {}) for tensor in results],
                               "attrs": attrs})
            return result

    return Tracer


def trace(order, run, sizes):
    """The operators of one call, as a dict with values, nodes and outputs."""
    torch.manual_seed(0)
    tensors = tiny_inputs(sizes["inputs"])
    ordered = {name: tensors[name] for name in order if name in tensors}
    tracer = tracer_class()(ordered)
    with torch.no_grad(), tracer:
        returned = run(*arguments_of(order, sizes["scalars"], tensors))
    outputs = checked_outputs(returned, sizes["outputs"])
    for tensor, declared in zip(outputs, sizes["outputs"]):
        if id(tensor) not in tracer.ids:
            raise Untraceable(f"output `{declared['name']}` comes from no operator")
    return {"values": tracer.values, "nodes": tracer.nodes,
            "outputs": [tracer.ids[id(tensor)] for tensor in outputs]}


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def number_json(x):
    if isinstance(x, int):
        return x
    if x != x:
        return {"number": "nan"}
    if x in (float("inf"), float("-inf")):
        return {"number": "inf" if x > 0 else "-inf"}
    return x


def element_json(x):
    """The same among the elements of a constant, where a text needs no wrapping."""
    written = number_json(x)
    return written["number"] if isinstance(written, dict) else written


class Merge:
    """Two traces of one reference made into one graph: what differs between them depends on the sizes
    or on a scalar input."""

    def __init__(self, scalars):
        # (value in the first call, value in the second) -> name, where the two tell it apart.
        self.scalars = {pair: name for name, pair in scalars.items() if pair[0] != pair[1]}

    def operand(self, op, a, b):
        if is_number(a) and is_number(b):
            if type(a) is not type(b):
                raise Untraceable(f"an argument of `{op}` changes its type with the sizes")
            if (a, b) in self.scalars:
                return {"scalar_input": self.scalars[(a, b)]}
            if a == b or (a != a and b != b):
                return number_json(a)
            if isinstance(a, int):
                return {"integer": a, "varies": True}
            return {"number": element_json(a), "varies": True}
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            if all(isinstance(x, int) for x in a) or all(is_number(x) for x in a):
                return a
        if a != b or type(a) is not type(b):
            raise Untraceable(f"the arguments of `{op}` depend on the sizes in another way than "
                              "by their numbers")
        return a

    def value(self, a, b):
        if "constant" not in a:
            return dict(a)
        value = {key: a[key] for key in ("id", "dtype", "shape")}
        if len(a["constant"]) == 1 and len(b.get("constant", [])) == 1:
            kind = getattr(torch, a["dtype"])
            for (first, second), name in self.scalars.items():
                seen = [float(torch.tensor(x, dtype=kind)) for x in (first, second)]
                if seen == [a["constant"][0], b["constant"][0]] and not a["shape"]:
                    value["scalar_input"] = name
                    return value
        if a["constant"] != b.get("constant"):
            raise Untraceable("a tensor that the reference holds depends on the sizes")
        value["constant"] = [element_json(x) for x in a["constant"]]
        return value

    def graph(self, a, b):
        same_form = (len(a["values"]) == len(b["values"]) and a["outputs"] == b["outputs"]
                     and [(n["op"], n["outputs"], len(n["inputs"]), list(n["attrs"]))
                          for n in a["nodes"]]
                     == [(n["op"], n["outputs"], len(n["inputs"]), list(n["attrs"]))
                         for n in b["nodes"]])
        if not same_form:
            raise Untraceable("the operators that the reference calls depend on the sizes")
        values = [self.value(x, y) for x, y in zip(a["values"], b["values"])]
        nodes = []
        for x, y in zip(a["nodes"], b["nodes"]):
            nodes.append({
                "op": x["op"],
                "inputs": [self.operand(x["op"], p, q) for p, q in zip(x["inputs"], y["inputs"])],
                "outputs": x["outputs"],
                "attrs": {key: self.operand(x["op"], x["attrs"][key], y["attrs"][key])
                          for key in x["attrs"]}})
        return values, nodes, a["outputs"]


def used_values(operand):
    if isinstance(operand, dict):
        return [operand["value"]] if "value" in operand else operand.get("values", [])
    return []


def without_dead(values, nodes, outputs):
    """Leaves out what no output needs."""
    needed = set(outputs)
    kept = []
    for node in reversed(nodes):
        if not needed.intersection(node["outputs"]):
            continue
        needed.update(node["outputs"])
        for operand in list(node["inputs"]) + list(node["attrs"].values()):
            needed.update(used_values(operand))
        kept.append(node)
    kept.reverse()
    return [v for v in values if v["id"] in needed or "input" in v], kept


def trace_attempt(order, run, attempt):
    first, second = attempt["first"], attempt["second"]
    later = {scalar["name"]: scalar["value"] for scalar in second["scalars"]}
    pairs = {scalar["name"]: (scalar["value"], later[scalar["name"]])
             for scalar in first["scalars"]}
    merged = Merge(pairs).graph(trace(order, run, first), trace(order, run, second))
    values, nodes = without_dead(*merged)
    axes = {name: size for name, size in first["axes"].items()}
    return {"schema": "gristmill.graph/1", "axes": axes, "values": values, "nodes": nodes,
            "outputs": merged[2]}


def trace_any(folder, job, run):
    """The graph of the first attempt that works; else the reason of the first one that did not."""
    reason = ""
    begin = time.monotonic()
    for attempt in job["trace"]:
        if reason and time.monotonic() - begin > TRACE_SECONDS_MAX:
            break
        try:
            graph = trace_attempt(job["inputs"], run, attempt)
        except (Exception, SystemExit) as error:
            reason = reason or last_line(error)
            continue
        with open(os.path.join(folder, job["graph_file"]), "w", encoding="utf-8") as file:
            json.dump(graph, file, allow_nan=False)
        return {"graph": job["graph_file"], "reason": ""}
    return {"graph": "", "reason": reason or "there was nothing to try"}


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
            answer(trace_any(folder, job, run))
        for work in job["workloads"]:
            answer(prepare(folder, job, run, entry, work))


if __name__ == "__main__":
    main()
