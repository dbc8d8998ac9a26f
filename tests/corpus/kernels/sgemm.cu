// C = A * B, row-major float. 64 x 64 of C a block of 16 x 16 threads, 4 x 4 of it a thread, 16 deep.
// M and N are multiples of 64, K of 16. Storing A transposed conflicts on banks, on purpose: the time
// model has to see it.
constexpr int tile_rows = 64, tile_columns = 64, tile_depth = 16;

extern "C" __global__ void __launch_bounds__(256) sgemm(const float* __restrict__ a,
    const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[tile_depth][tile_rows];
  __shared__ float b_tile[tile_depth][tile_columns];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int thread = ty * 16 + tx;
  const int row0 = static_cast<int>(blockIdx.y) * tile_rows;
  const int column0 = static_cast<int>(blockIdx.x) * tile_columns;
  float sum[4][4] = {};

  for (int depth0 = 0; depth0 < k; depth0 += tile_depth) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int e = thread + part * 256;
      a_tile[e % tile_depth][e / tile_depth] =
        a[static_cast<size_t>(row0 + e / tile_depth) * k + depth0 + e % tile_depth];
      b_tile[e / tile_columns][e % tile_columns] =
        b[static_cast<size_t>(depth0 + e / tile_columns) * n + column0 + e % tile_columns];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < tile_depth; ++d) {
      const float4 rows = *reinterpret_cast<const float4*>(&a_tile[d][ty * 4]);
      const float4 columns = *reinterpret_cast<const float4*>(&b_tile[d][tx * 4]);
      const float left[4] = {rows.x, rows.y, rows.z, rows.w};
      const float right[4] = {columns.x, columns.y, columns.z, columns.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          sum[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<float4*>(&c[static_cast<size_t>(row0 + ty * 4 + i) * n + column0 + tx * 4]) =
      make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
}
