#pragma once

#include <cstdint>
#include <string>

namespace gristmill {

/// A GPU for the broker's table while a run goes on, such as that of a node. It is absent until its
/// executor reports. One that is known by this name already, as of a node that returns, keeps its
/// place and its tokens.
struct device_join {
  /// In events, such as "n1/cuda:0".
  std::string name;
  /// "h200": what a lease asks for.
  std::string model;
  /// "sm_90a".
  std::string arch;
  /// Which machine, for requests that name one.
  std::string node;
  uint64_t memory_bytes = 0;
};

struct device_joined {
  /// Its number in the broker.
  uint32_t gpu = 0;
};

} // namespace gristmill
