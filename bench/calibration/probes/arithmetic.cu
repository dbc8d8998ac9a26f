// Latency (one warp, one chain) and rate (warps x chains) of instructions, in cycles and in warp
// instructions a cycle and multiprocessor.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

constexpr int rounds = 64, unrolled = 16;

#define PROBE_OP(NAME, T, CONSTRAINT, TEXT)                                                        \
  struct NAME {                                                                                    \
    using type = T;                                                                                \
    static constexpr const char* name = #NAME;                                                     \
    static __device__ void run(T& x, T a, T b) {                                                   \
      asm volatile(TEXT : "+" CONSTRAINT(x) : CONSTRAINT(a), CONSTRAINT(b));                       \
    }                                                                                              \
  };
PROBE_OP(ffma, float, "f", "fma.rn.f32 %0, %0, %1, %2;")
PROBE_OP(fadd, float, "f", "add.f32 %0, %0, %1;")
PROBE_OP(fmul, float, "f", "mul.f32 %0, %0, %1;")
PROBE_OP(fmax, float, "f", "max.f32 %0, %0, %1;")
PROBE_OP(iadd, uint32_t, "r", "add.u32 %0, %0, %1;")
PROBE_OP(imad, uint32_t, "r", "mad.lo.u32 %0, %0, %1, %2;")
PROBE_OP(imul_hi, uint32_t, "r", "mul.hi.u32 %0, %0, %1;")
PROBE_OP(
  imad_wide, uint64_t, "l", "{.reg .u32 t; cvt.u32.u64 t, %0; mad.wide.u32 %0, t, 12345, %1;}")
PROBE_OP(lop, uint32_t, "r", "xor.b32 %0, %0, %1;")
PROBE_OP(shf, uint32_t, "r", "shf.l.wrap.b32 %0, %0, %1, 7;")
PROBE_OP(prmt, uint32_t, "r", "prmt.b32 %0, %0, %1, 0x2143;")
PROBE_OP(popc, uint32_t, "r", "popc.b32 %0, %0;")
PROBE_OP(imin, uint32_t, "r", "min.u32 %0, %0, %1;")
PROBE_OP(ex2, float, "f", "ex2.approx.ftz.f32 %0, %0;")
PROBE_OP(rsqrt, float, "f", "rsqrt.approx.ftz.f32 %0, %0;")
PROBE_OP(sine, float, "f", "sin.approx.ftz.f32 %0, %0;")
PROBE_OP(tanh_approx, float, "f", "tanh.approx.f32 %0, %0;")
PROBE_OP(hfma2, uint32_t, "r", "fma.rn.f16x2 %0, %0, %1, %2;")
PROBE_OP(bfma2, uint32_t, "r", "fma.rn.bf16x2 %0, %0, %1, %2;")
PROBE_OP(dfma, double, "d", "fma.rn.f64 %0, %0, %1, %2;")
PROBE_OP(cvt_i2f, float, "f", "{.reg .u32 t; mov.b32 t, %0; cvt.rn.f32.u32 %0, t;}")
PROBE_OP(cvt_f2h, float, "f", "{.reg .b16 t; cvt.rn.f16.f32 t, %0; cvt.f32.f16 %0, t;}")
PROBE_OP(shuffle, uint32_t, "r", "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;")
PROBE_OP(
  ballot, uint32_t, "r", "{.reg .pred p; setp.ne.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1;}")
PROBE_OP(match_any, uint32_t, "r", "match.any.sync.b32 %0, %0, -1;")
PROBE_OP(redux_add, uint32_t, "r", "redux.sync.add.u32 %0, %0, -1;")
PROBE_OP(select, uint32_t, "r", "{.reg .pred p; setp.lt.u32 p, %0, %1; selp.b32 %0, %1, %2, p;}")

template <class Op, int CHAINS>
__global__ void run_op(uint64_t* cycles, typename Op::type a, typename Op::type b, uint32_t* sink) {
  typename Op::type x[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c)
    x[c] = static_cast<typename Op::type>(threadIdx.x + c) * a;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int u = 0; u < unrolled; ++u)
#pragma unroll
      for (int c = 0; c < CHAINS; ++c)
        Op::run(x[c], a, b);
  __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(end - begin);
  typename Op::type sum = x[0];
#pragma unroll
  for (int c = 1; c < CHAINS; ++c)
    sum += x[c];
  if (sum == static_cast<typename Op::type>(0x12345))
    *sink = 1;
}

template <class Op>
void one_op(probe_context& c, uint64_t* cycles) {
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const auto a = static_cast<typename Op::type>(1.0001), b = static_cast<typename Op::type>(0.0001);
  const int sms = c.multiprocessors;
  const double alone =
    block_cycles([&] { run_op<Op, 1><<<sms, 32>>>(cycles, a, b, sink); }, cycles, sms);
  c.row(Op::name, "latency", alone / (rounds * unrolled), "cycles");
  for (const int warps : {1, 4, 8, 16, 32}) {
    const double all =
      block_cycles([&] { run_op<Op, 8><<<sms, warps * 32>>>(cycles, a, b, sink); }, cycles, sms);
    c.row(std::string(Op::name) + " warps=" + std::to_string(warps), "rate",
      rounds * unrolled * 8.0 * warps / all, "instructions/cycle");
  }
}

template <class... Ops>
void every(probe_context& c, uint64_t* cycles) {
  (one_op<Ops>(c, cycles), ...);
}

// Two pipes at once: do floating-point and integer instructions share issue slots?
__global__ void mixed_pipes(uint64_t* cycles, float a, uint32_t b, uint32_t* sink) {
  float x[4];
  uint32_t y[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    x[c] = static_cast<float>(threadIdx.x + c);
    y[c] = threadIdx.x * c;
  }
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int u = 0; u < unrolled; ++u)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        ffma::run(x[c], a, a);
        lop::run(y[c], b, b);
      }
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  if (x[0] + x[1] + x[2] + x[3] == 0.123F || (y[0] ^ y[1] ^ y[2] ^ y[3]) == 0x12345)
    *sink = 1;
}

} // namespace

void probe_arithmetic(probe_context& c) {
  auto* cycles = device_memory<uint64_t>(1024);
  every<ffma, fadd, fmul, fmax, iadd, imad, imul_hi, imad_wide, lop, shf, prmt, popc, imin, ex2,
    rsqrt, sine, tanh_approx, hfma2, bfma2, dfma, cvt_i2f, cvt_f2h, shuffle, ballot, match_any,
    redux_add, select>(c, cycles);
  const int sms = c.multiprocessors;
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  for (const int warps : {4, 16, 32})
    c.row("ffma+lop warps=" + std::to_string(warps), "rate",
      rounds * unrolled * 8.0 * warps
        / block_cycles(
          [&] { mixed_pipes<<<sms, warps * 32>>>(cycles, 1.01F, 77, sink); }, cycles, sms),
      "instructions/cycle");
}

} // namespace gristmill::calibration
