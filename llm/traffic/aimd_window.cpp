#include "llm/traffic/aimd_window.hpp"

#include <algorithm>

namespace gristmill {

aimd_window::aimd_window(uint32_t most) : most_(std::max(most, 1u)), size_(most_) {}

void aimd_window::success() {
  if (size_ >= most_) {
    successes_ = 0;
    return;
  }
  if (++successes_ < size_)
    return;
  successes_ = 0;
  ++size_;
}

void aimd_window::trouble(uint64_t sent_as) {
  if (sent_as < halved_before_)
    return;
  halved_before_ = next_;
  successes_ = 0;
  size_ = std::max(size_ / 2, 1u);
}

} // namespace gristmill
