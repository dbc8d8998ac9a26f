"""Writes down which operators a reference calls, as schema "gristmill.graph/1" (protocol/op_graph.hpp).

Loaded by torch_oracle.py. The reference is called twice with tiny inputs of other sizes; what differs
between the two depends on the sizes or on a scalar input.
"""

import json
import math
import os
import time

import torch

SECONDS_MAX = 60.0
CONSTANT_ELEMENTS_MAX = 64
# Inputs and outputs with more elements than this are never real: only their shapes are followed.
REAL_ELEMENTS_MAX = 16 << 20


class Untraceable(Exception):
    """The reference runs, but its operators do not make a graph."""


def inputs_of(tensors, oracle):
    """Tensors whose values do not matter, made in whatever mode is on."""
    made = {}
    for tensor in tensors:
        kind = oracle.torch_dtype(tensor["dtype"])
        shape = oracle.storage_shape(tensor)
        if kind.is_floating_point:
            # Positive and near 1: no root, logarithm or quotient fails on it.
            made[tensor["name"]] = (torch.rand(shape) + 0.5).to(kind)
        elif kind == torch.bool:
            made[tensor["name"]] = torch.ones(shape, dtype=kind)
        else:
            # Zero is an index that every table has.
            made[tensor["name"]] = torch.zeros(shape, dtype=kind)
    return made


def storage_key(tensor):
    """Equal for two live tensors iff they share memory; also where there is no memory at all."""
    typed = getattr(tensor, "untyped_storage", None) or tensor.storage
    storage = typed()
    return getattr(storage, "_storage", storage)._cdata


