// Two buffers in turns: the next rows are on their way while these are written.
__device__ void fetch(float* to, const float* from) {
  unsigned address = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from));
}

extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  __shared__ float stage[2][8][32];
  int column = blockIdx.x * 32 + threadIdx.x;
  int first = blockIdx.y * 32 + threadIdx.y;
  for (int turn = 0; turn <= 4; ++turn) {
    int row = first + turn * 8;
    if (turn < 4 && row < rows && column < columns)
      fetch(&stage[turn & 1][threadIdx.y][threadIdx.x], x + (long long)row * columns + column);
    asm volatile("cp.async.commit_group;");
    if (turn == 0)
      continue;
    asm volatile("cp.async.wait_group 1;");
    int done = row - 8;
    if (done < rows && column < columns)
      y[(long long)column * rows + done] = stage[(turn - 1) & 1][threadIdx.y][threadIdx.x];
  }
}
