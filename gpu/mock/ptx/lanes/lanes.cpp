#include "gpu/mock/ptx/lanes/lanes.hpp"

namespace gristmill::ptx {

const lane_library* lanes_for_avx2() {
#ifdef GRISTMILL_PTX_HAS_AVX2
  static const bool present = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return present ? &lanes_avx2::library : nullptr;
#else
  return nullptr;
#endif
}

const lane_library& lanes() {
  static const lane_library& best =
    lanes_for_avx2() != nullptr ? *lanes_for_avx2() : lanes_portable::library;
  return best;
}

} // namespace gristmill::ptx
