// Prints what a result looks like and computes nothing.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    printf("{\"line\":\"sample\",\"workload\":\"w\",\"status\":\"PASSED\",\"time_ns\":1}\n");
}
