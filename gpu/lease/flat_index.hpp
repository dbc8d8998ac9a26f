#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gristmill {

/// Finds numbers of slots by hash; the keys themselves stand in the slots. Open addressing with
/// linear probing, in one block of memory. It has no order, so nothing walks through it.
class flat_index {
public:
  static constexpr uint32_t none = ~uint32_t{0};

  size_t size() const { return size_; }

  /// The slot with this hash for which `is_it(slot)` is true, else `none`.
  template <class Function>
  uint32_t find(uint64_t hash, Function is_it) const {
    if (cells_.empty())
      return none;
    for (auto i = hash & mask(); cells_[i].slot != none; i = (i + 1) & mask())
      if (cells_[i].hash == hash && is_it(cells_[i].slot))
        return cells_[i].slot;
    return none;
  }
  /// For hashes that are unique, such as those of `mixed`.
  uint32_t find(uint64_t hash) const {
    return find(hash, [](uint32_t) { return true; });
  }

  /// The slot must not be there yet.
  void insert(uint64_t hash, uint32_t slot) {
    if (2 * (size_ + 1) > cells_.size())
      grow();
    place({hash, slot});
    ++size_;
  }

  void erase(uint64_t hash, uint32_t slot) {
    if (cells_.empty())
      return;
    auto hole = hash & mask();
    for (; cells_[hole].slot != slot || cells_[hole].hash != hash; hole = (hole + 1) & mask())
      if (cells_[hole].slot == none)
        return;
    --size_;
    // Whoever was pushed past the hole moves up, so that no search ends at it too early.
    for (auto i = (hole + 1) & mask(); cells_[i].slot != none; i = (i + 1) & mask()) {
      auto home = cells_[i].hash & mask();
      if (((i - home) & mask()) < ((i - hole) & mask()))
        continue;
      cells_[hole] = cells_[i];
      hole = i;
    }
    cells_[hole] = {};
  }

private:
  struct cell {
    uint64_t hash = 0;
    uint32_t slot = none;
  };

  uint64_t mask() const { return cells_.size() - 1; }

  void place(const cell& what) {
    auto i = what.hash & mask();
    while (cells_[i].slot != none)
      i = (i + 1) & mask();
    cells_[i] = what;
  }

  void grow() {
    auto old = std::exchange(cells_, std::vector<cell>(cells_.empty() ? 8 : 2 * cells_.size()));
    for (const auto& each : old)
      if (each.slot != none)
        place(each);
  }

  std::vector<cell> cells_;
  size_t size_ = 0;
};

/// A hash of a number; different numbers have different ones.
constexpr uint64_t mixed(uint64_t number) {
  number *= 0x9e37'79b9'7f4a'7c15;
  return number ^ number >> 32;
}

} // namespace gristmill
