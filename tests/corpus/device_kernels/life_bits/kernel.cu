#include <cstdint>

// A step of Conway's game, 32 cells a word, rows wrap around by words: neighbours are counted by
// adders on bits.
__device__ void add_bits(uint32_t& ones, uint32_t& twos, uint32_t& fours, uint32_t v) {
  const uint32_t carry = ones & v;
  ones ^= v;
  const uint32_t more = twos & carry;
  twos ^= carry;
  fours |= more;
}

extern "C" __global__ void __launch_bounds__(256)
  life_bits(const uint32_t* __restrict__ x, uint32_t* __restrict__ y, int height, int words) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i >= height * words)
    return;
  const int row = i / words, word = i % words;
  const int up = (row + height - 1) % height, down = (row + 1) % height;
  const int west = (word + words - 1) % words, east = (word + 1) % words;
  uint32_t ones = 0, twos = 0, fours = 0;
  const int rows[3] = {up, row, down};
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    const uint32_t* line = x + static_cast<size_t>(rows[r]) * words;
    const uint32_t own = line[word];
    add_bits(ones, twos, fours, own << 1 | line[west] >> 31);
    add_bits(ones, twos, fours, own >> 1 | line[east] << 31);
    if (r != 1)
      add_bits(ones, twos, fours, own);
  }
  y[i] = twos & ~fours & (ones | x[i]);
}
