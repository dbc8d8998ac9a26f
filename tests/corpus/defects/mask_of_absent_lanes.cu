// kind: bad mask
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  float x = in[i];
  if (i % 32 < 16)
    x += __shfl_down_sync(0xffffffff, x, 8);  // FAULT
  else
    x += __shfl_xor_sync(0xffff0000, x, 1);
  __syncwarp();
  out[i] = x;
}
