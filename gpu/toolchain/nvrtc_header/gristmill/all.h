// Everything that device code may use without an include, as behind clang; included before the
// first line of a kernel.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math_constants.h>
#include "types.h"
#include "constants.h"
#include "pipeline.h"
#include "traits.h"
#include "std_math.h"
#include "signature.h"

// The toolkit's cooperative_groups/memcpy_async.h takes one in deprecated functions.
namespace nvcuda {
namespace experimental {
class pipeline {
public:
  GM_DEVICE void commit() { __pipeline_commit(); }
  template <unsigned stage>
  GM_DEVICE void wait_prior() {
    __pipeline_wait_prior(stage);
  }
  GM_DEVICE void wait(size_t) { __pipeline_wait_prior(0); }
};
} // namespace experimental
} // namespace nvcuda

#undef __is_const
#undef __is_pointer
#undef __is_floating_point
#undef __is_integral
#undef __is_signed
#undef __is_unsigned
#undef __builtin_inff
#undef __builtin_nanf
