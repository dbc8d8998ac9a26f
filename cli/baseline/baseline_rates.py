"""Measured rates of a GPU, for a roofline: bandwidth by copying, reading and writing random bytes, and
multiply-adds by large products through the library that torch calls.

`measure` answers {"rates": {"bytes_per_second": …, "macs_per_second": {TYPE: …}}, "table": […]}. A rate is that of
the fastest sample of the best size, because a bound must not be above what the device can do. Bandwidth
is the better of reading and copying: bytes that are only written may stay in the second level cache and
never reach memory while the clock runs, so writing is told and does not count.
"""

import ctypes

# Sums nothing: reads 16 bytes at a time, four loads on their way, and stores only what never comes up.
READER = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry read_all(.param .u64 from, .param .u64 count, .param .u64 sink)
{
  .reg .pred %p<3>;
  .reg .b32 %r<40>;
  .reg .b64 %d<12>;
  ld.param.u64 %d0, [from];
  ld.param.u64 %d1, [count];
  ld.param.u64 %d2, [sink];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r0;
  mul.lo.u32 %r5, %r2, %r3;
  mul.wide.u32 %d3, %r4, 16;
  mul.wide.u32 %d4, %r5, 16;
  shl.b64 %d5, %d4, 2;
  mov.u32 %r6, 0;
again:
  setp.ge.u64 %p0, %d3, %d1;
  @%p0 bra done;
  add.u64 %d6, %d0, %d3;
  add.u64 %d7, %d6, %d4;
  add.u64 %d8, %d7, %d4;
  add.u64 %d9, %d8, %d4;
  ld.global.L1::no_allocate.v4.u32 {%r10, %r11, %r12, %r13}, [%d6];
  ld.global.L1::no_allocate.v4.u32 {%r14, %r15, %r16, %r17}, [%d7];
  ld.global.L1::no_allocate.v4.u32 {%r18, %r19, %r20, %r21}, [%d8];
  ld.global.L1::no_allocate.v4.u32 {%r22, %r23, %r24, %r25}, [%d9];
  xor.b32 %r10, %r10, %r11;
  xor.b32 %r12, %r12, %r13;
  xor.b32 %r14, %r14, %r15;
  xor.b32 %r16, %r16, %r17;
  xor.b32 %r18, %r18, %r19;
  xor.b32 %r20, %r20, %r21;
  xor.b32 %r22, %r22, %r23;
  xor.b32 %r24, %r24, %r25;
  xor.b32 %r10, %r10, %r12;
  xor.b32 %r14, %r14, %r16;
  xor.b32 %r18, %r18, %r20;
  xor.b32 %r22, %r22, %r24;
  xor.b32 %r10, %r10, %r14;
  xor.b32 %r18, %r18, %r22;
  xor.b32 %r10, %r10, %r18;
  add.u32 %r6, %r6, %r10;
  add.u64 %d3, %d3, %d5;
  bra again;
done:
  setp.ne.u32 %p1, %r6, 0xfedcba98;
  @%p1 bra end;
  st.global.u32 [%d2], %r6;
end:
  ret;
}
"""


class Reader:
    def __init__(self, torch, multiprocessors):
        self.torch = torch
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.blocks = multiprocessors * 8
        torch.zeros(1, device="cuda")  # The context of torch is current from here on.
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        bad = self.driver.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(READER))
        bad = bad or self.driver.cuModuleGetFunction(ctypes.byref(self.function), module, b"read_all")
        if bad:
            raise RuntimeError(f"the reading kernel does not load: CUDA error {bad}")
        self.sink = torch.zeros(64, dtype=torch.uint8, device="cuda")

    def unit(self):
        """Bytes that the grid reads in one round: what is read must be a multiple."""
        return self.blocks * 256 * 16 * 4

    def __call__(self, buffer, size):
        values = [ctypes.c_uint64(buffer.data_ptr()), ctypes.c_uint64(size),
                  ctypes.c_uint64(self.sink.data_ptr())]
        pointers = (ctypes.c_void_p * 3)(*[ctypes.addressof(v) for v in values])
        stream = self.torch.cuda.current_stream().cuda_stream
        bad = self.driver.cuLaunchKernel(self.function, self.blocks, 1, 1, 256, 1, 1, 0,
                                         ctypes.c_void_p(stream), pointers, None)
        if bad:
            raise RuntimeError(f"the reading kernel does not start: CUDA error {bad}")


def bandwidth(torch, job, timer, table):
    best = 0.0
    try:
        reader = Reader(torch, timer.properties.multi_processor_count)
    except (RuntimeError, OSError) as error:
        table.append({"what": "read", "reason": str(error)})
        reader = None
    for mebibytes in (128, 256, 512, 1024, 2048):
        size = mebibytes << 20
        source = torch.randint(-2**62, 2**62, (size // 8,), dtype=torch.int64, device="cuda")
        target = torch.empty_like(source)
        cases = [("copy", 2 * size, lambda: target.copy_(source)), ("write", size, lambda: target.zero_())]
        if reader:
            whole = size // reader.unit() * reader.unit()
            cases.append(("read", whole, lambda: reader(source, whole)))
        for what, moved, call in cases:
            times = timer.take([call], 30, 0.1)["device_ns"]
            row = {"what": what, "mebibytes": mebibytes, "median_ns": times["median"], "mad_ns": times["mad"],
                   "min_ns": times["min"], "bytes_per_second": moved / times["min"] * 1e9}
            table.append(row)
            if what != "write":
                best = max(best, row["bytes_per_second"])
        del source, target
    return int(best)


def products(torch, timer, table):
    """Multiply-adds a second by what the product is fed with."""
    best = {}

    def add(kind, size, call):
        try:
            times = timer.take([call], 20, 0.2)["device_ns"]
        except Exception as error:  # noqa: BLE001  a type that this torch or GPU lacks
            table.append({"what": kind, "size": size, "reason": str(error).split("\n")[0][:200]})
            return
        rate = float(size) ** 3 / times["min"] * 1e9
        table.append({"what": kind, "size": size, "median_ns": times["median"], "mad_ns": times["mad"],
                      "min_ns": times["min"], "macs_per_second": rate})
        best[kind] = max(best.get(kind, 0), int(rate))

    for size in (4096, 8192):
        for kind, dtype, tf32 in (("bf16", torch.bfloat16, False), ("fp16", torch.float16, False),
                                  ("tf32", torch.float32, True), ("fp32", torch.float32, False)):
            a = torch.randn(size, size, device="cuda").to(dtype)
            b = torch.randn(size, size, device="cuda").to(dtype)
            torch.backends.cuda.matmul.allow_tf32 = tf32
            add(kind, size, lambda a=a, b=b: torch.matmul(a, b.t()))
            torch.backends.cuda.matmul.allow_tf32 = False
        if hasattr(torch, "float8_e4m3fn") and hasattr(torch, "_scaled_mm"):
            a = torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn)
            b = torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn)
            one = torch.ones((), device="cuda")
            add("fp8", size, lambda a=a, b=b: torch._scaled_mm(
                a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True))
    return best


def measure(torch, job, timer):
    if timer.device.type != "cuda":
        # A trial needs some rates to go through all of the steps; they are nobody's.
        return {"rates": {"bytes_per_second": 10**12, "macs_per_second": {"fp32": 10**13, "bf16": 10**14}},
                "table": []}
    table = []
    with torch.no_grad():
        rate = bandwidth(torch, job, timer, table)
        return {"rates": {"bytes_per_second": rate, "macs_per_second": products(torch, timer, table)},
                "table": table}