def tracer_class():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Tracer(TorchDispatchMode):
        """Writes down each operator as torch dispatches it, after composite ones came apart."""

        # Which give back what they got, as far as values go.
        TRANSPARENT = ("lift_fresh", "lift", "detach", "alias")
        # Which tell Python about values: what follows may depend on them.
        READS = ("_local_scalar_dense", "item", "is_nonzero", "equal")
        # Which tell Python about shapes alone.
        QUESTIONS = ("is_same_size", "size", "stride", "dim", "numel", "storage_offset",
                     "is_contiguous", "is_pinned", "_has_compatible_shallow_copy_type",
                     "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "device",
                     "layout", "dtype")
        # Which say where and how, not what.
        PLACEMENT = ("device", "layout", "pin_memory", "non_blocking")
        # Whose results are not the same twice.
        RANDOM = ("bernoulli", "bernoulli_", "normal_", "uniform_", "rand", "randn", "rand_like",
                  "randn_like", "randint", "randint_like", "randperm", "random_", "exponential_",
                  "multinomial", "native_dropout", "normal", "geometric_", "cauchy_")
        # Two names for one thing: the same elements in row-major order, with another shape.
        RESHAPES = ("_reshape_alias", "_unsafe_view", "reshape")

        def __init__(self, inputs):
            super().__init__()
            self.values = []
            self.nodes = []
            self.alive = []  # Python must not give an id to a second tensor.
            self.ids = {}
            self.by_storage = {}
            # Values that depend on an input tensor, so that their elements are not known.
            self.unknown = set()
            for name, tensor in inputs.items():
                self.unknown.add(self.add(tensor, {"input": name}))

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
            self.by_storage.setdefault(storage_key(tensor), set()).add(id(tensor))

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
                # `index` has a place for each dimension, and none at those it does not touch.
                if argument and all(x is None or isinstance(x, torch.Tensor) for x in argument):
                    if None not in argument[[x is None for x in argument].index(False):]:
                        first = [x is None for x in argument].index(False)
                        return {"values": [self.value_of(x) for x in argument[first:]],
                                "first": first}
                if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in argument):
                    return list(argument)
            if isinstance(argument, (torch.dtype, torch.memory_format)):
                return str(argument)[6:]
            raise Untraceable(f"`{op}` has an argument that a graph does not hold")

        def check_in_place(self, op, tensor):
            if tensor.numel() == 0:
                return
            if self.by_storage.get(storage_key(tensor), set()) - {id(tensor)}:
                raise Untraceable(f"`{op}` writes to a part of a tensor in place")

        def read(self, op, func, args, kwargs):
            if any(self.value_of(x) in self.unknown for x in args if isinstance(x, torch.Tensor)):
                raise Untraceable("the reference reads a value of a tensor on the host, so what it "
                                  "does depends on the data")
            return func(*args, **kwargs)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            op = func._schema.name.split("::")[-1]
            if op in self.QUESTIONS:
                return func(*args, **kwargs)
            if op in self.READS:
                return self.read(op, func, args, kwargs)
            if op in self.RANDOM:
                raise Untraceable(f"`{op}` draws random numbers")
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
            if any(isinstance(x, dict) and "first" in x for x in inputs + list(attrs.values())):
                inputs, attrs = self.placed(op, inputs, attrs)
            if in_place:
                self.check_in_place(op, args[0])
            result = func(*args, **kwargs)
            results = [result] if isinstance(result, torch.Tensor) else result
            if not isinstance(results, (tuple, list)):
                raise Untraceable(f"`{op}` gives something that is no tensor")
            if not all(isinstance(x, torch.Tensor) for x in results):
                # A backward operator that was asked for some of its results only.
                raise Untraceable(f"`{op}` gives something that is no tensor")
            if op in self.RESHAPES:
                op, inputs = "view", inputs[:2]
            if op == "copy_" and args[0].shape == args[1].shape:
                # What was there before counts for nothing: autograd fills fresh memory this way.
                same = args[0].dtype == args[1].dtype
                op, inputs = "clone" if same else "_to_copy", inputs[1:2]
                attrs = {} if same else {"dtype": str(args[0].dtype)[6:]}
            outputs = [self.add(tensor, {}) for tensor in results]
            if any(value in self.unknown for x in inputs + list(attrs.values())
                   for value in used_values(x)):
                self.unknown.update(outputs)
            self.nodes.append({"op": op, "inputs": inputs, "outputs": outputs, "attrs": attrs})
            return result

        def placed(self, op, inputs, attrs):
            """`index` with leading places left empty: how many goes into the attribute "first_dim"."""
            if op not in ("index", "index_put", "index_put_", "_unsafe_index") or "first" not in inputs[1]:
                raise Untraceable(f"`{op}` has an argument that a graph does not hold")
            first = inputs[1]["first"]
            inputs[1] = {"values": inputs[1]["values"]}
            if first > 0:
                attrs = dict(attrs, first_dim=first)
            return inputs, attrs

    return Tracer


# ---- one call ----


def call_plainly(run, arguments):
    return run(*arguments)


def call_functionally(run, arguments):
    """Every write in place becomes an operator that gives a new tensor, and views are written through."""
    wrapped = [torch._to_functional_tensor(x) if isinstance(x, torch.Tensor) else x
               for x in arguments]
    torch._enable_functionalization(reapply_views=True)
    try:
        returned = run(*wrapped)
    finally:
        torch._disable_functionalization()

    def plain(x):
        if isinstance(x, torch.Tensor) and torch._is_functional_tensor(x):
            torch._sync(x)
            return torch._from_functional_tensor(x)
        if isinstance(x, dict):
            return {key: plain(value) for key, value in x.items()}
        if isinstance(x, (tuple, list)):
            return [plain(value) for value in x]
        return x

    return plain(returned)


def trace(order, run, sizes, oracle, call):
    """The operators of one call, as a dict with values, nodes and outputs."""
    torch.manual_seed(0)
    tensors = inputs_of(sizes["inputs"], oracle)
    ordered = {name: tensors[name] for name in order if name in tensors}
    tracer = tracer_class()(ordered)
    with tracer:
        returned = call(run, oracle.arguments_of(order, sizes["scalars"], tensors))
    outputs = oracle.checked_outputs(returned, sizes["outputs"])
    for tensor, declared in zip(outputs, sizes["outputs"]):
        if id(tensor) not in tracer.ids:
            raise Untraceable(f"output `{declared['name']}` comes from no operator")
    return {"values": tracer.values, "nodes": tracer.nodes,
            "outputs": [tracer.ids[id(tensor)] for tensor in outputs]}


