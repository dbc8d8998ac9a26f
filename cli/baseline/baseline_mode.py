"""Times one way to compute a problem's reference with PyTorch, in a process of its own.

Called as `python3 -B baseline_mode.py JOB.json`. Writes {"ready": true} to stdout once torch is
imported and CUDA is not yet touched, then waits for a line {"go": true, "visible": GPU} on stdin: the
lease of the GPU begins there. Answers one JSON line and ends:

    {"status": "timed" | "failed", "reason": TEXT, ...}

The protocol is that of candidates: load for `warm_up_s` seconds, then for each sample another set of
input values at another address, the second level cache flushed, the call enqueued behind a wait on a
host word, and device events around it. Beside it: the span without the wait, and the span of the
device's activities where the profiler can be had.
"""

import ctypes
import importlib.util
import json
import os
import platform
import statistics
import sys
import threading
import time
import traceback


def die_with_parent():
    """SIGKILL when the parent ends, whatever way."""
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


class Unfit(Exception):
    """The mode does not apply to the problem or to this machine."""


def load_module(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise Unfit(f"{path}: no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# What a tensor is drawn from. Values decide neither the time of these kernels nor, within the
# tolerance, their verdict; they are fresh for each set so that nothing can be kept from call to call.
def draw(torch, spec, generator, device):
    shape = spec["shape"]
    kind = getattr(torch, spec["dtype"])
    if kind.is_floating_point:
        wide = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        if "float8" in spec["dtype"]:
            wide = wide.clamp(-2, 2)
        elif spec["draw"] == "fan_in" and shape:
            wide = wide / float(shape[-1]) ** 0.5
        return wide.to(kind)
    if kind == torch.bool:
        return torch.randint(0, 2, shape, generator=generator, device=device).to(kind)
    if kind == torch.int8:
        return torch.randint(-128, 128, shape, generator=generator, device=device).to(kind)
    return torch.randint(-1024, 1024, shape, generator=generator, device=device).to(kind)


def placed(torch, value, shift):
    """A copy of the tensor at an address that is `shift` x 256 bytes into an allocation."""
    size = value.numel() * value.element_size()
    room = torch.empty(size + 256 * 9, dtype=torch.uint8, device=value.device)
    base = -room.data_ptr() % 256 + 256 * shift
    there = room[base:base + size].view(value.dtype).view(value.shape)
    there.copy_(value)
    return there


def make_sets(torch, job, device):
    sets = []
    for index in range(job["sets"]):
        generator = torch.Generator(device=device)
        generator.manual_seed(job["seed"] + index)
        values = []
        for i, spec in enumerate(job["inputs"]):
            if "value" in spec:
                values.append(spec["value"])
            else:
                values.append(placed(torch, draw(torch, spec, generator, device), 1 + (index + i) % 8))
        sets.append(values)
    return sets


def as_list(returned, names):
    if isinstance(returned, dict):
        return [returned[name] for name in names]
    values = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(values) != len(names):
        raise Unfit(f"{len(values)} outputs returned, {len(names)} declared")
    return values


def in_higher_precision(torch, run, values):
    """The reference with float64 in place of float32 and of the inputs' types. Where it does not run
    so, as it is written; the second answer says which."""
    wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]
    torch.Tensor.float = torch.Tensor.double  # Hides the inherited method.
    try:
        return run(*wide), "float64"
    except Exception:  # noqa: BLE001  any refusal of the wider types
        pass
    finally:
        del torch.Tensor.float
    return run(*values), "as written"


def check(torch, got, expected, job):
    """The rule of the evaluation (required ratio of elements within atol + rtol |y|, cap). Empty when
    all outputs pass."""
    allowed = job["tolerance"]
    for spec, x, y in zip(job["outputs"], got, expected):
        if not isinstance(x, torch.Tensor):
            return f"{spec['name']} is no tensor"
        if list(x.shape) != spec["shape"] or str(x.dtype) != "torch." + spec["dtype"]:
            return (f"{spec['name']} is {list(x.shape)} {x.dtype}, declared is {spec['shape']} "
                    f"{spec['dtype']}")
        x, y = x.detach().float(), y.detach().float()
        if not bool(torch.isfinite(x).all()):
            return f"{spec['name']} is not finite"
        if float(y.norm()) > 0 and float(x.norm()) == 0:
            return f"{spec['name']} is all zeros"
        error = (x - y).abs()
        if x.numel() == 0:
            continue
        inside = error <= allowed["atol"] + allowed["rtol"] * y.abs()
        ratio = float(inside.double().mean())
        if ratio < allowed["ratio"]:
            return (f"{spec['name']}: {ratio:.6f} of the elements are right, {allowed['ratio']} are "
                    f"required; largest error {float(error.max()):.3g}")
        if allowed["cap"] is not None and float(error.max()) > allowed["cap"]:
            return f"{spec['name']}: largest error {float(error.max()):.3g} is over {allowed['cap']}"
    return ""


class Gate:
    """A word of the host that the device waits for. A watchdog opens it when the enqueuing does not
    come to an end, because a call that waits for the device would wait for itself."""

    PATIENCE_S = 3.0

    def __init__(self, torch):
        self.torch = torch
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.wait = getattr(self.driver, "cuStreamWaitValue32_v2", None) or self.driver.cuStreamWaitValue32
        self.wait.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint]
        self.word = torch.zeros(64, dtype=torch.int32).pin_memory()
        self.number = ctypes.c_int32.from_address(self.word.data_ptr())
        address = ctypes.c_uint64()
        found = self.driver.cuMemHostGetDevicePointer_v2(
            ctypes.byref(address), ctypes.c_void_p(self.word.data_ptr()), 0)
        if found != 0:
            raise Unfit(f"no device address of host memory: CUDA error {found}")
        self.address = address.value
        self.closed_at = None
        self.forced = False
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            time.sleep(0.2)
            since = self.closed_at
            if since is not None and time.monotonic() - since > self.PATIENCE_S:
                self.forced = True
                self.number.value = 1

    def close(self, stream):
        self.number.value = 0
        self.forced = False
        self.closed_at = time.monotonic()
        bad = self.wait(stream.cuda_stream, self.address, 1, 1)
        if bad != 0:
            self.number.value = 1
            raise Unfit(f"the stream takes no wait for a host word: CUDA error {bad}")

    def open(self):
        self.number.value = 1
        self.closed_at = None


