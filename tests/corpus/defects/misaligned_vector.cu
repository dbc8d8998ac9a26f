// kind: misaligned
// grid 1 block 64 scratch undefined orders 0
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  const int i = threadIdx.x;
  if (i < 32) {
    const float4 v = *reinterpret_cast<const float4*>(in + 4 * i + 1);  // FAULT
    out[i] = v.x + v.y + v.z + v.w;
  }
}
