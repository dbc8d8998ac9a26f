// 64 x 64 tiles in 16-byte accesses for large matrices; one element a thread where launch and latency
// are all there is.
extern "C" __global__ void transpose_vec(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[64][65];
  int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
  int x = blockIdx.x * 64 + tx * 4, y = blockIdx.y * 64 + ty;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    if (y + i < rows && x < columns) {
      float4 v = *reinterpret_cast<const float4*>(in + (long long)(y + i) * columns + x);
      float* t = &tile[ty + i][tx * 4];
      t[0] = v.x; t[1] = v.y; t[2] = v.z; t[3] = v.w;
    }
  __syncthreads();
  x = blockIdx.y * 64 + tx * 4;
  y = blockIdx.x * 64 + ty;
#pragma unroll
  for (int i = 0; i < 64; i += 16)
    if (y + i < columns && x < rows) {
      float4 v = {tile[tx * 4][ty + i], tile[tx * 4 + 1][ty + i], tile[tx * 4 + 2][ty + i], tile[tx * 4 + 3][ty + i]};
      *reinterpret_cast<float4*>(out + (long long)(y + i) * rows + x) = v;
    }
}
extern "C" __global__ void transpose_small(const float* in, float* out, int rows, int columns) {
  // A warp takes eight columns by four rows: whole sectors are read, half sectors written.
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int x = blockIdx.x * 8 + (lane & 7), y = blockIdx.y * 32 + warp * 4 + (lane >> 3);
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}
