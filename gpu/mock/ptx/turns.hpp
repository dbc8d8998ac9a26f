#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gristmill::ptx {

/// In which order blocks start and warps take turns, and how long these are: the natural one, or
/// one that a seed shuffles.
class turn_order {
public:
  explicit turn_order(std::optional<uint64_t> seed)
    : shuffles_(seed.has_value()), state_(seed.value_or(0)) {}

  /// Clusters are shuffled only among as many as may be resident at once, for later ones may wait
  /// for earlier ones.
  void set_range(uint64_t begin, uint64_t end, uint64_t together) {
    end_ = end;
    together_ = together;
    first_ = begin;
    chunk_.clear();
  }

  /// The cluster that starts as number `place` of the range; ask for one after the other.
  uint64_t cluster(uint64_t place) {
    if (!shuffles_)
      return place;
    if (chunk_.empty() || place >= first_ + chunk_.size()) {
      first_ = place;
      chunk_.resize(std::min(together_, end_ - place));
      for (size_t i = 0; i < chunk_.size(); ++i)
        chunk_[i] = place + i;
      shuffle(chunk_);
    }
    return chunk_[place - first_];
  }

  /// Operations that a warp may execute before others run. Long, for a change of warp costs cache
  /// misses.
  uint64_t turn() { return shuffles_ ? 1 + draw() % 2048 : 1 << 16; }

  /// 0 to `most`.
  uint64_t some(uint64_t most) { return draw() % (most + 1); }

  template <class T>
  void shuffle(std::vector<T>& items) {
    if (!shuffles_)
      return;
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[draw() % i]);
  }

private:
  /// Steele, Lea and Flood's splittable generator.
  uint64_t draw() {
    state_ += 0x9e37'79b9'7f4a'7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
    return z ^ z >> 31;
  }

  bool shuffles_ = false;
  uint64_t state_ = 0;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t together_ = 1;
  std::vector<uint64_t> chunk_;
};

} // namespace gristmill::ptx
