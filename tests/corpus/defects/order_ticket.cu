// kind: order dependent
// grid 16 block 64 scratch zero orders 4
// Whoever comes first gets the first place: no race, and another result for each order.
extern "C" __global__ void defect(const float* in, float* out, float* scratch, int n) {
  if (threadIdx.x == 0) {
    const int place = static_cast<int>(atomicAdd(scratch, 1.f));
    out[place] = in[blockIdx.x];
  }
}
