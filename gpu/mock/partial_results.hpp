#pragma once

#include "gpu/mock/ptx/ptx.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gristmill {

/// What the launches of a call have not computed because only a sample of their blocks was
/// executed. The clock refuses a later launch whose branches or addresses depend on it.
class partial_results {
public:
  /// Bytes of memory of which can be told, byte by byte, what is missing.
  static constexpr uint64_t bytes_max = 1ULL << 30;

  void clear();
  /// Asks the regions that a launch may write to for what it writes.
  void watch(std::vector<ptx::region>& memory);
  /// After the launch whose memory was watched: `done` of its `blocks` were executed. What it wrote
  /// while something was missing counts as missing, for it may be made of that.
  void launched(const std::string& entry, uint64_t done, uint64_t blocks);
  /// A memset or copy has given these bytes a value.
  void overwritten(uint64_t device, uint64_t bytes);

  bool empty() const { return missing_.empty(); }
  /// Bytes of the buffers of which something is missing.
  uint64_t bytes() const;
  /// Which launches left something out: "`count` (38 of 1056 blocks were executed)".
  std::string words() const;
  /// The same memory, in which what is missing counts as not written. Valid while `this` is and
  /// nothing else is asked of it.
  std::vector<ptx::region> marked(const std::vector<ptx::region>& memory);

private:
  struct region_state {
    uint64_t bytes = 0;
    /// By grain: 1 where a value is missing.
    std::vector<uint8_t> grains;
    std::string launch;
    /// By byte, for the interpreter.
    std::vector<uint8_t> undefined;
  };
  struct watched_region {
    uint64_t bytes = 0;
    std::vector<uint8_t> written;
  };

  /// By device address.
  std::map<uint64_t, region_state> missing_;
  std::map<uint64_t, watched_region> watched_;
};

} // namespace gristmill
