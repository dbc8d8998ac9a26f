#pragma once

#include "gpu/mock/ptx/lanes/loops.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/// A bit for each lane of which something is true. In the namespace of the build: see loops.hpp.
namespace gristmill::ptx::GRISTMILL_PTX_LANES {

/// Those whose byte is not 0.
inline uint32_t mask_of(const uint8_t* flags) {
#if defined(__SSE2__)
  const __m128i zero = _mm_setzero_si128();
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(flags));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(flags + 16));
  const auto low_clear = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(low, zero)));
  const auto high_clear = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(high, zero)));
  return ~(low_clear | high_clear << 16);
#else
  uint32_t mask = 0;
  for (uint32_t l = 0; l < warp_lanes; ++l)
    mask |= static_cast<uint32_t>(flags[l] != 0) << l;
  return mask;
#endif
}

#if defined(__AVX2__)
/// Those for which F holds of two whole numbers of 4 or 8 bytes: F compares vectors as it does
/// numbers.
template <class F, class T>
uint32_t mask_of_numbers(const T* a, const T* b) {
  typedef T plain_vector __attribute__((vector_size(32)));
  typedef T vector __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
  uint32_t mask = 0;
  for (uint32_t l = 0; l < warp_lanes; l += 32 / sizeof(T)) {
    const plain_vector x = *reinterpret_cast<const vector*>(a + l);
    const plain_vector y = *reinterpret_cast<const vector*>(b + l);
    const auto holds = reinterpret_cast<__m256i>(F::of(x, y));
    if constexpr (sizeof(T) == 4)
      mask |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(holds))) << l;
    else
      mask |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(holds))) << l;
  }
  return mask;
}
#endif

} // namespace gristmill::ptx::GRISTMILL_PTX_LANES
