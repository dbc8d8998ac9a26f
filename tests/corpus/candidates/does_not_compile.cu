// Wrong on purpose: no such function.
extern "C" __global__ void kernel(const float* x, float* y, int rows, int columns) {
  y[0] = there_is_no_such_function(x[0]);
}
