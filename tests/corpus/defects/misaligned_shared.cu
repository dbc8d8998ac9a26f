// kind: misaligned
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  __shared__ __align__(16) float tile[128];
  const int i = threadIdx.x;
  tile[i] = in[i];
  tile[i + 64] = in[i];
  __syncthreads();
  const double* pairs = reinterpret_cast<const double*>(tile + n / 256);
  out[i] = static_cast<float>(pairs[i / 2]);  // FAULT
}
