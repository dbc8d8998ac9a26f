// Shared memory: latency, bandwidth by width, cost of bank conflicts of 1 to 32 ways, atomics,
// local memory.
#include "bench/calibration/probes/probe.cuh"

namespace gristmill::calibration {

namespace {

constexpr int rounds = 256;

__global__ void latency(uint64_t* cycles, uint32_t* sink) {
  __shared__ uint32_t next[1024];
  for (int i = threadIdx.x; i < 1024; i += 32)
    next[i] = static_cast<uint32_t>((i * 33 + 1) % 1024) * 4;
  __syncwarp();
  uint32_t at = threadIdx.x * 4;
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(next));
  const long long begin = clock64();
  for (int i = 0; i < rounds * 4; ++i)
    asm volatile("{.reg .u32 a; add.u32 a, %0, %1; ld.shared.u32 %0, [a];}"
                 : "+r"(at)
                 : "r"(base)
                 : "memory");
  cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  if (at == 77)
    *sink = at;
}

// Lane i reads word i * stride of its warp's part, WIDTH words at once; four loads in flight.
template <int WIDTH>
__global__ void strided(uint64_t* cycles, int stride, uint32_t* sink, bool store) {
  extern __shared__ uint32_t words[];
  for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x)
    words[i] = i;
  __syncthreads();
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(words))
    + threadIdx.x % 32 * static_cast<uint32_t>(stride) * 4 % 32768;
  uint32_t sum = 0;
  const long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      uint32_t a = i, b = 0, c = 0, d = 0;
      if (store)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(a) : "memory");
      else if (WIDTH == 1)
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at) : "memory");
      else if (WIDTH == 2)
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
      else
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at)
                     : "memory");
      sum += a ^ b ^ c ^ d;
    }
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  if (sum == 77)
    *sink = sum;
}

__global__ void matrix_loads(uint64_t* cycles, uint32_t* sink) {
  __shared__ __align__(16) uint32_t words[4096];
  for (uint32_t i = threadIdx.x; i < 4096; i += blockDim.x)
    words[i] = i;
  __syncthreads();
  const uint32_t at =
    static_cast<uint32_t>(__cvta_generic_to_shared(words)) + threadIdx.x % 32 * 16;
  uint32_t sum = 0;
  const long long begin = clock64();
#pragma unroll 1
  for (int i = 0; i < rounds; ++i)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      uint32_t a, b, c, d;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "r"(at)
                   : "memory");
      sum += a ^ b ^ c ^ d;
    }
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
  if (sum == 77)
    *sink = sum;
}

__global__ void shared_atomics(uint64_t* cycles, int ways) {
  __shared__ uint32_t counters[1024];
  for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x)
    counters[i] = 0;
  __syncthreads();
  uint32_t* target = &counters[threadIdx.x % 32 / static_cast<uint32_t>(ways)];
  const long long begin = clock64();
  for (int i = 0; i < rounds; ++i)
    atomicAdd(target, 1U);
  __syncthreads();
  if (threadIdx.x == 0)
    cycles[blockIdx.x] = static_cast<uint64_t>(clock64() - begin);
}

} // namespace

void probe_shared(probe_context& c) {
  auto* cycles = device_memory<uint64_t>(1024);
  auto* sink = reinterpret_cast<uint32_t*>(c.tools.canary);
  const int sms = c.multiprocessors;
  c.row("load", "latency",
    block_cycles([&] { latency<<<sms, 32>>>(cycles, sink); }, cycles, sms) / (rounds * 4),
    "cycles");
  const auto row = [&](const std::string& variant, int warps, double all, double loads) {
    c.row(variant + " warps=" + std::to_string(warps), "cost", all / (loads * warps),
      "cycles/instruction");
  };
  for (const int warps : {1, 4, 16, 32}) {
    for (const int stride : {0, 1, 2, 4, 8, 16, 32, 3, 33})
      row("load4 stride=" + std::to_string(stride), warps,
        block_cycles([&] { strided<1><<<sms, warps * 32, 32768>>>(cycles, stride, sink, false); },
          cycles, sms),
        rounds * 4);
    for (const int stride : {1, 2, 4, 8, 16, 32})
      row("store4 stride=" + std::to_string(stride), warps,
        block_cycles(
          [&] { strided<1><<<sms, warps * 32, 32768>>>(cycles, stride, sink, true); }, cycles, sms),
        rounds * 4);
    for (const int stride : {2, 4, 8, 16, 32, 64})
      row("load8 stride=" + std::to_string(stride), warps,
        block_cycles([&] { strided<2><<<sms, warps * 32, 32768>>>(cycles, stride, sink, false); },
          cycles, sms),
        rounds * 4);
    for (const int stride : {4, 8, 16, 20, 32, 36, 64})
      row("load16 stride=" + std::to_string(stride), warps,
        block_cycles([&] { strided<4><<<sms, warps * 32, 32768>>>(cycles, stride, sink, false); },
          cycles, sms),
        rounds * 4);
    row("ldmatrix.x4", warps,
      block_cycles([&] { matrix_loads<<<sms, warps * 32>>>(cycles, sink); }, cycles, sms),
      rounds * 4);
    for (const int ways : {1, 2, 4, 8, 16, 32})
      row("atomic_add ways=" + std::to_string(ways), warps,
        block_cycles([&] { shared_atomics<<<sms, warps * 32>>>(cycles, ways); }, cycles, sms),
        rounds);
  }
}

} // namespace gristmill::calibration
