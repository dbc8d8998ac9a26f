// Tensor cores: latency and rate of mma.sync by type, warps and independent accumulators; rate of
// wgmma by width and type, operands in shared memory. Operands are random.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

constexpr int rounds = 256;

// mma.sync with operands of 4 and 2 registers and accumulators of 4; LETTER is theirs in asm.
#define CALIBRATION_MMA(NAME, TYPE, LETTER, K, TYPES)                                              \
  struct NAME {                                                                                    \
    using type = TYPE;                                                                             \
    static constexpr const char* name = #NAME;                                                     \
    static constexpr int registers = 4;                                                            \
    static constexpr double flop = 2.0 * 16 * 8 * K;                                               \
    static __device__ void run(TYPE (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {     \
      asm volatile("mma.sync.aligned.m16n8k" #K ".row.col." TYPES                                  \
                   " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                        \
                   : "+" LETTER(d[0]), "+" LETTER(d[1]), "+" LETTER(d[2]), "+" LETTER(d[3])        \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));            \
    }                                                                                              \
  };
CALIBRATION_MMA(bf16_f32, float, "f", 16, "f32.bf16.bf16.f32")
CALIBRATION_MMA(f16_f32, float, "f", 16, "f32.f16.f16.f32")
CALIBRATION_MMA(tf32_f32, float, "f", 8, "f32.tf32.tf32.f32")
CALIBRATION_MMA(s8_s32, uint32_t, "r", 32, "s32.s8.s8.s32")
CALIBRATION_MMA(e4m3_f32, float, "f", 32, "f32.e4m3.e4m3.f32")
#undef CALIBRATION_MMA

struct f16_f16 {
  using type = uint32_t;
  static constexpr const char* name = "f16_f16";
  static constexpr int registers = 2;
  static constexpr double flop = 2.0 * 16 * 8 * 16;
  static __device__ void run(uint32_t (&d)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
struct bf16_k8 {
  using type = float;
  static constexpr const char* name = "bf16_k8";
  static constexpr int registers = 4;
  static constexpr double flop = 2.0 * 16 * 8 * 8;
  static __device__ void run(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};

template <class Op, int CHAINS>
__global__ void run_mma(uint64_t* cycles, const uint32_t* random, uint32_t* sink) {
  typename Op::type d[CHAINS][Op::registers];
  uint32_t a[4], b[2];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] = random[threadIdx.x * 8 + i];
#pragma unroll
  for (int i = 0; i < 2; ++i)
    b[i] = random[threadIdx.x * 8 + 4 + i];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c)
#pragma unroll
    for (int i = 0; i < Op::registers; ++i)
      d[c][i] = 0;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; ++r)
#pragma unroll
    for (int c = 0; c < CHAINS; ++c)
      Op::run(d[c], a, b);
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  typename Op::type sum = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c)
#pragma unroll
    for (int i = 0; i < Op::registers; ++i)
      sum += d[c][i];
  if (sum == static_cast<typename Op::type>(123457))
    *sink = 1;
}

template <class Op, int CHAINS>
void chains(probe_context& c, uint64_t* cycles, const uint32_t* random) {
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const int sms = c.multiprocessors;
  for (const int warps : {1, 2, 4, 8, 16, 32}) {
    const double all = block_cycles(
      [&] { run_mma<Op, CHAINS><<<sms, warps * 32>>>(cycles, random, sink); }, cycles, sms);
    c.row(std::string(Op::name) + " chains=" + std::to_string(CHAINS)
        + " warps=" + std::to_string(warps),
      "rate", Op::flop * rounds * CHAINS * warps / all, "flop/cycle");
    if (CHAINS == 1 && warps == 1)
      c.row(Op::name, "latency", all / rounds, "cycles");
  }
}

template <class... Ops>
void every(probe_context& c, uint64_t* cycles, const uint32_t* random) {
  (chains<Ops, 1>(c, cycles, random), ...);
  (chains<Ops, 2>(c, cycles, random), ...);
  (chains<Ops, 8>(c, cycles, random), ...);
}

// The registers of an accumulator as asm names them, and as operands from d[I] on.
#define TEN(TENS)                                                                                  \
  "%" TENS "0,%" TENS "1,%" TENS "2,%" TENS "3,%" TENS "4,"                                        \
  "%" TENS "5,%" TENS "6,%" TENS "7,%" TENS "8,%" TENS "9,"
#define REGISTERS_4 "%0,%1,%2,%3"
#define REGISTERS_32 TEN("") TEN("1") TEN("2") "%30,%31"
#define REGISTERS_64 TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60,%61,%62,%63"
#define REGISTERS_128                                                                              \
  TEN("")                                                                                          \
  TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10")       \
    TEN("11") "%120,%121,%122,%123,%124,%125,%126,%127"
#define FROM_4(I) "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3])
#define FROM_16(I) FROM_4(I), FROM_4(I + 4), FROM_4(I + 8), FROM_4(I + 12)
#define FROM_32(I) FROM_16(I), FROM_16(I + 16)
#define FROM_64(I) FROM_32(I), FROM_32(I + 32)
#define FROM_128(I) FROM_64(I), FROM_64(I + 64)

template <int N>
struct wgmma_bf16;
template <int N>
struct wgmma_e4m3;

// COUNT is N / 2; REST the descriptors, scales and, of 16-bit types, the layouts.
#define CALIBRATION_WGMMA(TYPE, N, COUNT, K, REST)                                                 \
  template <>                                                                                      \
  struct wgmma_##TYPE<N> {                                                                         \
    static __device__ void run(float (&d)[COUNT], uint64_t a, uint64_t b) {                        \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k" #K ".f32." #TYPE "." #TYPE           \
                   " {" REGISTERS_##COUNT "}, " REST ";"                                           \
                   : FROM_##COUNT(0)                                                               \
                   : "l"(a), "l"(b));                                                              \
    }                                                                                              \
  };
CALIBRATION_WGMMA(bf16, 8, 4, 16, "%4, %5, 1, 1, 1, 0, 0")
CALIBRATION_WGMMA(bf16, 64, 32, 16, "%32, %33, 1, 1, 1, 0, 0")
CALIBRATION_WGMMA(bf16, 128, 64, 16, "%64, %65, 1, 1, 1, 0, 0")
CALIBRATION_WGMMA(bf16, 256, 128, 16, "%128, %129, 1, 1, 1, 0, 0")
CALIBRATION_WGMMA(e4m3, 128, 64, 32, "%64, %65, 1, 1, 1")
CALIBRATION_WGMMA(e4m3, 256, 128, 32, "%128, %129, 1, 1, 1")
#undef CALIBRATION_WGMMA
#undef FROM_128
#undef FROM_64
#undef FROM_32
#undef FROM_16
#undef FROM_4
#undef REGISTERS_128
#undef REGISTERS_64
#undef REGISTERS_32
#undef REGISTERS_4
#undef TEN

template <template <int> class Op, int N>
__global__ void __launch_bounds__(256)
  run_wgmma(uint64_t* cycles, const uint32_t* random, uint32_t* sink) {
  extern __shared__ __align__(1024) uint32_t operands[];
  for (uint32_t i = threadIdx.x; i < 12288; i += blockDim.x)
    operands[i] = random[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(operands));
  const auto descriptor = [](uint32_t at) {
    return static_cast<uint64_t>((at & 0x3ffff) >> 4) | uint64_t{1} << 16 | uint64_t{64} << 32
      | uint64_t{1} << 62;
  };
  const uint64_t a = descriptor(base), b = descriptor(base + 16384);
  float d[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i)
    d[i] = 0;
  const long long begin = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds / 4; ++r) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int u = 0; u < 4; ++u)
      Op<N>::run(d, a + u * 2, b + u * 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N / 2; ++i)
    sum += d[i];
  if (sum == 123457.F)
    *sink = 1;
}

template <template <int> class Op, int N>
void one_wgmma(
  probe_context& c, uint64_t* cycles, const uint32_t* random, const char* what, int k) {
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const int sms = c.multiprocessors;
  constexpr int bytes = 49152;
  CALIBRATION_CUDA(
    cudaFuncSetAttribute(run_wgmma<Op, N>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  for (const int groups : {1, 2}) {
    const double all = block_cycles(
      [&] { run_wgmma<Op, N><<<sms, groups * 128, bytes>>>(cycles, random, sink); }, cycles, sms);
    c.row(std::string("wgmma ") + what + " n=" + std::to_string(N)
        + " groups=" + std::to_string(groups),
      "rate", 2.0 * 64 * N * k * rounds * groups / all, "flop/cycle");
  }
}

} // namespace

void probe_tensor(probe_context& c) {
  auto* cycles = device_memory<uint64_t>(1024);
  auto* random = device_memory<uint32_t>(16384);
  fill_random<<<64, 256>>>(random, 16384);
  every<bf16_f32, f16_f32, f16_f16, tf32_f32, s8_s32, e4m3_f32, bf16_k8>(c, cycles, random);
  one_wgmma<wgmma_bf16, 8>(c, cycles, random, "bf16", 16);
  one_wgmma<wgmma_bf16, 64>(c, cycles, random, "bf16", 16);
  one_wgmma<wgmma_bf16, 128>(c, cycles, random, "bf16", 16);
  one_wgmma<wgmma_bf16, 256>(c, cycles, random, "bf16", 16);
  one_wgmma<wgmma_e4m3, 128>(c, cycles, random, "e4m3", 32);
  one_wgmma<wgmma_e4m3, 256>(c, cycles, random, "e4m3", 32);
}

} // namespace gristmill::calibration