# ---- two calls made into one graph ----


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
    """Two traces of one reference made into one graph."""

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
                return {"integer": a, "varies": True, "again": b}
            return {"number": element_json(a), "varies": True, "again": element_json(b)}
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            if all(isinstance(x, int) for x in a) or all(is_number(x) for x in a):
                return a
        if a != b or type(a) is not type(b):
            raise Untraceable(f"the arguments of `{op}` depend on the sizes in another way than "
                              "by their numbers")
        return a

    def value(self, a, b):
        if len(a["shape"]) != len(b["shape"]) or a["dtype"] != b["dtype"]:
            raise Untraceable("the dtype or the number of dimensions of a tensor depends on the sizes")
        value = {key: a[key] for key in ("id", "dtype", "shape")}
        if b["shape"]:
            value["shape_again"] = b["shape"]
        if "constant" not in a:
            value.update((key, a[key]) for key in a if key not in value)
            return value
        if len(a["constant"]) == 1 and len(b.get("constant", [])) == 1:
            kind = getattr(torch, a["dtype"])
            for (first, second), name in self.scalars.items():
                seen = [float(torch.tensor(x, dtype=kind)) for x in (first, second)]
                if seen == [a["constant"][0], b["constant"][0]] and not a["shape"]:
                    value["scalar_input"] = name
                    return value
        if a["constant"] != b.get("constant") or a["shape"] != b["shape"]:
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


# ---- what is tried ----


def trace_attempt(order, run, attempt, oracle, call):
    first, second = attempt["first"], attempt["second"]
    later = {scalar["name"]: scalar["value"] for scalar in second["scalars"]}
    pairs = {scalar["name"]: (scalar["value"], later[scalar["name"]])
             for scalar in first["scalars"]}
    merged = Merge(pairs).graph(trace(order, run, first, oracle, call),
                                trace(order, run, second, oracle, call))
    values, nodes = without_dead(*merged)
    graph = {"schema": "gristmill.graph/1", "axes": first["axes"]}
    if second["axes"]:
        graph["axes_again"] = second["axes"]
    graph.update({"values": values, "nodes": nodes, "outputs": merged[2]})
    return graph


def trace_shapes_only(order, run, attempt, oracle, call):
    """The same without computing anything: for inputs that are too large, and for operators that this
    torch has no kernel for."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        return trace_attempt(order, run, attempt, oracle, call)


def elements_of(attempt):
    return max(sum(math.prod(tensor["shape"]) for key in ("inputs", "outputs")
                   for tensor in attempt[turn][key]) for turn in ("first", "second"))


def trace_any(folder, job, run, oracle):
    """The graph of the first attempt that works; else the reason of the first one that did not."""
    reason = ""
    begin = time.monotonic()
    for attempt in job["trace"]:
        ways = [trace_attempt] if elements_of(attempt) <= REAL_ELEMENTS_MAX else []
        for way in ways + [trace_shapes_only]:
            for call in (call_plainly, call_functionally):
                if reason and time.monotonic() - begin > SECONDS_MAX:
                    return {"graph": "", "reason": reason}
                try:
                    graph = way(job["inputs"], run, attempt, oracle, call)
                except (Exception, SystemExit) as error:
                    told = str(error) if isinstance(error, Untraceable) else oracle.last_line(error)
                    reason = reason or told
                    continue
                with open(os.path.join(folder, job["graph_file"]), "w", encoding="utf-8") as file:
                    json.dump(graph, file, allow_nan=False)
                return {"graph": job["graph_file"], "reason": ""}
    return {"graph": "", "reason": reason or "there was nothing to try"}
