#pragma once

#include "gpu/lease/policy.hpp"
#include "messages/result.hpp"

#include <array>
#include <bit>
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

/// Whether GPU `gpu` satisfies the need and is not the one that is excluded.
bool satisfies(
  const gpu_attributes& attributes, uint32_t gpu, const gpu_need& need, uint32_t excluded);

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
  /// The same for a need that had this number when its stamp was this one, excluding nothing, as
  /// long as nothing has changed since: then true, and no text is compared.
  bool acquire_again(need_id id, uint64_t stamp);
  /// Grows whenever the number comes to stand for something else.
  uint64_t stamp(need_id id) const { return entries_[id].stamp; }
  /// One user less; the number is free again after the last.
  void release(need_id id);
  /// A need that nobody has any more is fresh when it comes back: there are other GPUs now.
  void forget_unused();

  /// Whether the GPU satisfies a need that is in use.
  bool satisfied(need_id id, uint32_t gpu, const gpu_attributes& attributes) const;
  /// Everything in use that this GPU satisfies; bit 0 always.
  need_set fits_of(uint32_t gpu, const gpu_attributes& attributes) const;

  /// Needs in use, "any GPU" not counted.
  size_t size() const { return static_cast<size_t>(std::popcount(in_use_)) - 1; }

  uint64_t users(need_id id) const { return entries_[id].users; }
  /// What the number stands for, and the GPU that is excluded.
  const std::pair<gpu_need, uint32_t>& what(need_id id) const { return entries_[id].what; }
  need_set in_use() const { return in_use_; }

private:
  using key = std::pair<gpu_need, uint32_t>;
  struct entry {
    key what{{}, nothing_excluded};
    uint64_t users = 0;
    uint64_t stamp = 0;
  };

  /// The number that the next new need gets; `needs_max` when all are in use.
  need_id lowest_free() const { return static_cast<need_id>(std::countr_one(in_use_)); }

  /// Also of needs that nobody has any more, until their number is given to another one.
  std::map<key, need_id> ids_;
  std::array<entry, needs_max> entries_{};
  /// Bit i for number i; bit 0 is "any GPU".
  need_set in_use_ = 1;
};

} // namespace gristmill
