#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gristmill {

/// A set of GPUs by index, one bit each: a thousand of them are sixteen words.
class gpu_set {
public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }

  bool contains(uint32_t gpu) const {
    return gpu / 64 < words_.size() && (words_[gpu / 64] >> gpu % 64 & 1) != 0;
  }
  void insert(uint32_t gpu) {
    if (gpu / 64 >= words_.size())
      words_.resize(gpu / 64 + 1);
    count_ += contains(gpu) ? 0 : 1;
    words_[gpu / 64] |= uint64_t{1} << gpu % 64;
  }
  void erase(uint32_t gpu) {
    if (!contains(gpu))
      return;
    --count_;
    words_[gpu / 64] &= ~(uint64_t{1} << gpu % 64);
  }
  /// The smallest index; there must be one.
  uint32_t first() const {
    uint32_t word = 0;
    while (words_[word] == 0)
      ++word;
    return word * 64 + static_cast<uint32_t>(std::countr_zero(words_[word]));
  }

  /// The smallest index above this one; 0 when there is none.
  uint32_t next(uint32_t gpu) const {
    for (++gpu; gpu / 64 < words_.size(); gpu = (gpu / 64 + 1) * 64)
      if (auto left = words_[gpu / 64] >> gpu % 64; left != 0)
        return gpu + static_cast<uint32_t>(std::countr_zero(left));
    return 0;
  }

  /// Whether this set has a member that `other` has not.
  bool exceeds(const gpu_set& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if ((words_[i] & ~other.word(i)) != 0)
        return true;
    return false;
  }
  gpu_set& operator-=(const gpu_set& other) {
    count_ = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      words_[i] &= ~other.word(i);
      count_ += static_cast<size_t>(std::popcount(words_[i]));
    }
    return *this;
  }

private:
  uint64_t word(size_t i) const { return i < words_.size() ? words_[i] : 0; }

  std::vector<uint64_t> words_;
  size_t count_ = 0;
};

} // namespace gristmill
