#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/result.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gristmill {

/// What a GPU is, as far as anybody can ask for it. Empty or 0: not known, which fits no demand.
struct gpu_attributes {
  /// Such as "h200".
  std::string model;
  /// Such as "sm_90a".
  std::string arch;
  std::string node;
  uint64_t memory_bytes = 0;
};

/// What a request demands of its GPU; an empty or 0 member demands nothing.
struct gpu_need {
  std::string model;
  std::string arch;
  std::string node;
  uint64_t memory_min = 0;

  friend auto operator<=>(const gpu_need&, const gpu_need&) = default;
};

/// Reads "" (any GPU), a device model ("h200") or demands with commas in any order:
/// "arch=sm_90a,memory>=80GiB,node=a,model=h200". Sizes take B, KiB, MiB, GiB or TiB. At most 256
/// bytes, each key once, values of letters, digits and "._:#-".
/// Errors: `invalid_input`, naming the part and what is known.
result<gpu_need> parse_need(std::string_view text);

/// Canonical text: what `parse_need` reads as the same need.
std::string to_string(const gpu_need& need);

bool fits(const gpu_need& need, const gpu_attributes& gpu);

/// "h200 (arch sm_90a, 141 GiB, node a)": for messages.
std::string to_string(const gpu_attributes& gpu);

/// Small numbers for the needs that somebody waits with, at most `needs_max` at a time; number 0 is
/// "any GPU". A need may also exclude one GPU by index: a candidate that failed there is tried
/// elsewhere only.
class need_index {
public:
  static constexpr uint32_t nothing_excluded = ~uint32_t{0};

  struct acquired {
    need_id id = any_need;
    /// The number is new or used anew: what fits it must be worked out again.
    bool fresh = false;
  };
  /// Counts one more user of the need. Errors: `queue_full` when all numbers are in use.
  result<acquired> acquire(const gpu_need& need, uint32_t excluded_gpu);
  /// One user less; the number is free again after the last.
  void release(need_id id);

  /// Whether the GPU satisfies a need that is in use.
  bool satisfied(need_id id, uint32_t gpu, const gpu_attributes& attributes) const;
  /// Everything in use that this GPU satisfies; bit 0 always.
  need_set fits_of(uint32_t gpu, const gpu_attributes& attributes) const;

  /// Needs in use, "any GPU" not counted.
  size_t size() const { return ids_.size(); }

  uint64_t users(need_id id) const { return entries_[id].users; }

private:
  using key = std::pair<gpu_need, uint32_t>;
  struct entry {
    key what{{}, nothing_excluded};
    uint64_t users = 0;
  };
  std::map<key, need_id> ids_;
  std::array<entry, needs_max> entries_{};
};

} // namespace gristmill
