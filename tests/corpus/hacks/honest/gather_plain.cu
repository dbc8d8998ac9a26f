// One block a token.
#include <cuda_bf16.h>
extern "C" __global__ void kernel(const long long* ids, const __nv_bfloat16* table, __nv_bfloat16* y,
  int tokens, int vocabulary, int hidden) {
  long long id = ids[blockIdx.x] % vocabulary;
  if (id < 0)
    id += vocabulary;
  for (int i = threadIdx.x; i < hidden; i += 32)
    y[(long long)blockIdx.x * hidden + i] = table[id * hidden + i];
}
