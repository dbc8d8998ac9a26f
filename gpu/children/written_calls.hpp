#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gristmill {

/// Which timed calls are written out for the judge, of whom there may be only so many. A call whose
/// outputs are not those of the checked run goes first; a secret share of the others takes what
/// room is left. Among equals chance decides (a reservoir), so that a kernel gains nothing by
/// misbehaving late.
class written_calls {
public:
  explicit written_calls(uint32_t most) : most_(most) {}

  struct decision {
    bool write = false;
    /// A call that was written before and must make room.
    std::optional<uint32_t> drop;
  };

  /// `equal`: the outputs are those of the checked run. `draw` is a random number.
  decision consider(uint32_t call, bool equal, bool is_shared, uint64_t draw);

  uint32_t looked_at() const { return equal_ + unequal_; }
  uint32_t equal() const { return equal_; }
  uint32_t unequal() const { return unequal_; }
  /// In the order of the calls.
  std::vector<uint32_t> kept() const;
  /// Whether calls that differ could not all be written.
  bool left_out_unequal() const { return unequal_ > kept_unequal_.size(); }

private:
  uint32_t most_;
  uint32_t equal_ = 0;
  uint32_t unequal_ = 0;
  uint32_t shared_ = 0;
  std::vector<uint32_t> kept_equal_;
  std::vector<uint32_t> kept_unequal_;
};

} // namespace gristmill