class CudaTimer:
    def __init__(self, torch, job):
        self.torch = torch
        self.job = job
        self.device = torch.device("cuda", 0)
        self.properties = torch.cuda.get_device_properties(0)
        self.l2 = getattr(self.properties, "L2_cache_size", 0) or 64 << 20
        self.scratch = torch.zeros(2 * self.l2, dtype=torch.uint8, device=self.device)
        self.stream = torch.cuda.Stream()
        self.gate = Gate(torch)
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)

    def flush(self):
        if self.job["flush"] == "official":
            bad = self.gate.driver.cuMemsetD32Async(
                ctypes.c_uint64(self.scratch.data_ptr()), ctypes.c_uint(0),
                ctypes.c_size_t(self.scratch.numel() // 4), ctypes.c_void_p(self.stream.cuda_stream))
            if bad:
                raise RuntimeError(f"the flush does not start: CUDA error {bad}")
        else:
            self.scratch.view(self.torch.int32).max()

    def sample(self, call, gated):
        self.flush()
        if gated:
            self.gate.close(self.stream)
        else:
            self.stream.synchronize()
        try:
            self.begin.record(self.stream)
            call()
            self.end.record(self.stream)
        finally:
            if gated:
                self.gate.open()
        self.end.synchronize()
        if gated and self.gate.forced:
            raise Unfit("a call waits for the device, so that it cannot be enqueued ahead")
        return self.begin.elapsed_time(self.end) * 1e6

    def warm_up(self, calls, seconds):
        begin = time.monotonic()
        count = 0
        while count < 10 or time.monotonic() - begin < seconds:
            calls[count % len(calls)]()
            self.stream.synchronize()
            count += 1
        return count

    def take(self, calls, samples, seconds):
        self.torch.cuda.synchronize()
        with self.torch.cuda.stream(self.stream):
            count = self.warm_up(calls, seconds)
            gated = [self.sample(calls[i % len(calls)], True) for i in range(samples)]
            span = [self.sample(calls[i % len(calls)], False) for i in range(min(samples, 20))]
        return {"warm_up_calls": count, "device_ns": summary(gated), "span_ns": summary(span)}

    def activities(self, calls, samples):
        """Latest end less earliest start of what each call runs on the device, by the profiler. A
        memset of the flush's size parts the calls."""
        torch = self.torch
        from torch.profiler import ProfilerActivity, profile
        torch.cuda.synchronize()
        with torch.cuda.stream(self.stream):
            with profile(activities=[ProfilerActivity.CUDA]) as recorded:
                for i in range(samples):
                    self.flush()
                    self.gate.close(self.stream)
                    try:
                        calls[i % len(calls)]()
                    finally:
                        self.gate.open()
                    self.stream.synchronize()
                    if self.gate.forced:
                        raise Unfit("under the profiler a call cannot be enqueued ahead")
        path = os.path.join(self.job["folder"], "trace.json")
        recorded.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        os.remove(path)
        events = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        events.sort(key=lambda e: e["ts"])
        # What comes first is a flush, and what looks like it is another one.
        looks = lambda e: (e["cat"], e["name"], e.get("args", {}).get("bytes"))  # noqa: E731
        spans, kinds = [], []
        for e in events:
            if looks(e) == looks(events[0]):
                spans.append(None)
                kinds.append([])
            else:
                begin, end = e["ts"], e["ts"] + e["dur"]
                last = spans[-1]
                spans[-1] = (begin, end) if last is None else (min(last[0], begin), max(last[1], end))
                kinds[-1].append(e["name"])
        times = [(s[1] - s[0]) * 1e3 for s in spans if s is not None]
        if len(times) != samples or len(spans) != samples:
            raise Unfit(f"the profiler shows {len(times)} of {samples} calls")
        if any(sorted(each) != sorted(kinds[0]) for each in kinds):
            raise Unfit("the profiler shows other activities from call to call")
        return summary(times)

    def state(self):
        fields = "driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_event_reasons.active"
        import subprocess
        for names in (fields, fields.replace("clocks_event_reasons", "clocks_throttle_reasons")):
            done = subprocess.run(["nvidia-smi", "-i", self.job["visible"] or "0", f"--query-gpu={names}",
                                   "--format=csv,noheader,nounits"], capture_output=True, text=True,
                                  check=False)
            values = [v.strip() for v in done.stdout.strip().split("\n")[0].split(",")]
            if done.returncode == 0 and len(values) == 6:
                return dict(zip(("driver", "sm_mhz", "memory_mhz", "celsius", "watts", "reasons"), values))
        return {}


class CpuTimer:
    """For tests of everything but the times: what it says is no measurement."""

    def __init__(self, torch, job):
        self.device = torch.device("cpu")
        self.l2 = 0

    def take(self, calls, samples, seconds):
        times = []
        for i in range(min(samples, 3)):
            begin = time.monotonic()
            calls[i % len(calls)]()
            times.append((time.monotonic() - begin) * 1e9)
        return {"warm_up_calls": 0, "device_ns": summary(times), "span_ns": summary(times)}

    def activities(self, calls, samples):
        raise Unfit("no profiler on the CPU")

    def state(self):
        return {"driver": "none"}


def summary(times):
    middle = statistics.median(times)
    return {"median": middle, "mad": statistics.median([abs(t - middle) for t in times]),
            "min": min(times), "max": max(times), "samples": len(times)}


def graphed(torch, run, sets):
    """A graph for each set, captured on the set's own buffers."""
    calls, outputs = [], []
    for values in sets:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                run(*values)
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs.append(run(*values))
        calls.append(graph.replay)
    return calls, outputs


def calls_of(torch, job, run, sets, timer):
    """What is timed: a call and a way to its outputs for each set."""
    mode = job["mode"]
    compiled = {"compile": {}, "max-autotune": {"mode": "max-autotune-no-cudagraphs"}}
    if mode in compiled:
        if not hasattr(torch, "compile"):
            raise Unfit(f"torch {torch.__version__} has no torch.compile")
        run = torch.compile(run, dynamic=False, **compiled[mode])
    if mode == "graph":
        if timer.device.type != "cuda":
            raise Unfit("CUDA graphs need a GPU")
        calls, outputs = graphed(torch, run, sets)
        for call in calls:
            call()
        torch.cuda.synchronize()
        return calls, outputs, run
    outputs = [run(*values) for values in sets]
    return [lambda values=values: run(*values) for values in sets], outputs, run


def run_mode(torch, job, answer):
    if job["device"] == "cuda":
        if not torch.cuda.is_available():
            raise Unfit("torch sees no CUDA device")
        timer = CudaTimer(torch, job)
    else:
        timer = CpuTimer(torch, job)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    answer["before"] = timer.state()
    answer["device"] = torch.cuda.get_device_name(0) if timer.device.type == "cuda" else "CPU"
    answer["l2_bytes"] = timer.l2
    if job["mode"] == "rates":
        rates = load_module(os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline_rates.py"),
                            "baseline_rates")
        answer.update(rates.measure(torch, job, timer))
        answer["after"] = timer.state()
        return
    reference = load_module(job["reference"], "_reference").run
    run = reference
    if job.get("code"):
        module = load_module(job["code"], "_baseline")
        run = module.run
    sets = make_sets(torch, job, timer.device)
    if job.get("code") and hasattr(module, "prepare"):
        # What a library lets its callers choose ahead, such as an algorithm among its heuristics.
        quick = lambda call: timer.take([call], 10, 0.02)["device_ns"]["median"]  # noqa: E731
        answer["choice"] = module.prepare(sets[0], quick)
    names = [spec["name"] for spec in job["outputs"]]
    precisions = set()
    with torch.no_grad():
        calls, outputs, run = calls_of(torch, job, run, sets, timer)
        for values, got in zip(sets, outputs):
            expected, precision = in_higher_precision(torch, reference, values)
            precisions.add(precision)
            wrong = check(torch, as_list(got, names), as_list(expected, names), job)
            if wrong:
                raise Unfit(f"wrong: {wrong}")
            del expected
        if job["mode"] != "graph":
            del outputs, got
        answer["checked_against"] = "reference in " + " and ".join(sorted(precisions))
        answer.update(timer.take(calls, job["samples"], job["warm_up_s"]))
        try:
            answer["activity_ns"] = timer.activities(calls, min(job["samples"], 20))
        except Exception as error:  # noqa: BLE001  an extra: its absence is told, nothing else
            answer["activity_reason"] = str(error)[:200]
        if job["copy_bytes"] and timer.device.type == "cuda":
            half = job["copy_bytes"] // 2
            pairs = [(torch.randint(0, 256, (half,), dtype=torch.uint8, device=timer.device),
                      torch.empty(half, dtype=torch.uint8, device=timer.device)) for _ in range(2)]
            copies = [lambda pair=pair: pair[1].copy_(pair[0]) for pair in pairs]
            answer["copy"] = timer.take(copies, job["samples"], job["warm_up_s"])
            if "activity_ns" in answer:
                answer["copy"]["activity_ns"] = timer.activities(copies, min(job["samples"], 20))
    answer["after"] = timer.state()


def main():
    die_with_parent()
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    # Whatever libraries print must not stand among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(line):
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    answer = {"status": "failed", "reason": "", "python": platform.python_version()}
    try:
        import torch
        answer["torch"] = torch.__version__
        answer["cuda"] = torch.version.cuda or ""
        say({"ready": True})
        go = json.loads(sys.stdin.readline() or "{}")
        if not go.get("go"):
            return
        job["visible"] = go["visible"]
        if go["visible"]:
            os.environ["CUDA_VISIBLE_DEVICES"] = go["visible"]
        run_mode(torch, job, answer)
        answer["status"] = "timed"
    except Exception as error:  # noqa: BLE001  every failure of a mode is told and left out
        answer["reason"] = str(error).strip().split("\n")[0][:400] or type(error).__name__
        if not isinstance(error, Unfit):
            answer["reason"] = f"{type(error).__name__}: {answer['reason']}"
            traceback.print_exc()
    say(answer)
    # Threads of compilers and watchdogs must not keep the lease.
    answers.close()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
